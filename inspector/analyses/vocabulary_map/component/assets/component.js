// The component: one map an element, which outlives reruns of the script with its zoom.

const MAPS = new WeakMap();

class VocabularyMap {
  constructor(root) {
    this.root = root;
    this.find = (selector) => root.querySelector(selector);
    this.canvas = this.find(".stage canvas");
    this.context = this.canvas.getContext("2d");
    this.tip = this.find(".tip");
    this.hidden = new Set(); // names of layers that are switched off
    this.mode = "move";
    this.gestures = new Gestures(this, this.canvas);
    this.listen();
    this.resizing = new ResizeObserver(() => this.resize());
  }

  /** Watch for points and sizes; a rerun ends the watch and begins it again. */
  begin() {
    this.resizing.observe(this.find(".stage"));
    STORE.waiting.add(this);
  }

  end() {
    this.resizing.disconnect();
    STORE.waiting.delete(this);
  }

  /** Take what Python sent; zoom and layers stay unless the points are others. */
  update(data, report) {
    this.report = report;
    this.data = data;
    if (data.hidden.join() !== this.asked) this.hidden = new Set(data.hidden);
    this.asked = data.hidden.join();
    this.pointsCame();
  }

  /** Draw if the points that Python spoke of are here; they come in a message of their own. */
  pointsCame() {
    const points = STORE.kept.get(this.data?.digest);
    if (!points) return;
    const fresh = points.digest !== this.points?.digest;
    this.points = points;
    if (fresh) this.turn = points.dimensions === 3 ? START : null;
    const { data } = this;
    const page = getComputedStyle(this.find(".map")).getPropertyValue("--st-background-color").trim();
    const flagged = [];
    points.flagged?.forEach((flag, row) => flag && flagged.push(row));
    this.scene = {
      points,
      flat: flatten(points, this.turn),
      kinds: points.kinds.map(([name, count]) => {
        const style = data.styles[name];
        return { ...style, name, count, labeled: count <= style.labels };
      }),
      flagged,
      flag: { ...data.flag, count: flagged.length },
      theme: data.theme,
      page: /^#[0-9a-f]{6}$/i.test(page) ? page : data.theme.page,
      title: data.title,
      subtitle: data.subtitle,
      axes: data.axes,
      selected: data.selected,
      found: new Set(data.found),
      neighbors: data.neighbors,
      chosen: this.maskOf(data.chosen),
      whole: { x: 0, y: 0, scale: 1 },
    };
    this.paint();
    this.resize(fresh);
    this.describe();
  }

  maskOf(ids) {
    if (!ids.length) return null;
    const mask = new Uint8Array(this.points.count);
    for (const id of ids) if (this.points.row.has(id)) mask[this.points.row.get(id)] = 1;
    return mask;
  }

  paint() {
    const { scene, data } = this;
    scene.shown = scene.kinds.map((kind) => !this.hidden.has(kind.name));
    scene.showFlagged = !this.hidden.has(scene.flag.name);
    scene.paint = paintOf(this.points, data.color, scene.kinds, data.theme, this.hidden);
    const toggle = (name) => this.toggle(name);
    drawLegend(this.find(".layers"), this.find(".colors"), scene, this.hidden, toggle);
  }

  toggle(name) {
    const shows = this.hidden.delete(name);
    if (!shows) this.hidden.add(name);
    const { scene, data } = this;
    scene.shown = scene.kinds.map((kind) => !this.hidden.has(kind.name));
    scene.showFlagged = !this.hidden.has(scene.flag.name);
    scene.paint = paintOf(this.points, data.color, scene.kinds, data.theme, this.hidden);
    this.draw();
    this.asked = [...this.hidden].sort().join();
    this.report("hidden", [...this.hidden].sort());
    return shows;
  }

