"""Download a figure as PNG or SVG, drawn by the browser that shows it."""

from __future__ import annotations

import html
import re
from hashlib import blake2s
from pathlib import Path

import plotly.graph_objects as go
from streamlit.components.v2 import component

WIDTH, SCALE = 900, 3  # pixels of the picture, and of the PNG for each of them: sharp on paper
TAGS = re.compile(r"<[^>]*>")
HTML = """
<span class="files">
  <button type="button" data-format="png">PNG</button>
  <button type="button" data-format="svg">SVG</button>
  <span class="problem" role="status" hidden>The figure is not drawn yet.</span>
</span>
"""
CSS = """
.files { display: flex; flex-wrap: wrap; gap: 0.4rem; align-items: center;
  font-family: var(--st-font, sans-serif); font-size: 0.8rem; color: var(--st-text-color, inherit); }
button { font: inherit; color: inherit; background: transparent; cursor: pointer;
  border: 1px solid var(--st-border-color, #8888); border-radius: var(--st-button-radius, 6px);
  padding: 0.1rem 0.55rem; min-height: 1.7rem; }
button:hover { border-color: var(--st-primary-color, currentColor); }
button:focus-visible { outline: 2px solid var(--st-primary-color, currentColor); outline-offset: 1px; }
"""
_mount = component(
    "figure_files", html=HTML, css=CSS, js=(Path(__file__).parent / "figure_files.js").read_text(encoding="utf-8")
)


def offer(figure: go.Figure, *, key: str | None = None, file: str | None = None) -> None:
    """Offer the chart that was drawn last as files.

    Args:
        figure: With a title; what is saved is the chart as it is shown, zoom and selection too.
        key: Of the chart, where two of a page have one title.
        file: What the files are named after; None: the title.
    """
    title = plain_title(figure)
    data = {"title": title, "filename": file_name(file or title), "width": WIDTH, "scale": SCALE}
    named = blake2s((key or title).encode(), digest_size=16).hexdigest()  # a component's key may hold no "__"
    _mount(key=f"files {named}", data=data)


def plain_title(figure: go.Figure) -> str:
    """The figure's title without markup."""
    return html.unescape(TAGS.sub("", figure.to_dict()["layout"]["title"].get("text", "")))


def file_name(title: str) -> str:
    """A title as a file's name that every system takes."""
    return re.sub(r"[^\w.]+", "-", title).strip("-.")[:120] or "figure"
