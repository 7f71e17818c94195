// Save the chart above as PNG or SVG: Plotly's own picture, always as wide as a printed page.

const SECONDS = 10; // to wait for a chart that is still being drawn

/** The chart in the element before the one that holds these buttons. */
function chartBefore(root) {
  const host = root.getRootNode().host ?? root;
  let element = host.closest("[data-testid=stElementContainer]") ?? host;
  for (; element; element = element.parentElement) {
    for (let each = element.previousElementSibling; each; each = each.previousElementSibling) {
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
    const chart = chartBefore(root);
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

async function save(root, format, data) {
  const found = await cameraOf(root);
  root.querySelector(".problem").hidden = Boolean(found);
  if (!found) return;
  const { chart, camera } = found;
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

export default function ({ data, parentElement }) {
  for (const button of parentElement.querySelectorAll("button")) {
    button.onclick = () => save(parentElement, button.dataset.format, data);
    button.setAttribute("aria-label", `Download as ${button.textContent}: ${data.title}`);
  }
}
