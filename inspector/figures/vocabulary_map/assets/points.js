// The points of a map, where they are on the screen, and which one is meant by a place there.

function unpack(text, Type) {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  return new Type(bytes.buffer);
}

/** Unpack what Python packed. Points come in drawing order: later ones lie on top. */
function unpackPoints(data) {
  const tokenId = unpack(data.token_id, Int32Array);
  const points = {
    count: tokenId.length,
    xy: unpack(data.xy, Float32Array),
    norm: unpack(data.norm, Float32Array),
    kind: unpack(data.kind, Uint8Array),
    tokenId,
    tokens: data.tokens.split("\n"),
    row: new Map(),
  };
  tokenId.forEach((id, row) => points.row.set(id, row));
  return { ...points, bounds: boundsOf(points.xy) };
}

function boundsOf(xy) {
  const bounds = { left: Infinity, right: -Infinity, low: Infinity, high: -Infinity };
  for (let i = 0; i < xy.length; i += 2) {
    bounds.left = Math.min(bounds.left, xy[i]);
    bounds.right = Math.max(bounds.right, xy[i]);
    bounds.low = Math.min(bounds.low, xy[i + 1]);
    bounds.high = Math.max(bounds.high, xy[i + 1]);
  }
  return xy.length ? bounds : { left: 0, right: 1, low: 0, high: 1 };
}

/** A view that shows all points: its centre in the map's units, and pixels for a unit. */
function wholeView(bounds, width, height) {
  const across = Math.max(bounds.right - bounds.left, 1e-9);
  const upward = Math.max(bounds.high - bounds.low, 1e-9);
  return {
    x: (bounds.left + bounds.right) / 2,
    y: (bounds.low + bounds.high) / 2,
    scale: Math.min((width - 60) / across, (height - 60) / upward),
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

/** The row nearest to a place on the screen, within a reach in pixels; -1 for none. */
function pick(points, shown, view, size, place, reach) {
  let best = -1;
  let bestDistance = reach * reach;
  const x = view.x + (place[0] - size.width / 2) / view.scale;
  const y = view.y - (place[1] - size.height / 2) / view.scale;
  const square = view.scale * view.scale;
  for (let row = 0; row < points.count; row++) {
    const dx = points.xy[2 * row] - x;
    const dy = points.xy[2 * row + 1] - y;
    const distance = (dx * dx + dy * dy) * square;
    if (distance <= bestDistance && shown[points.kind[row]]) {
      best = row;
      bestDistance = distance;
    }
  }
  return best;
}
