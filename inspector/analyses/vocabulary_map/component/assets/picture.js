// The picture to download: title, map, legend; as pixels for print or as SVG with the points as
// an image in it.

const PRINT = 2400; // pixels across: 8 inches at 300 dots an inch
const LINE = 24;

/** Break the legend into lines. */
function legendLines(context, scene, width) {
  const entries = scene.kinds
    .filter((kind, i) => scene.shown[i] && kind.count)
    .map((kind) => [{ ...kind, color: scene.paint.byKind ? kind.color : scene.theme.muted }, kind]);
  if (scene.showFlagged && scene.flagged.length) entries.push([scene.flag, scene.flag]);
  if (scene.paint.entries) {
    scene.paint.entries.forEach((entry, i) => {
      const mark = { symbol: "circle", size: 8, color: scene.paint.palette[i] };
      if (scene.paint.shown[i]) entries.push([mark, entry]);
    });
  }
  context.font = `13px ${FONT}`;
  let [x, y] = [12, 0];
  return entries.map(([mark, { name, count }]) => {
    const text = `${name} (${count.toLocaleString("en")})`;
    const wide = context.measureText(text).width + 40;
    if (x + wide > width && x > 12) [x, y] = [12, y + LINE];
    x += wide;
    return { mark, text, x: x - wide, y };
  });
}

function drawRamp(context, scene, x, y) {
  const { range, palette } = scene.paint;
  const steps = palette.slice(0, -1);
  context.fillStyle = scene.theme.ink;
  context.fillText(range.label, x, y + 1);
  const start = x + context.measureText(range.label).width + 12;
  const [low, high] = rangeTexts(range);
  context.fillText(low, start, y + 1);
  const bar = start + context.measureText(low).width + 8;
  steps.forEach((color, i) => {
    context.fillStyle = color;
    context.fillRect(bar + 3 * i, y - 7, 3, 14);
  });
  context.fillStyle = scene.theme.ink;
  context.fillText(high, bar + 3 * steps.length + 8, y + 1);
}

/** Draw a whole picture: into a canvas, or into SVG with `points` as the image of the map. */
function drawPicture(context, scene, view, size, points) {
  const head = scene.subtitle ? 62 : 42;
  const lines = legendLines(context, scene, size.width);
  const foot = (lines.at(-1)?.y ?? 0) + 36 + (scene.paint.range ? LINE : 0);
  const height = head + size.height + foot;
  context.fillStyle = scene.page;
  context.fillRect(0, 0, size.width, height);
  context.textAlign = "left";
  context.textBaseline = "alphabetic";
  context.fillStyle = scene.theme.ink;
  context.font = `600 18px ${FONT}`;
  context.fillText(scene.title, 12, 28);
  context.fillStyle = scene.theme.muted;
  context.font = `13px ${FONT}`;
  if (scene.subtitle) context.fillText(scene.subtitle, 12, 50);
  context.save();
  context.translate(0, head);
  context.clipTo(size.width, size.height);
  context.drawImage(points, 0, 0, size.width, size.height);
  drawOverlay(context, scene, view, size);
  context.restore();
  context.font = `13px ${FONT}`;
  context.textAlign = "left";
  context.textBaseline = "middle";
  for (const { mark, text, x, y } of lines) {
    const line = head + size.height + 20 + y;
    drawSymbol(context, mark, x + 8, line, Math.min(mark.size * 1.6, 14));
    context.fillStyle = scene.theme.ink;
    context.fillText(text, x + 20, line + 1);
  }
  if (scene.paint.range) drawRamp(context, scene, 12, height - 16);
  return height;
}

/** The height of a picture, which is known once its legend is broken into lines. */
function pictureHeight(scene, size) {
  const ruler = new OffscreenCanvas(1, 1).getContext("2d");
  const lines = legendLines(ruler, scene, size.width);
  const foot = (lines.at(-1)?.y ?? 0) + 36 + (scene.paint.range ? LINE : 0);
  return (scene.subtitle ? 62 : 42) + size.height + foot;
}

function pointsImage(scene, view, size, density) {
  const canvas = document.createElement("canvas");
  canvas.width = Math.round(size.width * density);
  canvas.height = Math.round(size.height * density);
  drawPoints(canvas.getContext("2d"), scene, view, size, density, false);
  return canvas;
}

/** Draw what is shown for a paper: at least twice as fine as the screen. */
function pngOf(scene, view, size) {
  const density = Math.max(2, PRINT / size.width);
  const canvas = document.createElement("canvas");
  canvas.width = Math.round(size.width * density);
  canvas.height = Math.round(pictureHeight(scene, size) * density);
  const context = canvas.getContext("2d");
  context.scale(density, density);
  context.clipTo = (width, height) => {
    context.beginPath();
    context.rect(0, 0, width, height);
    context.clip();
  };
  drawPicture(context, scene, view, size, pointsImage(scene, view, size, density));
  return pngBytes(canvas);
}

function svgOf(scene, view, size) {
  const writer = new SvgWriter(size.width, pictureHeight(scene, size));
  drawPicture(writer, scene, view, size, pointsImage(scene, view, size, 3));
  return writer.text();
}
