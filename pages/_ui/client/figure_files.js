// A menu in the chart's corner: copy it, or save it as PNG, SVG or CSV. Pictures are Plotly's own, as wide as on paper.

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

/** A short name of what a chart shows, so that two pictures of one page differ in their names. */
function digestOf(chart) {
  const shown = JSON.stringify([chart.data, chart.layout], (key, value) => (key === "uid" ? undefined : value));
  let digest = 0x811c9dc5; // FNV-1a
  for (let at = 0; at < shown.length; at++) digest = Math.imul(digest ^ shown.charCodeAt(at), 0x01000193);
  return (digest >>> 0).toString(16).padStart(8, "0");
}

/** Have Plotly save its picture. */
function savePicture({ chart, camera }, format, data) {
  const before = chart._context.toImageButtonOptions;
  chart._context.toImageButtonOptions = {
    format,
    filename: `${data.filename}-${digestOf(chart)}`,
    width: data.width,
    height: chart._fullLayout.height,
    scale: format === "png" ? data.scale : 1,
  };
  camera.click();
  chart._context.toImageButtonOptions = before;
}

/** The PNG that Plotly would save. Its button makes one for a link, which is not followed this time. */
function pngOf(found, data) {
  const { createObjectURL } = URL;
  const { click } = HTMLAnchorElement.prototype;
  return new Promise((resolve) => {
    let picture;
    URL.createObjectURL = (blob) => {
      if (blob.type === "image/png") picture = blob;
      return createObjectURL.call(URL, blob);
    };
    HTMLAnchorElement.prototype.click = function () {
      if (!picture) return click.call(this);
      Object.assign(URL, { createObjectURL });
      HTMLAnchorElement.prototype.click = click;
      resolve(picture);
    };
    savePicture(found, "png", data);
  });
}

async function copy(root, data) {
  const said = root.querySelector("[role=status]");
  try {
    const picture = cameraOf(root).then((found) => (found ? pngOf(found, data) : Promise.reject()));
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

function saveTable(chart, data) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob(["\ufeff", tableOf(chart)], { type: "text/csv" }));
  link.download = `${data.filename}-${digestOf(chart)}.csv`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

async function save(root, what, data) {
  const found = await cameraOf(root);
  const said = root.querySelector("[role=status]");
  said.textContent = found ? "" : "The figure is not drawn yet.";
  if (!found) return;
  if (what === "csv") saveTable(found.chart, data);
  else savePicture(found, what, data);
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
