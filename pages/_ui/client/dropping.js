// Files dropped anywhere on a page go to the input of the sidebar, unless they are dropped on an input.

const SIDEBAR = "[data-testid=stExpandSidebarButton]";
const OPENER = ".st-key-open_your_own details:not([open]) summary";
const FILES = ".st-key-way button";
const INPUT = "[data-testid=stFileUploaderDropzone]";
const ZONE = `.st-key-open_your_own :not([data-retained]) > [data-testid=stFileUploader] ${INPUT}`;
const PATIENCE = 20_000; // milliseconds in which the server draws the input
let leave; // what the last mount listened with

const brings = (event) => event.dataTransfer?.types.includes("Files") && !event.target.closest?.(INPUT);

/** Show the sidebar and what is in it: the person sees what becomes of the files. */
function unfold() {
  document.querySelector(SIDEBAR)?.click();
  document.querySelector(OPENER)?.click();
}

/** Give files to the input of the sidebar; false: it is not there. */
function give(dataTransfer) {
  const zone = document.querySelector(ZONE);
  zone?.dispatchEvent(new DragEvent("drop", { bubbles: true, cancelable: true, dataTransfer }));
  return Boolean(zone);
}

/** Give files to the input as soon as it is there, and have it drawn where another way is chosen. */
function giveLater(files) {
  const dataTransfer = new DataTransfer();
  for (const file of files) dataTransfer.items.add(file);
  let asked = false;
  const attempt = () => {
    if (give(dataTransfer)) return observer.disconnect();
    const choice = [...document.querySelectorAll(FILES)].find((each) => each.textContent.trim() === "Files");
    if (choice && !asked) {
      asked = true;
      choice.click();
    }
  };
  const observer = new MutationObserver(attempt);
  observer.observe(document.body, { childList: true, subtree: true });
  setTimeout(() => observer.disconnect(), PATIENCE);
  attempt();
}

export default function () {
  leave?.();
  const mark = (on) => document.body.toggleAttribute("data-dropping", on);
  const over = (event) => {
    mark(Boolean(brings(event)));
    if (brings(event)) event.preventDefault(); // else the browser does not let go of them here
  };
  const away = (event) => event.relatedTarget === null && mark(false);
  const drop = (event) => {
    mark(false);
    if (!brings(event)) return;
    event.preventDefault(); // else the browser leaves the page for the file
    const files = [...event.dataTransfer.files]; // they are gone when this event is over
    if (!give(event.dataTransfer)) giveLater(files);
    unfold();
  };
  const listening = { dragover: over, dragleave: away, drop };
  for (const [name, listen] of Object.entries(listening)) document.addEventListener(name, listen);
  document.body.dataset.drops = "anywhere";
  leave = () => {
    for (const [name, listen] of Object.entries(listening)) document.removeEventListener(name, listen);
    delete document.body.dataset.drops;
    mark(false);
  };
  return leave;
}
