// A text that is answered while it is typed, and its tokens as buttons that mask them.
//
// The person's text is the truth while they type: every report carries a number, Python sends the
// number of the last report that it has read, and a text of Python's is taken over only where it
// answers the newest report and differs from it, as after a click on an example.

const PAUSE = 250; // milliseconds without a key before the text is reported
const EDITORS = new WeakMap();

class Editor {
  constructor(root) {
    this.root = root;
    this.find = (selector) => root.querySelector(selector);
    this.field = this.find("textarea");
    this.row = this.find(".chips");
    this.masks = new Set(); // positions that were clicked
    this.serial = null; // of the newest report
    this.listen();
  }

  /** Take what Python sent. */
  update(data, report) {
    this.report = report;
    this.data = data;
    if (this.serial === null) {
      this.serial = data.serial;
      this.adopt(data.text);
    } else if (data.serial === this.serial && data.text !== this.sent) {
      this.adopt(data.text);
    }
    if (data.serial === this.serial || data.text !== this.of) {
      this.of = data.text; // whose tokens the positions count
      this.masks = new Set(data.tokens.filter((token) => token.masked).map((token) => token.at));
    }
    this.find("label").textContent = data.label;
    this.field.placeholder = data.placeholder;
    this.find("[data-tool=insert]").textContent = `Insert ${data.mask}`;
    this.find("[data-tool=insert]").hidden = !data.mask;
    this.row.setAttribute("aria-label", "Tokens of the text; pressed tokens are masked");
    this.draw();
  }

  adopt(text) {
    clearTimeout(this.timer);
    this.timer = 0;
    this.sent = text;
    if (this.field.value !== text) this.field.value = text;
    this.fit();
  }

  /** Make the field as high as its text, unless the person has set its height. */
  fit() {
    if (this.field.style.height && this.field.style.height !== this.fitted) return;
    this.field.style.height = "auto";
    const border = this.field.offsetHeight - this.field.clientHeight;
    this.fitted = `${this.field.scrollHeight + border}px`;
    this.field.style.height = this.field.scrollHeight ? this.fitted : "";
  }

  /** Tell Python the text, and the masks together with the text whose tokens they are. */
  tell(typed) {
    clearTimeout(this.timer);
    this.timer = 0;
    if (!this.field.isConnected) return; // another page has been chosen meanwhile
    this.serial += 1;
    this.sent = this.field.value;
    this.report("edit", {
      text: this.sent,
      of: this.data.text,
      masks: [...this.masks].sort((a, b) => a - b),
      serial: this.serial,
      typed,
    });
    this.behind();
  }

