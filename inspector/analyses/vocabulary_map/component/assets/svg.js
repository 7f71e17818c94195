// The few calls of a canvas that the overlay makes, written as SVG.

const SVG = "http://www.w3.org/2000/svg";

class SvgWriter {
  constructor(width, height) {
    this.root = this.make("svg", { width, height, viewBox: `0 0 ${width} ${height}` });
    this.group = this.root;
    this.stack = [];
    this.ruler = new OffscreenCanvas(1, 1).getContext("2d");
    Object.assign(this, { path: "", lineWidth: 1, textAlign: "left", textBaseline: "alphabetic" });
  }

  make(name, attributes, parent = null) {
    const node = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    parent?.append(node);
    return node;
  }

  beginPath() {
    this.path = "";
  }
  moveTo(x, y) {
    this.path += `M${x.toFixed(2)} ${y.toFixed(2)}`;
  }
  lineTo(x, y) {
    this.path += `L${x.toFixed(2)} ${y.toFixed(2)}`;
  }
  closePath() {
    this.path += "Z";
  }
  rect(x, y, width, height) {
    this.path += `M${x} ${y}h${width}v${height}h${-width}Z`;
  }
  roundRect(x, y, width, height) {
    this.rect(x.toFixed(2), y.toFixed(2), width, height);
  }
  /** Whole circles only: nothing else is drawn. */
  arc(x, y, r) {
    this.path += `M${x - r} ${y}a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${-2 * r} 0Z`;
  }
  fill() {
    this.make("path", { d: this.path, fill: this.fillStyle }, this.group);
  }
  stroke() {
    const how = { fill: "none", stroke: this.strokeStyle, "stroke-width": this.lineWidth };
    this.make("path", { d: this.path, ...how }, this.group);
  }
  fillRect(x, y, width, height) {
    this.make("rect", { x, y, width, height, fill: this.fillStyle }, this.group);
  }
  drawImage(canvas, x, y, width, height) {
    const href = canvas.toDataURL("image/png");
    this.make("image", { href, x, y, width, height }, this.group);
  }
  measureText(text) {
    this.ruler.font = this.font;
    return this.ruler.measureText(text);
  }
  fillText(text, x, y) {
    const [, weight, size] = /^(?:(\d+) )?(\d+)px/.exec(this.font);
    const node = this.make("text", {
      x,
      y,
      fill: this.fillStyle,
      "font-size": size,
      "font-weight": weight ?? 400,
      "font-family": FONT,
      "text-anchor": this.textAlign === "right" ? "end" : "start",
      "dominant-baseline": this.textBaseline === "middle" ? "central" : "auto",
      "xml:space": "preserve",
    });
    node.textContent = text.replace(/[\uFFFE\uFFFF]/g, "\uFFFD"); // XML cannot hold these
    this.group.append(node);
  }
  save() {
    this.stack.push(this.group);
  }
  restore() {
    this.group = this.stack.pop();
  }
  translate(x, y) {
    this.group = this.make("g", { transform: `translate(${x} ${y})` }, this.group);
  }
  rotate(angle) {
    const degrees = (angle * 180) / Math.PI;
    this.group = this.make("g", { transform: `rotate(${degrees})` }, this.group);
  }

  /** Keep what is drawn next inside a box. */
  clipTo(width, height) {
    const clip = this.make("clipPath", { id: "map" }, this.root);
    this.make("rect", { x: 0, y: 0, width, height }, clip);
    this.group.setAttribute("clip-path", "url(#map)");
  }
  text() {
    return new XMLSerializer().serializeToString(this.root);
  }
}
