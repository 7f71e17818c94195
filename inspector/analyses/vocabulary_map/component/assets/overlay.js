// What lies above the points: lines to true neighbors, rings, labels, names of the axes.
// The context may be a canvas' or the SVG writer.

const FONT = '"Source Sans", "Source Sans Pro", "Source Sans 3", "Helvetica Neue", Arial, sans-serif';
const NEARBY = 40; // with fewer points than this in view, all of them are labeled
const RING = 16; // pixels around padding that no label may cover
const LABELS = 40; // of search results, and of neighbors; the others have a ring
const FLAGGED = 4000; // under-trained tokens that are marked while the map moves

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

/** Where a row is on the screen. */
function placeOf(scene, view, size, row) {
  return toScreen(view, size, scene.flat.uv[2 * row], scene.flat.uv[2 * row + 1]);
}

function selectedRow(scene) {
  return scene.selected === null ? undefined : scene.points.row.get(scene.selected);
}

/** Shown rows of the kinds whose tokens are all written out, padding first. */
function namedRows(scene) {
  const rows = [];
  for (let row = scene.points.count - 1; row >= 0; row--) {
    const kind = scene.kinds[scene.points.kind[row]];
    if (!kind.labeled && !kind.ringed && scene.points.kind[row] === 0) break;
    if (kind.labeled && isShown(scene, row)) rows.push(row);
  }
  return rows;
}

/** Rows to label with color and box, the most important first. */
function labelsOf(scene, view, size) {
  const { points, kinds, theme } = scene;
  const labels = [];
  const seen = new Set();
  const add = (row, color, must) => {
    if (row === undefined || seen.has(row)) return;
    seen.add(row);
    labels.push({ row, color, must });
  };
  add(selectedRow(scene), theme.accent, true);
  for (const row of namedRows(scene)) {
    const kind = kinds[points.kind[row]];
    add(row, kind.color, kind.ringed);
  }
  [...scene.found].slice(0, LABELS).forEach((id) => add(points.row.get(id), theme.ink, false));
  scene.neighbors.slice(0, LABELS).forEach((id) => add(points.row.get(id), theme.accent, false));
  for (const row of nearby(scene, view, size)) add(row, theme.muted, false);
  return labels;
}

