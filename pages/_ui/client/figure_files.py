"""A menu for a figure: download it, drawn by the browser that shows it."""

from __future__ import annotations

import html
import re
from hashlib import blake2s
from pathlib import Path

import plotly.graph_objects as go
from streamlit.components.v2 import component

from inspector.plotting.picture_files import picture_script
from inspector.report.labeling import readable
from pages._ui import provenance

WIDTH, SCALE = 900, 3  # pixels of the picture, and of the PNG for each of them: sharp on paper
TAGS = re.compile(r"<[^>]*>")
HTML = """
<details class="files">
  <summary><svg viewBox="0 0 16 16" width="16" height="16" aria-hidden="true">
    <path d="M8 2v8m-3.2-3L8 10.2 11.2 7M3 13.5h10"/></svg></summary>
  <div>
    <button type="button" data-copy>Copy</button>
    <button type="button" data-format="png">PNG</button>
    <button type="button" data-format="svg">SVG</button>
    <button type="button" data-format="csv">CSV</button>
    <span role="status"></span>
  </div>
</details>
"""
CSS = """
.files { position: absolute; right: 0; top: 0.35rem; font: 0.82rem var(--st-font, sans-serif);
  color: var(--st-text-color, inherit) }
summary { list-style: none; margin-left: auto; width: 1.75rem; height: 1.75rem; display: grid; place-items: center;
  cursor: pointer; border-radius: 6px; border: 1px solid transparent; background: var(--st-background-color, #fff) }
summary path { fill: none; stroke: currentColor; stroke-width: 1.5; stroke-linecap: round }
summary:hover, [open] summary { border-color: var(--st-border-color, #8888) }
.files > div { display: flex; flex-direction: column; min-width: 6rem; margin-top: 0.2rem; padding: 0.25rem;
  background: var(--st-background-color, #fff); border: 1px solid var(--st-border-color, #8888); border-radius: 6px }
button { font: inherit; color: inherit; text-align: left; background: none; cursor: pointer; border: 0;
  border-radius: 4px; padding: 0.3rem 0.6rem }
button[hidden] { display: none }
button:hover { background: var(--st-secondary-background-color, #8882) }
:focus-visible { outline: 2px solid var(--st-primary-color, currentColor); outline-offset: 1px }
[role=status]:not(:empty) { padding: 0.2rem 0.6rem }
"""
ONCE = "window.inspectorPictures = { pictureFile, digestOf, saveFile }; export default () => {};"
_mount = component(
    "figure_files", html=HTML, css=CSS, js=(Path(__file__).parent / "figure_files.js").read_text(encoding="utf-8")
)
_bring = component("picture_files", js=f"{picture_script()}\n{ONCE}")


def bring() -> None:
    """Bring what makes files of figures to the page, for all of its menus."""
    _bring(key="picture_files")


def offer(figure: go.Figure, *, alt: str, key: str | None = None, file: str | None = None) -> None:
    """Offer the chart that is drawn next as files.

    Args:
        figure: With a title; what is saved is the chart as it is shown, zoom and selection too.
        alt: What it shows, in words.
        key: Of the chart, where two of a page have one title.
        file: What the files are named after; None: the title.
    """
    title = plain_title(figure)
    facts = readable({"Title": title, **provenance.of_page(), "Description": alt})
    data = {"title": title, "filename": file_name(file or title), "width": WIDTH, "scale": SCALE, "facts": facts}
    named = blake2s((key or title).encode(), digest_size=16).hexdigest()  # a component's key may hold no "__"
    _mount(key=f"files {named}", data=data)


def plain_title(figure: go.Figure) -> str:
    """The figure's title without markup."""
    return html.unescape(TAGS.sub("", figure.to_dict()["layout"]["title"].get("text", "")))


def file_name(title: str) -> str:
    """A title as a file's name that every system takes."""
    return re.sub(r"[^\w.]+", "-", title).strip("-.")[:120] or "figure"
