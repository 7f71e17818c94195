// Draw the figures of this report, in the reader's colors; on paper always in light ones.
"use strict";
(() => {
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const narrow = window.matchMedia("(max-width: 640px)"); // a phone
  const places = [...document.querySelectorAll("[data-name]")];
  const read = (name) => JSON.parse(document.getElementById("data-" + name).textContent);

  /** A table that does not fit on a phone or on paper has the cells of a row below each other. */
  function fit() {
    const onPaper = window.matchMedia("print").matches;
    for (const table of document.querySelectorAll(".scroll > table")) {
      table.classList.remove("stacked");
      const { clientWidth } = table.parentElement;
      table.style.width = "min-content";
      table.classList.toggle("stacked", (onPaper || narrow.matches) && table.offsetWidth > clientWidth);
      table.style.width = "";
    }
  }

  /** Draw all figures as wide as the paper, and lay out the tables for it. */
  window.inspectorPaper = () => {
    fit();
    return Promise.all(places.map((place) => Plotly.relayout(place, { width: place.parentElement.clientWidth })));
  };

  function inColors(figure, night) {
    for (const [path, value] of night ? figure.dark : []) {
      const last = path.length - 1;
      const holder = path.slice(0, last).reduce((at, step) => at[step], figure.light);
      holder[path[last]] = value;
    }
    return figure.light;
  }

  /** A text in lines of at most so many letters. */
  function inLines(text, letters) {
    const lines = [""];
    for (const word of text.split(" ")) {
      if (lines.at(-1) && lines.at(-1).length + word.length > letters) lines.push("");
      lines[lines.length - 1] += (lines.at(-1) && " ") + word;
    }
    return lines;
  }

  /** Give a figure the width that there is: on a phone titles take several lines, and what needs more room is smaller. */
  function fitFigure(place, layout) {
    const room = place.parentElement.clientWidth;
    const least = layout.meta?.least ?? 0;
    const width = least > room ? least : layout.width;
    place.style.zoom = least > room ? room / least : "";
    place.style.width = width ? `${width}px` : "";
    for (const [title, letter, line] of narrow.matches ? [[layout.title, 9, 22], [layout.title?.subtitle, 7, 18]] : []) {
      if (!title?.text) continue;
      const lines = inLines(title.text, Math.max(room, least) / letter);
      title.text = lines.join("<br>");
      layout.margin.t += (lines.length - 1) * line;
      layout.height += (lines.length - 1) * line;
    }
    place.style.height = `${layout.height}px`;
  }

  function draw(place, night) {
    const name = place.dataset.name;
    const figure = read(name);
    const { data, layout } = inColors((narrow.matches && figure.narrow) || figure, night);
    fitFigure(place, layout);
    const config = {
      responsive: !layout.width,
      displaylogo: false,
      displayModeBar: narrow.matches ? false : "hover",
      modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d", "toImage"],
      modeBarButtonsToAdd: [{ name: "save", title: "Download as PNG", icon: Plotly.Icons.camera, click: save }],
    };
    return Plotly.react(place, data, layout, config);
  }

  const WIDTH = 900; // pixels of a picture
  const SCALE = 3; // dots for each of them: sharp on paper

  /** A figure as SVG. */
  function drawn(figure) {
    const width = Math.max(figure.layout.width || 0, WIDTH);
    const { height } = figure._fullLayout ?? figure.layout;
    return Plotly.toImage(figure, { format: "svg", imageDataOnly: true, width, height });
  }

  /** A picture is for paper: light, whatever the page is, and of another name where it shows something else. */
  async function save(place) {
    const { name } = place.dataset;
    const { data, layout } = dark.matches ? read(name).light : place;
    const filename = `${document.querySelector("h1").textContent}-${name}-${digestOf({ data, layout })}.png`;
    saveFile(await pictureFile(await drawn({ data, layout }), read(name).facts, "png", SCALE), filename);
  }

  /** Both pictures of a figure, as data: addresses. */
  window.inspectorPictures = async (name) => {
    const svg = await drawn(document.getElementById("plot-" + name));
    const pictures = {};
    for (const format of ["svg", "png"]) {
      const reader = new FileReader();
      reader.readAsDataURL(await pictureFile(svg, read(name).facts, format, SCALE));
      await new Promise((resolve) => (reader.onload = resolve));
      pictures[format] = reader.result;
    }
    return pictures;
  };

  /** Text and figures have the same letters on every machine. */
  async function loadFonts() {
    for (const [family, weight, font] of FONTS) {
      const bytes = Uint8Array.from(atob(font), (letter) => letter.charCodeAt(0));
      document.fonts.add(await new FontFace(family, bytes, { weight }).load());
    }
  }

  let rounds = 0;

  async function drawAll(night) {
    const round = ++rounds;
    delete document.documentElement.dataset.drawn;
    for (const place of places) {
      await draw(place, night);
      await new Promise((resolve) => setTimeout(resolve)); // so that the page can be read already
      if (round < rounds) return; // the reader has turned the phone, or the light off
    }
    document.documentElement.dataset.drawn = "true";
  }

  for (const each of [dark, narrow]) each.addEventListener("change", () => drawAll(dark.matches));
  window.addEventListener("beforeprint", () => dark.matches && places.forEach((each) => draw(each, false)));
  window.addEventListener("afterprint", () => dark.matches && drawAll(true));
  window.addEventListener("resize", fit);
  loadFonts().then(() => {
    fit();
    return drawAll(dark.matches);
  });
})();
