// A menu in the chart's corner: copy it, or save it as PNG, SVG or CSV. Pictures are as wide as on paper.
// What makes files of them is large, and comes to a page once (`bring`).

const SECONDS = 10; // to wait for a chart that is still being drawn

/** The chart in the element after the one that holds this menu. */
function chartAfter(root) {
  const host = root.getRootNode().host ?? root;
  let element = host.closest("[data-testid=stElementContainer]") ?? host;
  for (; element; element = element.parentElement) {
    for (let each = element.nextElementSibling; each; each = each.nextElementSibling) {
      const chart = each.matches(".js-plotly-plot") ? each : each.querySelector(".js-plotly-plot");
      if (chart) return chart;
    }
    if (element.dataset.testid === "stMain") return null;
  }
  return null;
}

/** Plotly's own button that saves a picture; it reads its settings when it is pressed. */
async function cameraOf(root) {
  for (let tries = 0; tries < SECONDS * 10; tries++) {
    const chart = chartAfter(root);
    const camera = chart?.querySelector('.modebar-btn[data-title^="Download plot"]');
    if (camera) return { chart, camera };
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  return null;
}

/** What a chart draws on paper: if it is dark or for a phone, `meta` has paths in it and the values of that one. */
function onPaper({ data, layout }) {
  const paper = structuredClone({ data, layout });
  for (const [path, value] of layout.meta?.paper ?? []) {
    const holder = path.slice(0, -1).reduce((at, step) => at[step], paper);
    holder[path.at(-1)] = value;
  }
  return paper;
}

/** The chart as SVG, in light colors. Plotly's button alone draws it here, and saves it as a file: what it saves is caught. */
function drawn({ chart, camera }, width) {
  const before = chart._context.toImageButtonOptions;
  const paper = onPaper(chart);
  const height = paper.layout.height === chart.layout.height ? chart._fullLayout.height : paper.layout.height;
  chart._context.toImageButtonOptions = { format: "svg", width, height };
  const { createObjectURL } = URL;
  const svg = new Promise((resolve) => {
    URL.createObjectURL = (file) => {
      URL.createObjectURL = createObjectURL;
      const caught = URL.createObjectURL(file);
      const keep = (event) => {
        if (event.target.href !== caught) return;
        removeEventListener("click", keep, true);
        event.preventDefault();
        resolve(file.text());
      };
      addEventListener("click", keep, true);
      return caught;
    };
  });
  const { data, layout } = chart;
  Object.assign(chart, paper); // the button copies what it finds there
  camera.click();
  Object.assign(chart, { data, layout });
  chart._context.toImageButtonOptions = before;
  return svg;
}

/** The chart as a file: "svg" or "png". */
async function pictureOf(found, format, { width, scale, facts }) {
  const file = await window.inspectorPictures.pictureFile(await drawn(found, width), facts, format, scale);
  document.querySelector(".plotly-notifier")?.replaceChildren(); // which names another file
  return file;
}

async function copy(root, data) {
  const said = root.querySelector("[role=status]");
  try {
    const picture = cameraOf(root).then((found) => (found ? pictureOf(found, "png", data) : Promise.reject()));
    await navigator.clipboard.write([new ClipboardItem({ "image/png": picture })]);
    said.textContent = "Copied.";
  } catch {
    said.textContent = "The browser did not allow it.";
  }
}

/** A cell as text: quoted where it has to be, and no formula for a spreadsheet. */
function cell(value) {
  const text = value == null ? "" : String(value).replace(/<[^>]*>/g, "");
  const plain = typeof value === "string" && /^[=+\-@\t\r\n]/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(plain) ? `"${plain.replaceAll('"', '""')}"` : plain;
}

/** A trace's name; none where Plotly only counts them. */
function nameOf({ name }) {
  return /^trace \d+$/.test(name) ? "" : name;
}

/** What an axis calls a value. */
function named({ tickvals, ticktext }, value) {
  return ticktext?.[[...(tickvals ?? [])].indexOf(value)] ?? value;
}

/** What the chart draws: a line for each mark. */
function tableOf(chart) {
  const { xaxis, yaxis } = chart._fullLayout;
  const lines = [["series", xaxis.title.text || "x", yaxis.title.text || "y"]];
  for (const trace of chart._fullData)
    [...trace.x].forEach((x, row) => lines.push([nameOf(trace), named(xaxis, x), named(yaxis, trace.y[row])]));
  return lines.map((line) => line.map(cell).join(",")).join("\r\n");
}

async function save(root, what, data) {
  const found = await cameraOf(root);
  const said = root.querySelector("[role=status]");
  said.textContent = found ? "" : "The figure is not drawn yet.";
  if (!found) return;
  const file =
    what === "csv"
      ? new Blob(["\ufeff", tableOf(found.chart)], { type: "text/csv" })
      : await pictureOf(found, what, data);
  const { saveFile, digestOf } = window.inspectorPictures;
  saveFile(file, `${data.filename}-${digestOf(found.chart)}.${what}`);
}

/** Bars and lines are a table; of other marks the places say nothing. */
function isTable(chart) {
  const { xaxis } = chart?._fullLayout ?? {};
  const counts = ({ type, mode }) => type === "bar" || (type === "scatter" && mode.includes("lines"));
  return xaxis?.visible === true && chart._fullData.every(counts);
}

export default function ({ data, parentElement }) {
  const menu = parentElement.querySelector("details");
  const opener = menu.querySelector("summary");
  opener.setAttribute("aria-label", `Save this figure: ${data.title}`);
  const table = menu.querySelector("[data-format=csv]");
  menu.ontoggle = () => {
    parentElement.querySelector("[role=status]").textContent = "";
    table.hidden = !isTable(chartAfter(parentElement));
  };
  menu.onfocusout = (event) => {
    if (!menu.contains(event.relatedTarget)) menu.open = false;
  };
  menu.onkeydown = (event) => {
    if (event.key !== "Escape" || !menu.open) return;
    menu.open = false;
    opener.focus();
  };
  const copies = menu.querySelector("[data-copy]");
  copies.hidden = !navigator.clipboard?.write; // only where the page's address is a safe one
  copies.onclick = () => copy(parentElement, data);
  copies.setAttribute("aria-label", `Copy this figure: ${data.title}`);
  for (const button of menu.querySelectorAll("[data-format]")) {
    button.onclick = () => save(parentElement, button.dataset.format, data);
    button.setAttribute("aria-label", `Download as ${button.textContent}: ${data.title}`);
  }
}
