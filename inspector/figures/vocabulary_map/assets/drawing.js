// Drawing the points into an image by hand: with many small marks this beats canvas calls by far,
// and it looks the same with and without a graphics card.

const OUTLINED = { "circle-open": true, x: true };

/** Trace one mark around (x, y); Plotly's names of symbols. */
function traceSymbol(context, symbol, x, y, radius) {
  const corners = (count, turn, inner) => {
    for (let i = 0; i < count; i++) {
      const angle = turn + (2 * Math.PI * i) / count;
      const reach = inner && i % 2 ? radius * inner : radius;
      context.lineTo(x + reach * Math.cos(angle), y + reach * Math.sin(angle));
    }
    context.closePath();
  };
  context.beginPath();
  if (symbol === "square") context.rect(x - radius, y - radius, 2 * radius, 2 * radius);
  else if (symbol === "diamond") corners(4, 0);
  else if (symbol === "triangle-up") corners(3, -Math.PI / 2);
  else if (symbol === "star") corners(10, -Math.PI / 2, 0.42);
  else if (symbol === "x") {
    context.moveTo(x - radius, y - radius);
    context.lineTo(x + radius, y + radius);
    context.moveTo(x - radius, y + radius);
    context.lineTo(x + radius, y - radius);
  } else context.arc(x, y, radius, 0, 2 * Math.PI);
}

function drawSymbol(context, kind, x, y, diameter) {
  context.fillStyle = context.strokeStyle = kind.color;
  if (OUTLINED[kind.symbol]) {
    const line = Math.max(1, diameter / 5);
    context.lineWidth = line;
    traceSymbol(context, kind.symbol, x, y, (diameter - line) / 2);
    context.stroke();
  } else {
    traceSymbol(context, kind.symbol, x, y, diameter / 2);
    context.fill();
  }
}

function channelsOf(color) {
  return [1, 3, 5].map((start) => parseInt(color.slice(start, start + 2), 16));
}

/** How much of each pixel one mark covers, 0..1, as a small square around its centre. */
function stampOf(kind, diameter, opacity) {
  const reach = Math.ceil(diameter / 2) + 1;
  const side = 2 * reach + 1;
  const canvas = new OffscreenCanvas(side, side);
  const context = canvas.getContext("2d");
  drawSymbol(context, kind, reach + 0.5, reach + 0.5, diameter);
  const pixels = context.getImageData(0, 0, side, side).data;
  const offsets = [];
  const cover = [];
  for (let i = 0; i < side * side; i++) {
    if (pixels[4 * i + 3] === 0) continue;
    offsets.push(Math.floor(i / side) - reach, (i % side) - reach);
    cover.push((pixels[4 * i + 3] / 255) * opacity);
  }
  return { reach, offsets: Int16Array.from(offsets), cover: Float32Array.from(cover) };
}

/** Lay one stamp over the image at a pixel. The image holds opaque 0xAABBGGRR. */
function press(image, width, x, y, stamp, color) {
  for (let i = 0; i < stamp.cover.length; i++) {
    const at = (y + stamp.offsets[2 * i]) * width + x + stamp.offsets[2 * i + 1];
    const under = image[at];
    const share = stamp.cover[i];
    const red = under & 255;
    const green = (under >> 8) & 255;
    const blue = (under >> 16) & 255;
    image[at] =
      0xff000000 |
      ((blue + (color[2] - blue) * share) << 16) |
      ((green + (color[1] - green) * share) << 8) |
      (red + (color[0] - red) * share);
  }
}

/** Marks grow a little as one zooms in. */
function growth(view, whole) {
  return Math.min(Math.max((view.scale / whole.scale) ** 0.3, 0.8), 2.2);
}

const MANY = 60000; // of one kind: while the map moves, only so many are drawn

/**
 * Draw the shown points.
 * @param density Device pixels for a pixel of the page.
 * @param moving Whether another frame follows at once: large kinds are thinned out until then.
 */
function drawPoints(context, scene, view, size, density, moving) {
  const width = Math.round(size.width * density);
  const height = Math.round(size.height * density);
  const picture = context.createImageData(width, height);
  const image = new Uint32Array(picture.data.buffer);
  const ground = channelsOf(scene.page);
  image.fill(0xff000000 | (ground[2] << 16) | (ground[1] << 8) | ground[0]);
  const dim = scene.highlighted.size ? 0.4 : 1;
  const grown = growth(view, scene.whole);
  const stamps = scene.kinds.map((kind) =>
    stampOf(kind, kind.size * grown * density, kind.ringed ? 1 : kind.opacity * dim),
  );
  const colors = scene.kinds.map((kind) => channelsOf(kind.color));
  const { xy, kind, count } = scene.points;
  const scale = view.scale * density;
  const left = width / 2 - view.x * scale;
  const top = height / 2 + view.y * scale;
  const steps = scene.kinds.map((k) => (moving ? Math.max(1, Math.ceil(k.count / MANY)) : 1));
  for (let row = 0; row < count; row++) {
    const k = kind[row];
    if (!scene.shown[k] || row % steps[k]) continue;
    const x = Math.floor(xy[2 * row] * scale + left);
    const y = Math.floor(top - xy[2 * row + 1] * scale);
    const reach = stamps[k].reach;
    if (x < reach || y < reach || x >= width - reach || y >= height - reach) continue;
    press(image, width, x, y, stamps[k], colors[k]);
  }
  context.putImageData(picture, 0, 0);
}
