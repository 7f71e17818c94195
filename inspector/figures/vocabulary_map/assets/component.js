// The component: one Map an element, which outlives reruns of the script with its zoom.

const MAPS = new WeakMap();
const KEYS = {
  ArrowLeft: [-60, 0],
  ArrowRight: [60, 0],
  ArrowUp: [0, -60],
  ArrowDown: [0, 60],
};

class VocabularyMap {
  constructor(root) {
    this.root = root;
    this.find = (selector) => root.querySelector(selector);
    this.canvas = this.find(".stage canvas");
    this.context = this.canvas.getContext("2d");
    this.tip = this.find(".tip");
    this.hidden = new Set(); // names of kinds that the legend has switched off
    this.hovered = -1;
    this.listen();
    this.resizing = new ResizeObserver(() => this.resize());
    this.resizing.observe(this.find(".stage"));
  }

  /** Take what Python sent; zoom and legend stay unless the points are others. */
  update(data, report) {
    this.report = report;
    const fresh = data.digest !== this.digest;
    if (fresh) this.points = unpackPoints(data);
    this.digest = data.digest;
    const page = getComputedStyle(this.find(".map")).getPropertyValue("--st-background-color").trim();
    this.scene = {
      points: this.points,
      kinds: data.kinds,
      shown: data.kinds.map((kind) => !this.hidden.has(kind.name)),
      theme: data.theme,
      page: /^#[0-9a-f]{6}$/i.test(page) ? page : data.theme.page,
      title: data.title,
      subtitle: data.subtitle,
      axes: data.axes,
      selected: data.selected,
      highlighted: new Set(data.highlighted),
      whole: { x: 0, y: 0, scale: 1 },
    };
    this.leftOut = data.left_out;
    this.height = data.height;
    this.drawLegend();
    this.resize(fresh);
    this.describe();
  }

  resize(fresh = false) {
    if (!this.scene) return;
    const width = Math.max(this.find(".stage").clientWidth, 50);
    const before = this.scene.whole.scale;
    this.size = { width, height: this.height };
    this.density = Math.min(window.devicePixelRatio || 1, 2);
    this.scene.whole = wholeView(this.points.bounds, width, this.height);
    if (fresh || !this.view) this.view = { ...this.scene.whole };
    else if (before !== 1) this.view.scale *= this.scene.whole.scale / before;
    this.draw();
  }

  draw() {
    if (this.waiting) return;
    this.waiting = requestAnimationFrame(() => {
      this.waiting = 0;
      const [width, height] = [this.size.width, this.size.height].map((side) =>
        Math.round(side * this.density),
      );
      if (this.canvas.width !== width || this.canvas.height !== height) {
        Object.assign(this.canvas, { width, height });
        this.canvas.style.height = `${this.size.height}px`;
      }
      drawMap(this.context, this.scene, this.view, this.size, this.density, this.moving);
      this.canvas.dataset.drawn = String(Number(this.canvas.dataset.drawn ?? 0) + 1);
    });
  }

  /** Draw a frame of a movement, and all points once it has come to rest. */
  drawMoving() {
    this.moving = true;
    clearTimeout(this.resting);
    this.resting = setTimeout(() => {
      this.moving = false;
      this.draw();
    }, 150);
    this.draw();
  }

  drawLegend() {
    const legend = this.find(".legend");
    legend.replaceChildren(
      ...this.scene.kinds.map((kind) => {
        const button = document.createElement("button");
        button.type = "button";
        button.setAttribute("aria-pressed", String(!this.hidden.has(kind.name)));
        const swatch = document.createElement("canvas");
        swatch.className = "swatch";
        swatch.width = swatch.height = 32;
        const context = swatch.getContext("2d");
        context.scale(2, 2);
        drawSymbol(context, kind, 8, 8, Math.min(kind.size * 1.6, 14));
        const text = document.createElement("span");
        text.textContent = `${kind.name} (${kind.count.toLocaleString("en")})`;
        button.append(swatch, text);
        button.addEventListener("click", () => this.toggle(kind.name, button));
        return button;
      }),
    );
  }

  toggle(name, button) {
    if (!this.hidden.delete(name)) this.hidden.add(name);
    button.setAttribute("aria-pressed", String(!this.hidden.has(name)));
    this.scene.shown = this.scene.kinds.map((kind) => !this.hidden.has(kind.name));
    this.draw();
  }

  describe() {
    const { points, scene } = this;
    const count = points.count.toLocaleString("en");
    const matches = scene.highlighted.size;
    const found = matches ? ` · ${matches.toLocaleString("en")} found, ringed` : "";
    const missing = this.leftOut ? ` · ${this.leftOut} without a place, left out` : "";
    this.find(".hint").textContent =
      `${count} tokens${found}${missing} · click a point to select it, wheel to zoom, drag to move`;
    const row = scene.selected === null ? undefined : points.row.get(scene.selected);
    const chosen = row === undefined ? "" : ` Selected: ${points.tokens[row]}.`;
    this.canvas.setAttribute(
      "aria-label",
      `${scene.title}. A map of ${count} tokens.${chosen} ` +
        "Arrow keys move, plus and minus zoom, 0 shows all, Enter selects the token nearest to " +
        "the centre, Escape ends the selection.",
    );
  }

