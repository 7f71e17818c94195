// The points of a map: unpacked once, kept by their content for every map of the page.

const TYPES = { f4: Float32Array, i4: Int32Array, u1: Uint8Array };
// One store for both components (the one that brings points, the one that draws them).
const STORE = (globalThis[Symbol.for("vocabulary map")] ??= { kept: new Map(), waiting: new Set() });
const KEPT = 4; // maps that can be drawn again at once

/** Unpack what Python packed: a head in JSON, then arrays. Points come in drawing order. */
function unpackPoints(bytes) {
  const length = new DataView(bytes.buffer, bytes.byteOffset).getUint32(0, true);
  const decoder = new TextDecoder();
  const head = JSON.parse(decoder.decode(bytes.subarray(4, 4 + length)));
  const points = { ...head, row: new Map() };
  for (const [name, type, start, nbytes] of head.arrays) {
    const part = bytes.slice(start, start + nbytes);
    points[name] = type === "text" ? decoder.decode(part).split("\n") : new TYPES[type](part.buffer);
  }
  points.count = points.token_id.length;
  points.token_id.forEach((id, row) => points.row.set(id, row));
  return points;
}

/** Keep the points that have come, and tell the maps that wait for them. */
function storePoints(bytes) {
  const points = unpackPoints(bytes);
  STORE.kept.delete(points.digest);
  STORE.kept.set(points.digest, points);
  while (STORE.kept.size > KEPT) STORE.kept.delete(STORE.kept.keys().next().value);
  for (const map of [...STORE.waiting]) map.pointsCame();
}

/** What can be said of one token, a line each. */
function linesAbout(points, row) {
  const lines = [
    points.tokens[row] || "(empty)",
    `id ${points.token_id[row]} · ${points.kinds[points.kind[row]][0]}`,
    `norm ${points.norm[row].toFixed(3)}`,
  ];
  const say = (name, text) => {
    if (points[name] && !Number.isNaN(points[name][row])) lines.push(text(points[name][row]));
  };
  say("trust", (share) => `true neighbors kept here: ${Math.round(100 * share)} %`);
  say("stability", (share) => `kept under another seed: ${Math.round(100 * share)} %`);
  say("score", (score) => `under-training score ${score.toFixed(3)}`);
  if (points.flagged?.[row]) lines.push("looks under-trained");
  return lines;
}