/** The rows in view, if they are so few that each can be named. */
function nearby(scene, view, size) {
  const halfWidth = size.width / 2 / view.scale;
  const halfHeight = size.height / 2 / view.scale;
  const rows = [];
  for (let row = scene.points.count - 1; row >= 0; row--) {
    if (Math.abs(scene.flat.uv[2 * row] - view.x) > halfWidth) continue;
    if (Math.abs(scene.flat.uv[2 * row + 1] - view.y) > halfHeight) continue;
    if (!isShown(scene, row)) continue;
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
  return free ?? (must ? (corners.find(inside) ?? corners[0]) : null);
}

/** Choose places for the labels, the most important first, clear of each other and of rings. */
function placeLabels(context, scene, view, size) {
  const { points, kinds } = scene;
  const chosen = selectedRow(scene);
  const isRinged = (row) => kinds[points.kind[row]].ringed || row === chosen;
  const labels = labelsOf(scene, view, size);
  const taken = labels
    .filter(({ row }) => isRinged(row))
    .map(({ row }) => placeOf(scene, view, size, row))
    .map(([x, y]) => ({ x: x - RING, y: y - RING, width: 2 * RING, height: 2 * RING }));
  const boxes = [];
  context.font = `600 13px ${FONT}`;
  for (const { row, color, must } of labels) {
    const [x, y] = placeOf(scene, view, size, row);
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

/** Lines from the selected token to its true neighbors: where did the map put them? */
function drawNeighbors(context, scene, view, size) {
  const from = selectedRow(scene);
  if (from === undefined) return;
  const rows = scene.neighbors.map((id) => scene.points.row.get(id));
  const places = rows.filter((row) => row !== undefined && isShown(scene, row));
  const [x, y] = placeOf(scene, view, size, from);
  for (const row of places) {
    const to = placeOf(scene, view, size, row);
    context.beginPath();
    context.moveTo(x, y);
    context.lineTo(...to);
    context.lineWidth = 1.2;
    context.strokeStyle = scene.theme.accent;
    context.stroke();
  }
  for (const row of places) {
    const to = placeOf(scene, view, size, row);
    drawSymbol(context, { symbol: "circle", color: scene.theme.accent }, ...to, 7);
    ring(context, ...to, 4, scene.page, 1);
  }
}

function drawFlagged(context, scene, view, size, moving) {
  if (!scene.showFlagged || !scene.flagged.length) return;
  if (moving && scene.flagged.length > FLAGGED) return;
  const many = scene.flagged.length > 300;
  const mark = many ? { ...scene.flag, size: 6, color: `${scene.flag.color}99` } : scene.flag;
  for (const row of scene.flagged) {
    if (!isShown(scene, row)) continue;
    drawSymbol(context, mark, ...placeOf(scene, view, size, row), mark.size);
  }
}

function drawRings(context, scene, view, size) {
  const { points, theme } = scene;
  for (const id of scene.found) {
    const row = points.row.get(id);
    if (row === undefined || !isShown(scene, row)) continue;
    const place = placeOf(scene, view, size, row);
    drawSymbol(context, { symbol: "circle", color: theme.ink }, ...place, 6);
    ring(context, ...place, 6.5, theme.ink, 1.5);
  }
  for (let row = points.count - 1; row >= 0 && scene.kinds[points.kind[row]].ringed; row--) {
    if (!isShown(scene, row)) continue;
    const kind = scene.kinds[points.kind[row]];
    const place = placeOf(scene, view, size, row);
    ring(context, ...place, 14, scene.page, 5);
    ring(context, ...place, 14, kind.color, 2.5);
    drawSymbol(context, kind, ...place, kind.size);
  }
  const row = selectedRow(scene);
  if (row === undefined) return;
  const place = placeOf(scene, view, size, row);
  ring(context, ...place, 10, scene.page, 5);
  ring(context, ...place, 10, theme.accent, 3);
}

function drawAxes(context, scene, size) {
  if (scene.flat.depth) return; // a turned cloud has no axis along the screen
  context.font = `12px ${FONT}`;
  context.fillStyle = scene.theme.muted;
  context.textBaseline = "alphabetic";
  context.textAlign = "right";
  if (scene.axes[0]) context.fillText(`${scene.axes[0]} →`, size.width - 8, size.height - 8);
  if (!scene.axes[1]) return;
  context.save();
  context.translate(16, 8);
  context.rotate(-Math.PI / 2);
  context.fillText(`${scene.axes[1]} →`, 0, 0);
  context.restore();
}

/** The way the pointer has drawn around points. */
function drawLasso(context, scene, corners) {
  context.beginPath();
  corners.forEach(([x, y], i) => (i ? context.lineTo(x, y) : context.moveTo(x, y)));
  context.closePath();
  context.fillStyle = `${scene.theme.accent}22`;
  context.fill();
  context.lineWidth = 1.5;
  context.strokeStyle = scene.theme.accent;
  context.stroke();
}

function drawOverlay(context, scene, view, size, moving = false) {
  drawAxes(context, scene, size);
  const labels = placeLabels(context, scene, view, size);
  drawFlagged(context, scene, view, size, moving);
  drawNeighbors(context, scene, view, size);
  drawLeaders(context, labels);
  drawRings(context, scene, view, size);
  drawBoxes(context, labels, scene.page);
}

/** Draw everything for a view into a context whose canvas has the right size already. */
function drawMap(context, scene, view, size, density, moving = false, lasso = null) {
  context.setTransform(1, 0, 0, 1, 0, 0);
  drawPoints(context, scene, view, size, density, moving);
  context.setTransform(density, 0, 0, density, 0, 0);
  drawOverlay(context, scene, view, size, moving);
  if (lasso) drawLasso(context, scene, lasso);
}
