"""Files that are dropped anywhere on a page."""

from __future__ import annotations

from pathlib import Path

from streamlit.components.v2 import component

_mount = component("dropping", js=(Path(__file__).parent / "dropping.js").read_text(encoding="utf-8"))


def draw() -> None:
    """Hand them to the input of the sidebar."""
    _mount(key="dropping")
