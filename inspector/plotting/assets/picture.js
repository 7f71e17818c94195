// A drawing as a file: in letters of its own, with what it shows and where that comes from.
"use strict";

const FONTS = []; // [family, weight, base64 of a WOFF2 with the Latin letters]; filled in by `picture_files.py`
const XMLNS = "http://www.w3.org/2000/svg";
const PER_METER = Math.round(300 * 39.37); // dots, on paper

/** A drawing with its facts, and with the fonts that it uses. */
function labeledDrawing(svg, facts) {
  const drawing = new DOMParser().parseFromString(svg, "image/svg+xml");
  const element = (name, text) => Object.assign(drawing.createElementNS(XMLNS, name), { textContent: text });
  const faces = FONTS.filter(([family]) => svg.includes(family)).map(
    ([family, weight, font]) =>
      `@font-face{font-family:"${family}";font-weight:${weight};src:url(data:font/woff2;base64,${font})}`,
  );
  drawing.documentElement.prepend(
    element("title", facts.Title),
    element("desc", facts.Description),
    element("metadata", JSON.stringify(facts)),
    element("style", faces.join("")),
  );
  return new XMLSerializer().serializeToString(drawing);
}

/** A drawing as PNG, of so many dots for each of its pixels. */
async function painted(svg, scale) {
  const picture = new Image();
  picture.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg)}`;
  await picture.decode();
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [picture.naturalWidth * scale, picture.naturalHeight * scale];
  canvas.getContext("2d").drawImage(picture, 0, 0, canvas.width, canvas.height);
  return pngBytes(canvas);
}

async function pngBytes(canvas) {
  const file = await new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
  return new Uint8Array(await file.arrayBuffer());
}

function crc32(bytes) {
  let crc = -1;
  for (const byte of bytes) {
    crc ^= byte;
    for (let bit = 0; bit < 8; bit++) crc = (crc >>> 1) ^ (crc & 1 ? 0xedb88320 : 0);
  }
  return ~crc >>> 0;
}

/** A chunk of a PNG (sections 5.3 and 11.3 of its specification). */
function chunk(kind, data) {
  const bytes = new Uint8Array(12 + data.length);
  const view = new DataView(bytes.buffer);
  view.setUint32(0, data.length);
  bytes.set(new TextEncoder().encode(kind), 4);
  bytes.set(data, 8);
  view.setUint32(8 + data.length, crc32(bytes.subarray(4, 8 + data.length)));
  return bytes;
}

/** A PNG with its facts as texts, and its size on paper. */
function labeledPicture(png, facts) {
  const size = new DataView(new ArrayBuffer(9));
  size.setUint32(0, PER_METER);
  size.setUint32(4, PER_METER);
  size.setUint8(8, 1); // for each meter
  const texts = Object.entries(facts).map(([name, text]) =>
    chunk("iTXt", new TextEncoder().encode(`${name}\0\0\0\0\0${text}`)), // not compressed, of no language
  );
  const head = 33; // bytes before which no chunk may be: the signature and IHDR
  return [png.subarray(0, head), chunk("pHYs", new Uint8Array(size.buffer)), ...texts, png.subarray(head)];
}

/**
 * A drawing as a file.
 * svg: Plotly's. facts: name -> text, with "Title" and "Description". scale: dots of a PNG for each pixel.
 */
async function pictureFile(svg, facts, format, scale) {
  const labeled = labeledDrawing(svg, facts);
  if (format === "svg") return new Blob([labeled], { type: "image/svg+xml" });
  return new Blob(labeledPicture(await painted(labeled, scale), facts), { type: "image/png" });
}

/** What a figure shows, in eight letters: pictures that differ have names that differ. */
function digestOf({ data, layout }) {
  const shown = JSON.stringify([data, layout], (key, value) => (key === "uid" ? undefined : value));
  let digest = 0x811c9dc5; // FNV-1a
  for (let at = 0; at < shown.length; at++) digest = Math.imul(digest ^ shown.charCodeAt(at), 0x01000193);
  return (digest >>> 0).toString(16).padStart(8, "0");
}

function saveFile(file, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(file);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
