"""How long the vocabulary map takes in a browser: first paint, panning, turning, a rerun.

Made-up points at three sizes, without a server: what is measured is packing in Python and drawing
in headless Chromium, which has no graphics card here. `python -m tools.bench.vocabulary_map`.
"""

from __future__ import annotations

import base64
import os
import time

import numpy as np
import pandas as pd
from playwright.sync_api import Page, sync_playwright

from inspector.analyses.vocabulary_map import component
from tools.chromium import FLAGS, find_chromium

SIZES = (30_522, 100_000, 256_000)
FRAMES = 30

# The component alone in a page, fed as Streamlit would feed it.
MOUNT = """async ([html, css, script]) => {
  const root = document.getElementById("root");
  root.innerHTML = html;
  const style = document.createElement("style");
  style.textContent = css;
  root.append(style);
  const url = URL.createObjectURL(new Blob([script], { type: "text/javascript" }));
  const module = await import(url);
  window.reported = [];
  const setTriggerValue = (name, value) => window.reported.push([name, value]);
  window.update = (data) => module.default({ data, parentElement: root, setTriggerValue });
  const other = document.createElement("div");
  window.bringBytes = (data) => module.default({ data, parentElement: other, setTriggerValue });
  window.bring = (text) => {
    window.bringBytes(Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0)));
  };
}"""

# Seconds from the bytes to the first frame that is drawn, as Streamlit would hand them over.
PAINT = """async ([state, text]) => {
  const data = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const canvas = document.querySelector(".stage canvas");
  const started = performance.now();
  window.update(state);
  window.bringBytes(data);
  while (!canvas.dataset.drawn) await new Promise(requestAnimationFrame);
  return (performance.now() - started) / 1000;
}"""
# Milliseconds of each frame while an arrow key is held.
MOVE = """async (frames) => {
  const canvas = document.querySelector(".stage canvas");
  const times = [];
  for (let i = 0; i < frames; i++) {
    const before = canvas.dataset.drawn;
    const started = performance.now();
    const key = i % 2 ? "ArrowLeft" : "ArrowRight";
    canvas.dispatchEvent(new KeyboardEvent("keydown", { key }));
    while (canvas.dataset.drawn === before) await new Promise(requestAnimationFrame);
    times.push(performance.now() - started);
  }
  return times;
}"""


def make_points(count: int, dimensions: int) -> pd.DataFrame:
    """Points in clusters, of the usual kinds."""
    random = np.random.default_rng(0)
    middles = random.normal(scale=8, size=(200, dimensions))
    places = middles[random.integers(200, size=count)] + random.normal(size=(count, dimensions))
    kinds = np.where(random.random(count) < 0.2, "subword", "word").astype(object)
    kinds[:5], kinds[0] = "special", "padding"
    axes = {axis: places[:, i].astype(np.float32) for i, axis in enumerate("xyz"[:dimensions])}
    return pd.DataFrame(
        {
            "token_id": np.arange(count, dtype=np.int32),
            "token": [f"token{row}" for row in range(count)],
            **axes,
            "norm": random.random(count, dtype=np.float32),
            "kind": kinds,
        }
    )


def measure(page: Page, count: int, dimensions: int) -> str:
    """Time one map and give its line of the table."""
    points = make_points(count, dimensions)
    started = time.perf_counter()
    packed = component.pack(points)
    packing = time.perf_counter() - started
    state = component.state(packed.digest, title="map", height=560)
    page.set_content("<body style='margin:0'><div id='root' style='width:900px'></div>")
    page.evaluate(MOUNT, [component.html(), component.css(), component.javascript()])
    paint = page.evaluate(PAINT, [state, base64.b64encode(packed.data).decode()])
    page.wait_for_timeout(500)
    moves = sorted(page.evaluate(MOVE, FRAMES))
    return (
        f"{count:>9,}  {dimensions}-D {len(packed.data) / 1e6:>8.1f} {packing:>8.2f} {paint:>8.2f} "
        f"{moves[len(moves) // 2]:>8.0f} {moves[-2]:>8.0f}"
    )


def main() -> None:
    """Print the table."""
    print(f"{os.cpu_count()} processors, load {os.getloadavg()[0]:.1f} at start")
    print("   points            MB   pack s  paint s  move ms  slow ms")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=list(FLAGS))
        page = browser.new_page(viewport={"width": 920, "height": 900})
        for count in SIZES:
            for dimensions in (2, 3):
                print(measure(page, count, dimensions))
        browser.close()


if __name__ == "__main__":
    main()
