// Drawing the points into an image by hand: with many small marks this beats canvas calls by far,
// and it looks the same with and without a graphics card.

const OUTLINED = { "circle-open": true, x: true, "triangle-down": true };
const MANY = 60000; // while the map moves, only about so many points are drawn
const DIM = 0.45; // opacity of what was not looked for
const NEARNESS = 4; // steps of size in a cloud: what is near is larger and fuller

/** Trace one mark around (x, y); Plotly's names of symbols. */
function traceSymbol(context, symbol, x, y, radius) {
  const corners = (count, turn, inner) => {
    for (let i = 0; i < count; i++) {
      const angle = turn + (2 * Math.PI * i) / count;
      const reach = inner && i % 2 ? radius * inner : radius;
      const corner = [x + reach * Math.cos(angle), y + reach * Math.sin(angle)];
      if (i) context.lineTo(...corner);
      else context.moveTo(...corner);
    }
    context.closePath();
  };
  context.beginPath();
  if (symbol === "square") context.rect(x - radius, y - radius, 2 * radius, 2 * radius);
  else if (symbol === "diamond") corners(4, 0);
  else if (symbol === "triangle-up") corners(3, -Math.PI / 2);
  else if (symbol === "triangle-down") corners(3, Math.PI / 2);
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
    const line = Math.max(1, diameter / 6);
    context.lineWidth = line;
    traceSymbol(context, kind.symbol, x, y, (diameter - line) / 2);
    context.stroke();
  } else {
    traceSymbol(context, kind.symbol, x, y, diameter / 2);
    context.fill();
  }
}

/** How much of each pixel one mark covers, 0..1, as a small square around its center. */
function stampOf(kind, diameter, opacity, width) {
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
    offsets.push((Math.floor(i / side) - reach) * width + (i % side) - reach);
    cover.push((pixels[4 * i + 3] / 255) * opacity);
  }
  return { reach, offsets: Int32Array.from(offsets), cover: Float32Array.from(cover) };
}

/** Lay one stamp over the image at a pixel. The image holds opaque 0xAABBGGRR. */
function press(image, middle, stamp, color) {
  const { offsets, cover } = stamp;
  const [r, g, b] = color;
  for (let i = 0; i < cover.length; i++) {
    const under = image[middle + offsets[i]];
    const share = cover[i];
    const red = under & 255;
    const green = (under >> 8) & 255;
    const blue = (under >> 16) & 255;
    image[middle + offsets[i]] =
      0xff000000 |
      ((blue + (b - blue) * share) << 16) |
      ((green + (g - green) * share) << 8) |
      (red + (r - red) * share);
  }
}

/** Marks grow a little as one zooms in. */
function growth(view, whole) {
  return Math.min(Math.max((view.scale / whole.scale) ** 0.3, 0.8), 2.2);
}

/** A stamp for each kind, step of nearness, and whether it is dimmed: `[kind][step][dimmed]`. */
function stampsOf(scene, view, density, width) {
  const grown = growth(view, scene.whole) * density;
  const steps = scene.flat.depth ? NEARNESS : 1;
  return scene.kinds.map((kind) =>
    Array.from({ length: steps }, (_, step) => {
      const near = steps === 1 || kind.ringed ? 1 : (step + 0.5) / steps;
      const size = kind.size * grown * (steps === 1 ? 1 : 0.7 + 0.6 * near);
      const full = scene.paint.byKind ? kind.opacity : Math.max(kind.opacity, 0.8);
      const opacity = kind.ringed ? 1 : full * (steps === 1 ? 1 : 0.45 + 0.55 * near);
      return [1, DIM].map((share) => stampOf(kind, size, opacity * share, width));
    }),
  );
}

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
  const stamps = stampsOf(scene, view, density, width);
  const colors = scene.paint.palette.map(channelsOf);
  const { kind, count } = scene.points;
  const { uv, depth, order } = scene.flat;
  const { shown, chosen } = scene;
  const { index, shown: paintShown } = scene.paint;
  const dimmed = scene.found.size || scene.neighbors.length ? 1 : 0;
  const scale = view.scale * density;
  const left = width / 2 - view.x * scale;
  const top = height / 2 + view.y * scale;
  const thin = moving ? Math.max(1, Math.ceil(count / MANY)) : 1;
  const skip = scene.kinds.map((k) => (k.count > 2000 ? thin : 1));
  for (let at = 0; at < count; at++) {
    const row = order ? order[at] : at;
    const k = kind[row];
    if (!shown[k] || !paintShown[index[row]] || row % skip[k]) continue;
    const near = depth ? Math.min(Math.max(Math.floor(depth[row] * NEARNESS), 0), NEARNESS - 1) : 0;
    const stamp = stamps[k][near][chosen ? (chosen[row] ? 0 : 1) : dimmed];
    const x = Math.floor(uv[2 * row] * scale + left);
    const y = Math.floor(top - uv[2 * row + 1] * scale);
    const reach = stamp.reach;
    if (x < reach || y < reach || x >= width - reach || y >= height - reach) continue;
    press(image, y * width + x, stamp, colors[index[row]]);
  }
  context.putImageData(picture, 0, 0);
}
