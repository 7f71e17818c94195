// What lies above the points: rings, labels, names of the axes; and the picture to download.

const FONT = '"Source Sans Pro", "Source Sans 3", "Helvetica Neue", Arial, sans-serif';
const NEARBY = 40; // with fewer points than this in view, all of them are labelled
const RING = 16; // pixels around padding that no label may cover
const MATCHES = 40; // labels of search results; the others have a ring

function ring(context, x, y, radius, color, width) {
  context.beginPath();
  context.arc(x, y, radius, 0, 2 * Math.PI);
  context.lineWidth = width;
  context.strokeStyle = color;
  context.stroke();
}

function shortened(text, length) {
  return text.length <= length ? text : text.slice(0, length - 1) + "…";
}

/** Rows to label with colour and box, the most important first. */
function labelsOf(scene, view, size) {
  const { points, kinds, shown } = scene;
  const labels = [];
  const seen = new Set();
  const add = (row, color, must) => {
    if (row === undefined || seen.has(row)) return;
    seen.add(row);
    labels.push({ row, color, must });
  };
  if (scene.selected !== null) add(points.row.get(scene.selected), scene.theme.accent, true);
  const rows = [];
  for (let row = points.count - 1; row >= 0; row--) {
    if (kinds[points.kind[row]].labelled && shown[points.kind[row]]) rows.push(row);
    else if (!kinds[points.kind[row]].labelled && points.kind[row] === 0) break;
  }
  for (const row of rows) {
    const kind = kinds[points.kind[row]];
    add(row, kind.color, kind.ringed);
  }
  [...scene.highlighted].slice(0, MATCHES).forEach((id) => {
    add(points.row.get(id), scene.theme.ink, false);
  });
  for (const row of nearby(scene, view, size)) add(row, scene.theme.muted, false);
  return labels;
}

/** The rows in view, if they are so few that each can be named. */
function nearby(scene, view, size) {
  const { points, shown } = scene;
  const halfWidth = size.width / 2 / view.scale;
  const halfHeight = size.height / 2 / view.scale;
  const rows = [];
  for (let row = points.count - 1; row >= 0; row--) {
    if (!shown[points.kind[row]]) continue;
    if (Math.abs(points.xy[2 * row] - view.x) > halfWidth) continue;
    if (Math.abs(points.xy[2 * row + 1] - view.y) > halfHeight) continue;
    rows.push(row);
    if (rows.length > NEARBY) return [];
  }
  return rows;
}

function overlaps(a, b) {
  return a.x < b.x + b.width && b.x < a.x + a.width && a.y < b.y + b.height && b.y < a.y + a.height;
}

/** A free place beside (x, y) for a box, or the first one tried if it must be shown. */
function placed(box, x, y, gap, taken, size, must) {
  const corners = [
    [gap, -gap - box.height],
    [gap, gap],
    [-gap - box.width, -gap - box.height],
    [-gap - box.width, gap],
    [-box.width / 2, -2 * gap - box.height],
    [-box.width / 2, 2 * gap],
    [3 * gap, -3 * gap - box.height],
    [3 * gap, 3 * gap],
    [-3 * gap - box.width, -3 * gap - box.height],
    [-3 * gap - box.width, 3 * gap],
  ].map(([dx, dy]) => ({ ...box, x: x + dx, y: y + dy }));
  const inside = (b) =>
    b.x >= 2 && b.y >= 2 && b.x + b.width <= size.width - 2 && b.y + b.height <= size.height - 2;
  const free = corners.find((b) => inside(b) && !taken.some((other) => overlaps(b, other)));
  return free ?? (must ? corners[0] : null);
}

/** Choose places for the labels, the most important first, clear of each other and of rings. */
function placeLabels(context, scene, view, size) {
  const { points, kinds } = scene;
  const at = (row) => toScreen(view, size, points.xy[2 * row], points.xy[2 * row + 1]);
  const isRinged = (row) => kinds[points.kind[row]].ringed;
  const labels = labelsOf(scene, view, size);
  const taken = labels
    .filter(({ row }) => isRinged(row))
    .map(({ row }) => at(row))
    .map(([x, y]) => ({ x: x - RING, y: y - RING, width: 2 * RING, height: 2 * RING }));
  const boxes = [];
  context.font = `600 13px ${FONT}`;
  for (const { row, color, must } of labels) {
    const [x, y] = at(row);
    if (x < 0 || y < 0 || x > size.width || y > size.height) continue;
    const text = shortened(points.tokens[row], 24) || "(empty)";
    const box = { width: context.measureText(text).width + 10, height: 20, x: 0, y: 0 };
    const place = placed(box, x, y, isRinged(row) ? RING + 1 : 12, taken, size, must);
    if (!place) continue;
    taken.push(place);
    boxes.push({ place, text, color, x, y });
  }
  return boxes;
}

/** Lines from points to their labels: below all rings and boxes. */
function drawLeaders(context, boxes) {
  context.lineWidth = 1;
  for (const { place, color, x, y } of boxes) {
    context.beginPath();
    context.moveTo(x, y);
    context.lineTo(
      Math.min(Math.max(x, place.x), place.x + place.width),
      Math.min(Math.max(y, place.y), place.y + place.height),
    );
    context.strokeStyle = color;
    context.stroke();
  }
}

