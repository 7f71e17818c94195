// What color a point has: by its kind, by a number, or by the script of its text.

const SCRIPTS = [
  "Latin", "Cyrillic", "Greek", "Han", "Hangul", "Arabic", "Hebrew", "Devanagari", "Bengali",
  "Tamil", "Telugu", "Thai", "Georgian", "Armenian",
].map((name) => [name, new RegExp(`\\p{Script=${name}}`, "u")]);
SCRIPTS.push(["Kana", /[\p{Script=Hiragana}\p{Script=Katakana}]/u]);
const LETTER = /[\p{L}\p{M}]/u;
const BYTES = /^␣?(<0x[0-9A-F]{2}>)+$/;
const TEXT = new Set(["word", "subword"]);
const OTHER = "other scripts";
const GRAY = new Set(["not text", OTHER]);

/** The Unicode script of a token's first letter; without letters, what it is instead. */
function scriptOf(token, kind) {
  if (kind === "byte" || BYTES.test(token)) return "bytes";
  if (!TEXT.has(kind)) return "not text";
  const text = token.replace(/^(␣|##)/, "") || token;
  const first = text.charCodeAt(0) | 32;
  if (first >= 97 && first <= 122) return "Latin"; // nearly all, and much faster
  const letter = LETTER.exec(text)?.[0];
  if (letter) return SCRIPTS.find(([, script]) => script.test(letter))?.[0] ?? OTHER;
  return /\p{N}/u.test(text) ? "digits" : "punctuation, symbols";
}

function channelsOf(color) {
  return [1, 3, 5].map((start) => parseInt(color.slice(start, start + 2), 16));
}

/** A color of a ramp at 0..1. */
function rampColor(ramp, share) {
  const place = share * (ramp.length - 1);
  const low = Math.min(Math.floor(place), ramp.length - 2);
  const [from, to] = [channelsOf(ramp[low]), channelsOf(ramp[low + 1])];
  const mixed = from.map((part, i) => Math.round(part + (to[i] - part) * (place - low)));
  return `#${mixed.map((part) => part.toString(16).padStart(2, "0")).join("")}`;
}

const STEPS = 64;

/** Numbers as colors; ends beyond the range that holds 98 % are drawn in the ends' colors. */
function paintNumbers(values, by, theme) {
  const finite = Float32Array.from(values).filter(Number.isFinite).sort();
  let [low, high] = by.range ?? [
    finite[Math.floor(0.01 * (finite.length - 1))] ?? 0,
    finite[Math.ceil(0.99 * (finite.length - 1))] ?? 1,
  ];
  if (!(high > low)) [low, high] = [low - 0.5, low + 0.5];
  const index = new Uint8Array(values.length);
  for (let row = 0; row < values.length; row++) {
    const share = (values[row] - low) / (high - low);
    index[row] = Number.isFinite(share)
      ? Math.min(Math.max(Math.floor(share * STEPS), 0), STEPS - 1)
      : STEPS;
  }
  const palette = Array.from({ length: STEPS }, (_, i) => rampColor(theme.values, i / (STEPS - 1)));
  const beyond = [finite[0] < low, finite[finite.length - 1] > high];
  return {
    index,
    palette: [...palette, theme.none],
    shown: new Array(STEPS + 1).fill(true),
    range: { low, high, beyond, missing: values.length - finite.length, ...by },
  };
}

/** Scripts as colors: the most frequent ones have their own, the others are gray. */
function paintScripts(points, theme, hidden) {
  points.script ??= points.tokens.map((token, row) =>
    scriptOf(token, points.kinds[points.kind[row]][0]),
  );
  const counts = new Map();
  for (const name of points.script) counts.set(name, (counts.get(name) ?? 0) + 1);
  const colored = [...counts.keys()]
    .filter((name) => !GRAY.has(name))
    .sort((a, b) => counts.get(b) - counts.get(a));
  const own = colored.slice(0, theme.groups.length);
  const folded = colored.slice(theme.groups.length);
  const rest = folded.reduce((sum, name) => sum + counts.get(name), counts.get(OTHER) ?? 0);
  const names = [...own, ...(rest ? [OTHER] : []), ...(counts.has("not text") ? ["not text"] : [])];
  counts.set(OTHER, rest);
  const place = new Map(names.map((name, i) => [name, i]));
  return {
    index: Uint8Array.from(points.script, (name) => place.get(name) ?? place.get(OTHER)),
    palette: names.map((name, i) => (GRAY.has(name) ? theme.none : theme.groups[i])),
    shown: names.map((name) => !hidden.has(name)),
    entries: names.map((name) => ({ name, count: counts.get(name) })),
  };
}

/** Paint all points; kept with the points as long as nothing changes. */
function paintOf(points, by, kinds, theme, hidden) {
  const key = JSON.stringify([by, theme.name, [...hidden].sort()]);
  if (points.painted?.key === key) return points.painted;
  let paint;
  if (by.name === "script") paint = paintScripts(points, theme, hidden);
  else if (points[by.name] && by.name !== "kind") paint = paintNumbers(points[by.name], by, theme);
  else {
    paint = { index: points.kind, palette: kinds.map((kind) => kind.color), byKind: true };
    paint.shown = kinds.map(() => true);
  }
  points.painted = { ...paint, key };
  return points.painted;
}
