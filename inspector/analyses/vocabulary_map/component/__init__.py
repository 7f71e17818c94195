"""The vocabulary map of the browser: what it is made of and what is sent to it.

The component draws on a canvas by itself, in two and three dimensions, so that 30,000 points appear
at once and 250,000 can be moved about. What is large goes as one block of bytes that is packed once
(`pack`), what changes with every click as a few plain values (`state`).
`projection_figure`, in the room, draws the flat map for a report.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from inspector.analyses.vocabulary_map.component.finding import SearchResult, find_tokens
from inspector.analyses.vocabulary_map.component.packing import PackedPoints, pack, unpack_ids
from inspector.analyses.vocabulary_map.component.state import COLORS, RAMPS, state
from inspector.plotting.picture_files import picture_script

__all__ = [
    "COLORS",
    "RAMPS",
    "PackedPoints",
    "SearchResult",
    "css",
    "find_tokens",
    "html",
    "javascript",
    "pack",
    "state",
    "unpack_ids",
]

ASSETS = Path(__file__).parent / "assets"
SCRIPTS = (  # one module, in this order
    "points.js",
    "view.js",
    "colors.js",
    "drawing.js",
    "overlay.js",
    "svg.js",
    "picture.js",
    "legend.js",
    "gestures.js",
    "component.js",
)


@cache
def html() -> str:
    """Read the component's markup."""
    return (ASSETS / "component.html").read_text(encoding="utf-8")


@cache
def css() -> str:
    """Read the component's style sheet."""
    return (ASSETS / "component.css").read_text(encoding="utf-8")


@cache
def javascript() -> str:
    """Join the component's scripts into the one module that Streamlit wants."""
    return "\n".join((picture_script(), *((ASSETS / name).read_text(encoding="utf-8") for name in SCRIPTS)))
