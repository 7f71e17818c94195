// The legend: kinds and scripts are buttons that hide what they name; numbers have a bar.

function rangeTexts({ low, high, beyond, digits, share }) {
  const text = (value) =>
    share
      ? `${Math.round(100 * value)} %`
      : value.toLocaleString("en", { maximumFractionDigits: digits });
  return [`${beyond[0] ? "≤ " : ""}${text(low)}`, `${beyond[1] ? "≥ " : ""}${text(high)}`];
}

function swatch(mark) {
  const canvas = document.createElement("canvas");
  canvas.className = "swatch";
  canvas.width = canvas.height = 32;
  const context = canvas.getContext("2d");
  context.scale(2, 2);
  drawSymbol(context, mark, 8, 8, Math.min(mark.size * 1.6, 14));
  return canvas;
}

/** A button that shows and hides what it names. */
function layerButton(mark, { name, count }, isShown, toggle) {
  const button = document.createElement("button");
  button.type = "button";
  button.title = `Show or hide: ${name}`;
  button.setAttribute("aria-pressed", String(isShown));
  const text = document.createElement("span");
  text.textContent = `${name} (${count.toLocaleString("en")})`;
  button.append(swatch(mark), text);
  button.addEventListener("click", () => {
    button.setAttribute("aria-pressed", String(toggle(name)));
  });
  return button;
}

function span(text, className = "") {
  const node = document.createElement("span");
  node.textContent = text;
  node.className = className;
  return node;
}

/** The bar of numbers with its ends written out. */
function rampBar(paint, theme) {
  const bar = span("", "ramp");
  bar.style.background = `linear-gradient(to right, ${theme.values.join(",")})`;
  const [low, high] = rangeTexts(paint.range);
  const parts = [span(paint.range.label), span(low), bar, span(high)];
  if (paint.range.missing) {
    const count = paint.range.missing.toLocaleString("en");
    const mark = { symbol: "circle", size: 8, color: theme.none };
    parts.push(swatch(mark), span(`not measured (${count})`));
  }
  return parts;
}

/** Build the legend's two lines: layers, and what the colors say where it is not the kind. */
function drawLegend(layers, colors, scene, hidden, toggle) {
  const { paint, theme } = scene;
  const marks = scene.kinds.filter((kind) => kind.count);
  const buttons = marks.map((kind) => {
    const mark = paint.byKind ? kind : { ...kind, color: theme.muted };
    return layerButton(mark, kind, !hidden.has(kind.name), toggle);
  });
  if (scene.flagged.length) {
    buttons.push(layerButton(scene.flag, scene.flag, !hidden.has(scene.flag.name), toggle));
  }
  layers.replaceChildren(...buttons);
  const scripts = (paint.entries ?? []).map((entry, i) => {
    const mark = { symbol: "circle", size: 8, color: paint.palette[i] };
    return layerButton(mark, entry, !hidden.has(entry.name), toggle);
  });
  colors.replaceChildren(...(paint.range ? rampBar(paint, theme) : scripts));
  colors.hidden = !paint.range && !scripts.length;
}

/** Make a toolbar one stop of the Tab key: arrows lead from button to button. */
function rove(toolbar) {
  const buttons = () => [...toolbar.querySelectorAll("button:not([hidden])")];
  const enter = (chosen) => {
    for (const button of buttons()) button.tabIndex = button === chosen ? 0 : -1;
  };
  enter(buttons()[0]);
  toolbar.addEventListener("focusin", ({ target }) => buttons().includes(target) && enter(target));
  toolbar.addEventListener("keydown", (event) => {
    const all = buttons();
    const at = all.indexOf(event.target);
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: all.length - 1 }[event.key];
    if (at < 0 || to === undefined) return;
    event.preventDefault();
    event.stopPropagation(); // arrows move the map elsewhere
    all[(to + all.length) % all.length].focus();
  });
  new MutationObserver(() => buttons().some((each) => each.tabIndex === 0) || enter(buttons()[0]))
    .observe(toolbar, { childList: true });
}
