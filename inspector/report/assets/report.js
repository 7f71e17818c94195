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
      modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d"],
      toImageButtonOptions: { filename: name, width: 900, height: layout.height, scale: 3 },
    };
    return Plotly.react(place, data, layout, config);
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