  typed() {
    this.fit();
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.tell(true), PAUSE);
    this.behind();
  }

  behind() {
    this.row.classList.toggle("behind", this.field.value !== this.data.text);
  }

  draw() {
    const { tokens } = this.data;
    while (this.row.children.length > tokens.length) this.row.lastElementChild.remove();
    tokens.forEach((token, index) => {
      const chip = this.row.children[index] ?? this.row.appendChild(newChip());
      this.drawChip(chip, token);
    });
    this.stops();
    this.behind();
    const clicked = this.masks.size;
    const written = tokens.filter((token) => token.kind === "mask").length;
    this.find("[data-tool=clear]").hidden = clicked === 0;
    const all = clicked + written;
    this.find(".hint").textContent = this.data.hint;
    const spoken = `${all} of ${tokens.length} tokens masked`;
    if (this.find(".spoken").textContent !== spoken) this.find(".spoken").textContent = spoken;
  }

  drawChip(chip, token) {
    const masked = this.masks.has(token.at);
    const pressed = masked || token.kind === "mask";
    chip.className = `chip ${token.kind}${token.joined ? " joined" : ""}${masked ? " clicked" : ""}`;
    chip.dataset.at = token.at;
    chip.disabled = token.kind === "special";
    if (chip.disabled) chip.removeAttribute("aria-pressed");
    else chip.setAttribute("aria-pressed", String(pressed));
    const [text, note] = chip.children;
    const stale = pressed !== (token.masked || token.kind === "mask");
    // Until the answer is there, the one before stays on its mask: nothing flickers while typing.
    const waits = this.data.pending && pressed && text.textContent === token.text;
    text.textContent = token.text;
    if (!waits) note.textContent = stale ? "" : token.note;
    note.classList.toggle("old", Boolean(waits));
    chip.title = stale ? "" : token.title;
    chip.setAttribute("aria-label", [token.text, note.textContent].filter(Boolean).join(", "));
    chip.style.background = token.color ?? "";
    chip.style.color = token.color ? token.ink : "";
  }

  /** One stop of the Tab key for all chips; the arrow keys go from chip to chip. */
  stops() {
    const chips = this.buttons();
    const current = chips.find((chip) => chip.tabIndex === 0) ?? chips[0];
    for (const chip of chips) chip.tabIndex = chip === current ? 0 : -1;
  }

  buttons() {
    return [...this.row.children].filter((chip) => !chip.disabled);
  }

  go(chip, step) {
    const chips = this.buttons();
    const next = chips[Math.min(Math.max(chips.indexOf(chip) + step, 0), chips.length - 1)];
    if (!next) return;
    for (const each of chips) each.tabIndex = each === next ? 0 : -1;
    next.focus();
  }

  toggle(chip) {
    const at = Number(chip.dataset.at);
    const token = this.data.tokens.find((each) => each.at === at);
    if (!token || token.kind === "special") return;
    if (token.kind === "mask") {
      this.select(token);
      return;
    }
    if (!this.masks.delete(at)) this.masks.add(at);
    this.go(chip, 0);
    this.draw();
    this.tell(false);
  }

  /** A mask that is written in the text is marked there, to be typed over. */
  select(token) {
    if (this.field.value !== this.data.text) return;
    const letters = Array.from(this.data.text); // Python counts code points
    const units = (count) => letters.slice(0, count).join("").length;
    this.field.focus();
    this.field.setSelectionRange(units(token.start), units(token.end));
  }

  insert() {
    const { field } = this;
    const [start, end] = [field.selectionStart, field.selectionEnd];
    const before = field.value.slice(0, start);
    const after = field.value.slice(end);
    const left = before && !/\s$/.test(before) ? " " : "";
    const right = after && !/^[\s.,;:!?)]/.test(after) ? " " : "";
    field.setRangeText(`${left}${this.data.mask}${right}`, start, end, "end");
    field.focus();
    this.fit();
    this.tell(true);
  }

  clear() {
    this.masks.clear();
    this.draw();
    this.tell(false);
    this.buttons()[0]?.focus();
  }

  listen() {
    const { field, row } = this;
    field.addEventListener("input", (event) => event.isComposing || this.typed());
    field.addEventListener("compositionend", () => this.typed());
    field.addEventListener("blur", () => this.timer && this.tell(true));
    field.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) this.tell(true);
    });
    row.addEventListener("click", (event) => {
      const chip = event.target.closest(".chip");
      if (chip) this.toggle(chip);
    });
    row.addEventListener("keydown", (event) => {
      const steps = { ArrowRight: 1, ArrowLeft: -1, Home: -Infinity, End: Infinity };
      const chip = event.target.closest(".chip");
      if (!chip || !(event.key in steps)) return;
      event.preventDefault();
      this.go(chip, steps[event.key]);
    });
    // A click on the button must not take the caret away before it is read.
    const insert = this.find("[data-tool=insert]");
    insert.addEventListener("mousedown", (event) => event.preventDefault());
    insert.addEventListener("click", () => this.insert());
    this.find("[data-tool=clear]").addEventListener("click", () => this.clear());
  }
}

function newChip() {
  const chip = document.createElement("button");
  chip.type = "button";
  chip.tabIndex = -1;
  for (const name of ["token", "note"]) {
    chip.append(Object.assign(document.createElement("span"), { className: name }));
  }
  return chip;
}

export default function ({ data, parentElement, setTriggerValue }) {
  let editor = EDITORS.get(parentElement);
  if (!editor || !parentElement.contains(editor.field)) {
    editor = new Editor(parentElement);
    EDITORS.set(parentElement, editor);
  }
  editor.update(data, setTriggerValue);
}
