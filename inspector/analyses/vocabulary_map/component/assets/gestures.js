// Pointers and keys: one finger or the mouse moves, turns or draws; two fingers move and zoom.

const STEP = 60; // pixels of an arrow key
const TURN = 0.008; // radians for a pixel of dragging

class Gestures {
  constructor(map, canvas) {
    this.map = map;
    this.canvas = canvas;
    this.pointers = new Map();
    this.start = null; // of a press that may still become a click
    this.corners = null; // of a lasso or box under way
    const on = (name, handler, options) => canvas.addEventListener(name, handler, options);
    on("pointerdown", (event) => this.down(event));
    on("pointermove", (event) => this.moved(event));
    on("pointerup", (event) => this.up(event));
    on("pointercancel", (event) => this.cancel(event));
    on("pointerleave", () => map.hover(null));
    on("contextmenu", (event) => event.preventDefault());
    on("keydown", (event) => this.press(event));
    on(
      "wheel",
      (event) => {
        event.preventDefault();
        const factor = Math.exp(-event.deltaY * (event.deltaMode ? 0.05 : 0.0015));
        map.zoom(factor, [event.offsetX, event.offsetY]);
      },
      { passive: false },
    );
  }

  down(event) {
    const place = [event.offsetX, event.offsetY];
    this.pointers.set(event.pointerId, place);
    this.canvas.setPointerCapture(event.pointerId);
    this.corners = null;
    this.start = this.pointers.size === 1 ? place : null;
    this.slides = event.button === 2 || event.ctrlKey;
    const mode = event.shiftKey ? "lasso" : this.map.mode;
    if (this.start && mode !== "move" && !this.slides) this.corners = [place];
    this.boxed = mode === "box";
  }

  moved(event) {
    const place = [event.offsetX, event.offsetY];
    const before = this.pointers.get(event.pointerId);
    if (!before) return this.map.hover(place);
    if (this.start && Math.hypot(place[0] - this.start[0], place[1] - this.start[1]) < 4) return;
    this.start = null;
    this.map.hover(null);
    this.canvas.classList.add("moving");
    if (this.pointers.size === 2) this.pinch(event.pointerId, before, place);
    else if (this.corners) this.map.drawLasso(this.enclose(place));
    else this.map.drag(place[0] - before[0], place[1] - before[1], this.slides);
    this.pointers.set(event.pointerId, place);
  }

  enclose(place) {
    if (!this.boxed) this.corners.push(place);
    else {
      const [[x, y], [right, low]] = [this.corners[0], place];
      this.corners = [[x, y], [right, y], [right, low], [x, low]];
    }
    return this.corners;
  }

  pinch(id, before, place) {
    const other = [...this.pointers].find(([pointer]) => pointer !== id)[1];
    const span = ([x, y]) => Math.hypot(x - other[0], y - other[1]);
    const middle = [(place[0] + other[0]) / 2, (place[1] + other[1]) / 2];
    this.map.drag((place[0] - before[0]) / 2, (place[1] - before[1]) / 2, true);
    this.map.zoom(span(place) / Math.max(span(before), 1), middle);
  }

  up(event) {
    if (this.start) this.map.select(this.map.pick([event.offsetX, event.offsetY]));
    else if (this.corners?.length > 2) this.map.choose(this.corners);
    this.cancel(event);
  }

  cancel(event) {
    this.pointers.delete(event.pointerId);
    this.canvas.classList.remove("moving");
    this.start = this.corners = null;
    this.map.drawLasso(null);
  }

  press(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const { map } = this;
    const { width, height } = map.size;
    const slide = (dx, dy) => () => map.drag(dx, dy, event.shiftKey);
    const actions = {
      ArrowLeft: slide(STEP, 0),
      ArrowRight: slide(-STEP, 0),
      ArrowUp: slide(0, STEP),
      ArrowDown: slide(0, -STEP),
      "+": () => map.zoom(1.6),
      "=": () => map.zoom(1.6),
      "-": () => map.zoom(1 / 1.6),
      0: () => map.reset(),
      a: () => map.chooseInView(),
      b: () => map.setMode("box"),
      l: () => map.setMode("lasso"),
      Escape: () => map.clear(),
      Enter: () => map.select(map.pick([width / 2, height / 2], 1e6)),
    };
    const action = actions[event.key.length === 1 ? event.key.toLowerCase() : event.key];
    if (!action) return;
    event.preventDefault();
    action();
  }
}