  select(row) {
    const tokenId = row < 0 ? null : this.points.tokenId[row];
    if (tokenId === this.scene.selected) return;
    this.scene.selected = tokenId;
    this.find(".spoken").textContent = row < 0 ? "Nothing selected" : this.tipText(row);
    this.describe();
    this.draw();
    this.report(tokenId ?? -1);
  }

  tipText(row) {
    const { points, scene } = this;
    return (
      `${points.tokens[row] || "(empty)"}\nid ${points.tokenId[row]} · ` +
      `${scene.kinds[points.kind[row]].name}\nnorm ${points.norm[row].toFixed(3)}`
    );
  }

  hover(place) {
    this.hovered = place ? this.pick(place) : -1;
    this.canvas.classList.toggle("over", this.hovered >= 0);
    this.tip.hidden = this.hovered < 0;
    if (this.hovered < 0) return;
    this.tip.textContent = this.tipText(this.hovered);
    const [x, y] = toScreen(
      this.view,
      this.size,
      this.points.xy[2 * this.hovered],
      this.points.xy[2 * this.hovered + 1],
    );
    const { offsetWidth, offsetHeight } = this.tip;
    const left = x + 14 + offsetWidth > this.size.width ? x - 14 - offsetWidth : x + 14;
    const top = Math.min(Math.max(y - offsetHeight / 2, 4), this.size.height - offsetHeight - 4);
    Object.assign(this.tip.style, { left: `${Math.max(left, 4)}px`, top: `${top}px` });
  }

  /** Marks of the rare kinds are larger than words and lie above them: they are picked first. */
  pick(place) {
    const rare = this.scene.kinds.map((kind, index) => kind.size > 8 && this.scene.shown[index]);
    const above = pick(this.points, rare, this.view, this.size, place, 9);
    return above >= 0 ? above : pick(this.points, this.scene.shown, this.view, this.size, place, 8);
  }

  zoom(factor, place = [this.size.width / 2, this.size.height / 2]) {
    this.view = zoomed(this.view, this.size, factor, place, this.scene.whole);
    this.hover(null);
    this.drawMoving();
  }

  move(dx, dy) {
    this.view.x += dx / this.view.scale;
    this.view.y -= dy / this.view.scale;
    this.drawMoving();
  }

  reset() {
    this.view = { ...this.scene.whole };
    this.draw();
  }

  save() {
    const name = this.scene.title.replace(/[^\p{L}\p{N}._-]+/gu, "-").replace(/^[-.]+|-+$/g, "");
    download(drawPicture(this.scene, this.view, this.size), name || "vocabulary-map");
  }

  listen() {
    const place = (event) => [event.offsetX, event.offsetY];
    const tools = {
      in: () => this.zoom(1.6),
      out: () => this.zoom(1 / 1.6),
      reset: () => this.reset(),
      png: () => this.save(),
    };
    for (const button of this.root.querySelectorAll("[data-tool]")) {
      button.addEventListener("click", tools[button.dataset.tool]);
    }
    let start = null;
    this.canvas.addEventListener("pointerdown", (event) => {
      start = { x: event.clientX, y: event.clientY, moved: false };
      this.canvas.setPointerCapture(event.pointerId);
    });
    this.canvas.addEventListener("pointermove", (event) => {
      if (!start) return this.hover(place(event));
      const [dx, dy] = [event.clientX - start.x, event.clientY - start.y];
      if (!start.moved && Math.hypot(dx, dy) < 4) return undefined;
      this.canvas.classList.add("moving");
      this.hover(null);
      this.move(-dx, -dy);
      start = { x: event.clientX, y: event.clientY, moved: true };
      return undefined;
    });
    this.canvas.addEventListener("pointerup", (event) => {
      this.canvas.classList.remove("moving");
      if (start && !start.moved) this.select(this.pick(place(event)));
      start = null;
    });
    this.canvas.addEventListener("pointercancel", () => (start = null));
    this.canvas.addEventListener("pointerleave", () => this.hover(null));
    this.canvas.addEventListener(
      "wheel",
      (event) => {
        event.preventDefault();
        this.zoom(Math.exp(-event.deltaY * (event.deltaMode ? 0.05 : 0.0015)), place(event));
      },
      { passive: false },
    );
    this.canvas.addEventListener("keydown", (event) => this.press(event));
  }

  press(event) {
    const centre = [this.size.width / 2, this.size.height / 2];
    const actions = {
      "+": () => this.zoom(1.6),
      "=": () => this.zoom(1.6),
      "-": () => this.zoom(1 / 1.6),
      0: () => this.reset(),
      Escape: () => this.select(-1),
      Enter: () =>
        this.select(pick(this.points, this.scene.shown, this.view, this.size, centre, 1e6)),
    };
    const step = KEYS[event.key];
    const action = step ? () => this.move(...step) : actions[event.key];
    if (!action || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    action();
  }
}

export default function (component) {
  const { data, parentElement, setTriggerValue } = component;
  let map = MAPS.get(parentElement);
  if (!map || !parentElement.contains(map.canvas)) {
    map?.resizing.disconnect();
    map = new VocabularyMap(parentElement);
    MAPS.set(parentElement, map);
  }
  map.update(data, (tokenId) => setTriggerValue("clicked", tokenId));
  return () => map.resizing.disconnect();
}