function drawBoxes(context, boxes, ground) {
  context.font = `600 13px ${FONT}`;
  context.textBaseline = "middle";
  context.textAlign = "left";
  context.lineWidth = 1;
  for (const { place, text, color } of boxes) {
    context.beginPath();
    context.roundRect(place.x, place.y, place.width, place.height, 3);
    context.fillStyle = ground;
    context.fill();
    context.strokeStyle = color;
    context.stroke();
    context.fillStyle = color;
    context.fillText(text, place.x + 5, place.y + place.height / 2 + 1);
  }
}

function drawRings(context, scene, view, size) {
  const { points, theme } = scene;
  const at = (row) => toScreen(view, size, points.xy[2 * row], points.xy[2 * row + 1]);
  for (const id of scene.highlighted) {
    const row = points.row.get(id);
    if (row === undefined || !scene.shown[points.kind[row]]) continue;
    const [x, y] = at(row);
    drawSymbol(context, { symbol: "circle", color: theme.ink }, x, y, 6);
    ring(context, x, y, 6.5, theme.ink, 1.5);
  }
  for (let row = points.count - 1; row >= 0 && scene.kinds[points.kind[row]].ringed; row--) {
    if (!scene.shown[points.kind[row]]) continue;
    const kind = scene.kinds[points.kind[row]];
    const [x, y] = at(row);
    ring(context, x, y, 14, scene.page, 5);
    ring(context, x, y, 14, kind.color, 2.5);
    drawSymbol(context, kind, x, y, kind.size);
  }
  const row = scene.selected === null ? undefined : points.row.get(scene.selected);
  if (row === undefined) return;
  const [x, y] = at(row);
  ring(context, x, y, 10, scene.page, 5);
  ring(context, x, y, 10, theme.accent, 3);
}

function drawAxes(context, scene, size) {
  context.font = `12px ${FONT}`;
  context.fillStyle = scene.theme.muted;
  context.textBaseline = "alphabetic";
  context.textAlign = "right";
  context.fillText(scene.axes[0] ? `${scene.axes[0]} →` : "", size.width - 8, size.height - 8);
  context.save();
  context.translate(16, 8);
  context.rotate(-Math.PI / 2);
  context.fillText(scene.axes[1] ? `${scene.axes[1]} →` : "", 0, 0);
  context.restore();
}

/** Draw everything for a view into a context whose canvas has the right size already. */
function drawMap(context, scene, view, size, density, moving = false) {
  context.setTransform(1, 0, 0, 1, 0, 0);
  drawPoints(context, scene, view, size, density, moving);
  context.setTransform(density, 0, 0, density, 0, 0);
  drawAxes(context, scene, size);
  const labels = placeLabels(context, scene, view, size);
  drawLeaders(context, labels);
  drawRings(context, scene, view, size);
  drawBoxes(context, labels, scene.page);
}

/** Draw what is shown with title and legend, twice as fine as the screen, for a paper. */
function drawPicture(scene, view, size) {
  const density = 2;
  const head = scene.subtitle ? 62 : 42;
  const map = new OffscreenCanvas(size.width * density, size.height * density);
  drawMap(map.getContext("2d"), scene, view, size, density);
  const kinds = scene.kinds.filter((_, index) => scene.shown[index]);
  const measure = map.getContext("2d");
  measure.font = `13px ${FONT}`;
  const entries = [];
  let [x, y] = [12, 0];
  for (const kind of kinds) {
    const text = `${kind.name} (${kind.count.toLocaleString("en")})`;
    const width = measure.measureText(text).width + 40;
    if (x + width > size.width && x > 12) [x, y] = [12, y + 24];
    entries.push({ kind, text, x, y });
    x += width;
  }
  const canvas = document.createElement("canvas");
  canvas.width = size.width * density;
  canvas.height = (head + size.height + y + 36) * density;
  const context = canvas.getContext("2d");
  context.scale(density, density);
  context.fillStyle = scene.page;
  context.fillRect(0, 0, canvas.width, canvas.height);
  context.fillStyle = scene.theme.ink;
  context.font = `600 18px ${FONT}`;
  context.fillText(scene.title, 12, 28);
  context.fillStyle = scene.theme.muted;
  context.font = `13px ${FONT}`;
  context.fillText(scene.subtitle, 12, 50);
  context.drawImage(map, 0, head, size.width, size.height);
  context.textBaseline = "middle";
  for (const entry of entries) {
    const line = head + size.height + 20 + entry.y;
    drawSymbol(context, entry.kind, entry.x + 8, line, Math.min(entry.kind.size * 1.6, 14));
    context.fillStyle = scene.theme.ink;
    context.fillText(entry.text, entry.x + 20, line + 1);
  }
  return canvas;
}

function download(canvas, name) {
  canvas.toBlob((blob) => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(blob);
    link.download = `${name}.png`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  }, "image/png");
}
