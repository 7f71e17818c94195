// Keys: / the text, g and a letter a page, arrows the chosen cell, ? what there is. What scrolls can be focused, and fades.

const OFF = "keys off"; // in the browser's storage: single letters disturb those who dictate
const SECOND = 1500; // milliseconds for the letter after g
const TYPES = 'input:not([type=checkbox], [type=radio], [type=range]), textarea, select, canvas, [contenteditable=true]';
const TEXT = ".st-key-text_line textarea, [data-testid=stMain] :is(textarea, input[type=text], input[type=search])";
const SCROLLS = ".st-key-beside, .st-key-sharing_graph, .st-key-portrait_place, .st-key-family_tree, " +
  "[class*=heatmap_frame], [data-testid=stCode] pre";
const STEPS = { ArrowUp: ["layer", "ArrowUp"], ArrowDown: ["layer", "ArrowDown"], ArrowRight: ["position", "ArrowUp"],
  ArrowLeft: ["position", "ArrowDown"] }; // fields beside a heat map, and the key that changes each
const TOOLS = "[data-testid=stElementToolbar]"; // of a table
const HEATMAP = ".st-key-heatmap_frame";
const MARGIN = 18; // pixels that Streamlit's texts reach below their place, without being longer
let leave; // what the last mount listened with

/** The page's text, with the caret at its end. */
function focusText() {
  const field = [...document.querySelectorAll(TEXT)].find((each) => each.checkVisibility());
  field?.focus();
  field?.setSelectionRange?.(field.value.length, field.value.length);
  return Boolean(field);
}

function follow(slug) {
  const link = slug && [...document.querySelectorAll(".st-key-pages a")].find((each) => each.pathname.endsWith(slug));
  link?.click();
  return Boolean(link);
}

/** Move the chosen cell of a heat map as its fields do. */
function step(pressed) {
  const [field, key] = STEPS[pressed];
  const input = document.querySelector(`.st-key-${field} input`);
  input?.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
}

/** Say where there is more of what scrolls, so that it fades there instead of ending within a line. */
function fade(place) {
  const right = place.scrollWidth - place.clientWidth - place.scrollLeft > 2;
  const down = place.scrollHeight - place.clientHeight - place.scrollTop > MARGIN;
  if (right || down) place.dataset.more = down ? "down" : "right";
  else delete place.dataset.more;
}

function buttonsOf(toolbar) {
  return [...toolbar.querySelectorAll("button")].filter((each) => each.checkVisibility());
}

/** Of a toolbar's buttons, the Tab key leads to one. */
function stopAt(buttons, chosen) {
  for (const each of buttons) each.tabIndex = each === chosen ? 0 : -1;
}

/** Go along a toolbar. */
function along(button, key) {
  const buttons = buttonsOf(button.closest(TOOLS));
  const at = buttons.indexOf(button);
  const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: buttons.length - 1 }[key];
  if (to === undefined) return false;
  const next = buttons[(to + buttons.length) % buttons.length];
  stopAt(buttons, next);
  next.focus();
  return true;
}

/** What scrolls by itself, and the heat map, are stops of the Tab key. */
function makeStops() {
  for (const place of document.querySelectorAll(SCROLLS)) {
    const scrolls = place.scrollHeight > place.clientHeight + 1 || place.scrollWidth > place.clientWidth + 1;
    if (scrolls) place.tabIndex = 0;
    else if (!place.matches(HEATMAP)) place.removeAttribute("tabindex"); // which takes the focus away
    fade(place);
  }
  for (const toolbar of document.querySelectorAll(TOOLS)) {
    const buttons = buttonsOf(toolbar);
    if (buttons.filter((each) => each.tabIndex === 0).length > 1) stopAt(buttons, buttons[0]);
  }
  const heatmap = document.querySelector(HEATMAP);
  if (!heatmap || heatmap.hasAttribute("role")) return;
  heatmap.tabIndex = 0;
  heatmap.setAttribute("role", "group");
  heatmap.setAttribute("aria-label", "Heat map: arrow keys choose a cell");
}

export default function ({ data, parentElement }) {
  leave?.();
  const dialog = parentElement.querySelector("dialog");
  const enabled = parentElement.querySelector("input");
  const opener = parentElement.querySelector(".opener");
  const list = parentElement.querySelector("tbody");
  const row = ([key, what]) => {
    const line = document.createElement("tr");
    const [name, meaning] = [document.createElement("td"), document.createElement("td")];
    const box = document.createElement("kbd");
    box.textContent = key;
    name.append(box);
    meaning.textContent = what;
    line.append(name, meaning);
    return line;
  };
  list.replaceChildren(...data.keys.map(row));
  enabled.checked = !localStorage.getItem(OFF);
  enabled.onchange = () => (enabled.checked ? localStorage.removeItem(OFF) : localStorage.setItem(OFF, "1"));
  opener.onclick = () => dialog.showModal();
  parentElement.querySelector(".close").onclick = () => dialog.close();

  let since = -Infinity; // when g was pressed
  const listen = (event) => {
    const target = event.composedPath()[0];
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || dialog.open) return;
    if (STEPS[event.key] && target.matches?.(HEATMAP)) {
      step(event.key);
      event.preventDefault();
      return;
    }
    if (target.closest?.(TOOLS) && along(target.closest("button") ?? target, event.key)) {
      event.preventDefault();
      return;
    }
    if (!enabled.checked || target.matches?.(TYPES) || document.querySelector("[role=dialog]")) return;
    const second = event.timeStamp - since < SECOND;
    since = !second && event.key === "g" ? event.timeStamp : -Infinity;
    const done = second ? follow(data.pages[event.key]) : event.key === "/" ? focusText() : event.key === "?";
    if (event.key === "?" && !second) dialog.showModal();
    if (done || second) event.preventDefault();
    if (done || second || event.key === "g") event.stopPropagation(); // Streamlit has letters of its own
  };
  const scrolled = ({ target }) => target.matches?.(SCROLLS) && fade(target);
  document.addEventListener("keydown", listen, true);
  document.addEventListener("scroll", scrolled, true);
  let waiting;
  const soon = () => {
    waiting ??= setTimeout(() => {
      waiting = undefined;
      makeStops();
    }, 200);
  };
  const main = document.querySelector("[data-testid=stMain]") ?? document.body;
  const observer = new MutationObserver(soon);
  observer.observe(main, { childList: true, characterData: true, subtree: true });
  const sizes = new ResizeObserver(soon); // lines break anew
  sizes.observe(main);
  makeStops();
  leave = () => {
    document.removeEventListener("keydown", listen, true);
    document.removeEventListener("scroll", scrolled, true);
    observer.disconnect();
    sizes.disconnect();
    clearTimeout(waiting);
  };
  return leave;
}
