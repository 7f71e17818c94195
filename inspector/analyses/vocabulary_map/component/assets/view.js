// Where points are on the screen, in two and three dimensions, and which ones are meant by a place.

const TILT = 0.45; // radians by which a cloud is first seen from above
const DISTANCE = 3.5; // from the eye to the middle of a cloud, in radii

/** The rotation, row by row, that turns about the screen's upright and then its level axis. */
function rotation(upright, level) {
  const [c, s, d, t] = [Math.cos(upright), Math.sin(upright), Math.cos(level), Math.sin(level)];
  return [c, 0, s, t * s, d, -t * c, -d * s, t, d * c];
}

function turned(turn, upright, level) {
  const by = rotation(upright, level);
  return turn.map((_, i) => {
    const [row, column] = [3 * Math.floor(i / 3), i % 3];
    return by[row] * turn[column] + by[row + 1] * turn[3 + column] + by[row + 2] * turn[6 + column];
  });
}

const START = rotation(0.6, TILT);

/** Middle and radius of a cloud. */
function extentOf(points) {
  const middle = [0, 1, 2].map((axis) => {
    let [low, high] = [Infinity, -Infinity];
    for (let i = axis; i < points.place.length; i += 3) {
      low = Math.min(low, points.place[i]);
      high = Math.max(high, points.place[i]);
    }
    return points.count ? (low + high) / 2 : 0;
  });
  let far = 0;
  for (let i = 0; i < points.place.length; i += 3) {
    const [x, y, z] = [0, 1, 2].map((axis) => points.place[i + axis] - middle[axis]);
    far = Math.max(far, x * x + y * y + z * z);
  }
  return { middle, radius: Math.sqrt(far) || 1 };
}

/**
 * Lay the points on a plane: those of a flat map as they are, a cloud as seen after a turn.
 * @returns uv: two numbers a point; depth: 0 (far) .. 1 (near); order: far ones first.
 */
function flatten(points, turn) {
  if (points.dimensions === 2) return { uv: points.place, depth: null, order: null };
  points.extent ??= extentOf(points);
  points.flat ??= { uv: new Float32Array(2 * points.count), depth: new Float32Array(points.count) };
  const { uv, depth } = points.flat;
  const { middle, radius } = points.extent;
  const far = DISTANCE * radius;
  const [a, b, c, d, e, f, g, h, i] = turn;
  for (let row = 0; row < points.count; row++) {
    const x = points.place[3 * row] - middle[0];
    const y = points.place[3 * row + 1] - middle[1];
    const z = points.place[3 * row + 2] - middle[2];
    const toward = g * x + h * y + i * z;
    const nearer = far / (far - toward);
    uv[2 * row] = (a * x + b * y + c * z) * nearer;
    uv[2 * row + 1] = (d * x + e * y + f * z) * nearer;
    depth[row] = (toward / radius + 1) / 2;
  }
  points.flat.order = farFirst(points, depth);
  return points.flat;
}

/** Sort rows by depth in one pass; padding and special tokens come last all the same. */
function farFirst(points, depth) {
  const steps = 256;
  const above = points.kinds.map(([name]) => ["special", "padding"].indexOf(name));
  const bucketOf = (row) => {
    const rank = above[points.kind[row]];
    return rank < 0 ? Math.min(Math.max(Math.floor(depth[row] * steps), 0), steps - 1) : steps + rank;
  };
  const starts = new Uint32Array(steps + 3);
  for (let row = 0; row < points.count; row++) starts[bucketOf(row) + 1]++;
  for (let i = 1; i < starts.length; i++) starts[i] += starts[i - 1];
  points.order ??= new Uint32Array(points.count);
  for (let row = 0; row < points.count; row++) points.order[starts[bucketOf(row)]++] = row;
  return points.order;
}

/** A view that shows all points: its center in the plane's units, and pixels for a unit. */
function wholeView(uv, size) {
  let [left, right, low, high] = [Infinity, -Infinity, Infinity, -Infinity];
  for (let i = 0; i < uv.length; i += 2) {
    left = Math.min(left, uv[i]);
    right = Math.max(right, uv[i]);
    low = Math.min(low, uv[i + 1]);
    high = Math.max(high, uv[i + 1]);
  }
  if (!uv.length) [left, right, low, high] = [0, 1, 0, 1];
  return {
    x: (left + right) / 2,
    y: (low + high) / 2,
    scale: Math.min(
      Math.max(size.width - 60, 20) / Math.max(right - left, 1e-9),
      (size.height - 60) / Math.max(high - low, 1e-9),
    ),
  };
}

function toScreen(view, size, x, y) {
  return [(x - view.x) * view.scale + size.width / 2, (view.y - y) * view.scale + size.height / 2];
}

/** Zoom by a factor around a place on the screen, which stays where it is. */
function zoomed(view, size, factor, place, whole) {
  const scale = Math.min(Math.max(view.scale * factor, whole.scale / 2), whole.scale * 4000);
  const dx = place[0] - size.width / 2;
  const dy = place[1] - size.height / 2;
  const shift = 1 / view.scale - 1 / scale;
  return { x: view.x + dx * shift, y: view.y - dy * shift, scale };
}

function isShown(scene, row) {
  return scene.shown[scene.points.kind[row]] && scene.paint.shown[scene.paint.index[row]];
}

/** The row nearest to a place on the screen, within a reach in pixels; -1 for none. */
function pick(scene, view, size, place, reach, kinds = null) {
  const { uv, depth } = scene.flat;
  const x = view.x + (place[0] - size.width / 2) / view.scale;
  const y = view.y - (place[1] - size.height / 2) / view.scale;
  const square = view.scale * view.scale;
  let best = -1;
  let bestDistance = reach * reach;
  for (let row = 0; row < scene.points.count; row++) {
    const dx = uv[2 * row] - x;
    const dy = uv[2 * row + 1] - y;
    let distance = (dx * dx + dy * dy) * square;
    if (distance > bestDistance || !isShown(scene, row)) continue;
    if (kinds && !kinds[scene.points.kind[row]]) continue;
    if (depth) distance += 4 * (1 - depth[row]); // of two at one place, the one in front
    if (distance > bestDistance) continue;
    best = row;
    bestDistance = distance;
  }
  return best;
}

/** The shown rows inside a polygon of places on the screen. */
function rowsInside(scene, view, size, corners) {
  const [xs, ys] = [corners.map(([x]) => x), corners.map(([, y]) => y)];
  const [left, right] = [Math.min(...xs), Math.max(...xs)];
  const [top, bottom] = [Math.min(...ys), Math.max(...ys)];
  const rows = [];
  for (let row = 0; row < scene.points.count; row++) {
    const [x, y] = toScreen(view, size, scene.flat.uv[2 * row], scene.flat.uv[2 * row + 1]);
    if (x < left || x > right || y < top || y > bottom || !isShown(scene, row)) continue;
    let inside = false;
    for (let i = 0, j = xs.length - 1; i < xs.length; j = i++) {
      if (ys[i] > y === ys[j] > y) continue;
      if (x < ((xs[j] - xs[i]) * (y - ys[i])) / (ys[j] - ys[i]) + xs[i]) inside = !inside;
    }
    if (inside) rows.push(row);
  }
  return rows;
}