  resize(fresh = false) {
    if (!this.scene) return;
    const before = this.whole?.scale;
    const width = Math.max(this.find(".stage").clientWidth, 50);
    this.size = { width, height: Math.min(this.data.height, Math.max(width, 340)) };
    this.density = Math.min(window.devicePixelRatio || 1, 2);
    const start = this.turn && this.turn !== START ? flatten(this.points, START).uv : null;
    this.whole = wholeView(start ?? this.scene.flat.uv, this.size);
    if (start) this.scene.flat = flatten(this.points, this.turn);
    this.scene.whole = this.whole;
    if (fresh || !this.view) this.view = { ...this.whole };
    else if (before) this.view.scale *= this.whole.scale / before;
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
      const { context, scene, view, size, density, moving, lasso } = this;
      drawMap(context, scene, view, size, density, moving, lasso);
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

  describe() {
    const { points, scene } = this;
    const count = points.count.toLocaleString("en");
    const said = [`${count} tokens`];
    if (scene.found.size) said.push(`${scene.found.size.toLocaleString("en")} found, ringed`);
    if (this.data.chosen.length) {
      said.push(`${this.data.chosen.length.toLocaleString("en")} chosen`);
    }
    if (points.left_out) said.push(`${points.left_out} without a position, left out`);
    const drag = scene.flat.depth ? "drag to turn, right drag to move" : "drag to move";
    said.push(`click a point · ${drag} · wheel or two fingers to zoom · Shift and drag to choose`);
    this.find(".hint").textContent = said.join(" · ");
    const row = selectedRow(scene);
    const chosen = row === undefined ? "" : ` Selected: ${points.tokens[row]}.`;
    const arrows = scene.flat.depth ? "Arrow keys turn, with Shift they move" : "Arrow keys move";
    this.canvas.setAttribute(
      "aria-label",
      `${scene.title}. A map of ${count} tokens.${chosen} ${arrows}, plus and minus zoom, ` +
        "0 shows all, Enter selects the token nearest to the center, A chooses all in view, " +
        "Escape clears. The tables beside and below list the same as text.",
    );
  }

  select(row) {
    const tokenId = row < 0 ? null : this.points.token_id[row];
    if (tokenId === this.scene.selected) return;
    this.scene.selected = tokenId;
    this.scene.neighbors = []; // Python sends the new ones
    this.find(".spoken").textContent =
      row < 0 ? "Nothing selected" : linesAbout(this.points, row).join(", ");
    this.describe();
    this.draw();
    this.report("clicked", tokenId ?? -1);
  }

  /** Choose the tokens inside a line that was drawn around them. */
  choose(corners) {
    const rows = rowsInside(this.scene, this.view, this.size, corners);
    const ids = rows.map((row) => this.points.token_id[row]).sort((a, b) => a - b);
    this.data.chosen = ids;
    this.scene.chosen = this.maskOf(ids);
    this.find(".spoken").textContent = `${ids.length.toLocaleString("en")} tokens chosen`;
    this.describe();
    this.draw();
    this.report("chosen", packIds(ids));
  }

  chooseInView() {
    const { width, height } = this.size;
    this.choose([[0, 0], [width, 0], [width, height], [0, height]]);
  }

  /** Escape: nothing is selected or chosen any more, and dragging moves again. */
  clear() {
    this.setMode("move");
    if (this.data.chosen.length) this.choose([[-1, -1], [-1, -1], [-1, -1]]);
    this.select(-1);
  }

  setMode(mode) {
    this.mode = mode;
    this.canvas.classList.toggle("choosing", mode !== "move");
    for (const button of this.root.querySelectorAll("[data-mode]")) {
      button.setAttribute("aria-pressed", String(button.dataset.mode === mode));
    }
  }

  drawLasso(corners) {
    if (!corners && !this.lasso) return;
    this.lasso = corners;
    this.drawMoving();
  }

  hover(place) {
    if (!this.scene) return;
    const row = place ? this.pick(place) : -1;
    this.canvas.classList.toggle("over", row >= 0);
    this.tip.hidden = row < 0;
    if (row < 0) return;
    this.tip.textContent = linesAbout(this.points, row).join("\n");
    const [x, y] = placeOf(this.scene, this.view, this.size, row);
    const { offsetWidth, offsetHeight } = this.tip;
    const left = x + 14 + offsetWidth > this.size.width ? x - 14 - offsetWidth : x + 14;
    const top = Math.min(Math.max(y - offsetHeight / 2, 4), this.size.height - offsetHeight - 4);
    Object.assign(this.tip.style, { left: `${Math.max(left, 4)}px`, top: `${top}px` });
  }

  /** Marks of the rare kinds are larger than words and lie above them: they are picked first. */
  pick(place, reach = 8) {
    const { scene, view, size } = this;
    const rare = scene.kinds.map((kind) => kind.size > 8);
    const above = pick(scene, view, size, place, 9, rare);
    return above >= 0 ? above : pick(scene, view, size, place, reach);
  }

  zoom(factor, place = [this.size.width / 2, this.size.height / 2]) {
    this.view = zoomed(this.view, this.size, factor, place, this.whole);
    this.hover(null);
    this.drawMoving();
  }

  /** Move a flat map; turn a cloud, or move it too where `slides`. */
  drag(dx, dy, slides) {
    if (this.turn && !slides) {
      this.turn = turned(this.turn, dx * TURN, dy * TURN);
      this.scene.flat = flatten(this.points, this.turn);
    } else {
      this.view.x -= dx / this.view.scale;
      this.view.y += dy / this.view.scale;
    }
    this.drawMoving();
  }

  reset() {
    if (this.turn) this.turn = START;
    this.scene.flat = flatten(this.points, this.turn);
    this.view = { ...this.whole };
    this.draw();
  }

  async save(ending) {
    const { scene, view, size, data } = this;
    const stem = scene.title.replace(/[^\p{L}\p{N}._-]+/gu, "-").replace(/^[-.]+|-+$/g, "");
    const name = `${stem || "vocabulary-map"}-${digestOf({ data, layout: view })}.${ending}`;
    const facts = { Title: scene.title, ...data.facts, Description: scene.subtitle };
    const file =
      ending === "svg"
        ? new Blob([labeledDrawing(svgOf(scene, view, size), facts)], { type: "image/svg+xml" })
        : new Blob(labeledPicture(await pngOf(scene, view, size), facts), { type: "image/png" });
    saveFile(file, name);
  }

  /** Put the picture into the clipboard. */
  async copy() {
    const canvas = pngOf(this.scene, this.view, this.size);
    const blob = new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
    const said = this.find(".spoken");
    try {
      await navigator.clipboard.write([new ClipboardItem({ "image/png": blob })]);
      said.textContent = "Copied.";
    } catch {
      said.textContent = "The browser did not allow it.";
    }
  }

  listen() {
    const tools = {
      all: () => this.chooseInView(),
      in: () => this.zoom(1.6),
      out: () => this.zoom(1 / 1.6),
      reset: () => this.reset(),
      copy: () => this.copy(),
      png: () => this.save("png"),
      svg: () => this.save("svg"),
    };
    for (const button of this.root.querySelectorAll("[data-tool]")) {
      button.addEventListener("click", () => this.scene && tools[button.dataset.tool]());
    }
    for (const button of this.root.querySelectorAll("[data-mode]")) {
      button.addEventListener("click", () => this.setMode(button.dataset.mode));
    }
    this.find("[data-tool=copy]").hidden = !navigator.clipboard?.write; // only where the page's address is a safe one
    for (const toolbar of this.root.querySelectorAll(".layers, .colors, .tools")) rove(toolbar);
  }
}

/** Token ids as base64 of little-endian integers: thousands of them go back at once. */
function packIds(ids) {
  const bytes = new Uint8Array(Int32Array.from(ids).buffer);
  let text = "";
  for (const byte of bytes) text += String.fromCharCode(byte);
  return btoa(text);
}

export default function (component) {
  const { data, parentElement, setTriggerValue } = component;
  if (data instanceof Uint8Array || data instanceof ArrayBuffer) {
    storePoints(data instanceof ArrayBuffer ? new Uint8Array(data) : data);
    return undefined;
  }
  let map = MAPS.get(parentElement);
  if (!map || !parentElement.contains(map.canvas)) {
    map?.end();
    map = new VocabularyMap(parentElement);
    MAPS.set(parentElement, map);
  }
  map.begin();
  map.update(data, (name, value) => setTriggerValue(name, value));
  return () => map.end();
}
