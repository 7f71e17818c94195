// Draw the figures of this report, in the reader's colors; on paper always in light ones.
"use strict";
(() => {
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const places = [...document.querySelectorAll("[data-name]")];
  const read = (name) => JSON.parse(document.getElementById("data-" + name).textContent);

  function inColors(figure, night) {
    for (const [path, value] of night ? figure.dark : []) {
      const last = path.length - 1;
      const holder = path.slice(0, last).reduce((at, step) => at[step], figure.light);
      holder[path[last]] = value;
    }
    return figure.light;
  }

  function draw(place, night) {
    const name = place.dataset.name;
    const { data, layout } = inColors(read(name), night);
    const config = {
      responsive: !layout.width,
      displaylogo: false,
      modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d", "toImage"],
      modeBarButtonsToAdd: [{ name: "save", title: "Download as PNG", icon: Plotly.Icons.camera, click: save }],
    };
    return Plotly.react(place, data, layout, config);
  }

  /** A picture is for paper: light, whatever the page is, and of another name where it shows something else. */
  function save(place) {
    const { name } = place.dataset;
    const { data, layout } = dark.matches ? read(name).light : place;
    const shown = JSON.stringify([data, layout], (key, value) => (key === "uid" ? undefined : value));
    let digest = 0x811c9dc5; // FNV-1a
    for (let at = 0; at < shown.length; at++) digest = Math.imul(digest ^ shown.charCodeAt(at), 0x01000193);
    const filename = `${document.querySelector("h1").textContent}-${name}-${(digest >>> 0).toString(16).padStart(8, "0")}`;
    Plotly.downloadImage({ data, layout }, { format: "png", filename, width: 900, height: layout.height, scale: 3 });
  }

  async function drawAll(night) {
    for (const place of places) {
      await draw(place, night);
      await new Promise((resolve) => setTimeout(resolve)); // so that the page can be read already
    }
    document.documentElement.dataset.drawn = "true";
  }

  dark.addEventListener("change", () => drawAll(dark.matches));
  window.addEventListener("beforeprint", () => dark.matches && places.forEach((each) => draw(each, false)));
  window.addEventListener("afterprint", () => dark.matches && drawAll(true));
  drawAll(dark.matches);
})();
