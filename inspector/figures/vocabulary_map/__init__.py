"""The vocabulary map of the browser: what it is made of and what is sent to it.

The component draws on a canvas by itself, so that 30,000 points appear at once and 250,000 can be
moved about; `inspector.figures.projection_figure` draws the same map for a report.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from inspector.figures.frames import column, where
from inspector.figures.kinds import KIND_STYLES
from inspector.figures.text import visible
from inspector.figures.theme import LIGHT, Theme

ASSETS = Path(__file__).parent / "assets"
SCRIPTS = ("points.js", "drawing.js", "picture.js", "component.js")  # one module, in this order


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
    return "\n".join((ASSETS / name).read_text(encoding="utf-8") for name in SCRIPTS)


def payload(
    points: pd.DataFrame,
    *,
    title: str,
    subtitle: str = "",
    axes: tuple[str, str] = ("", ""),
    selected: int | None = None,
    highlighted: Iterable[int] = (),
    theme: Theme = LIGHT,
    height: int = 560,
) -> dict[str, Any]:
    """Pack a map for the browser: numbers as base64 of little-endian arrays, each token once.

    Args:
        points: `Projection.points`: token_id, token, x, y, norm, kind.
        title: Of the map, with the checkpoint's name; also the picture's file name.
        subtitle: One more line, written into the picture.
        axes: What x and y are, such as ("PC 1 (3.1 %)", "PC 2 (2.2 %)").
        selected: Row of the selected token, or None.
        highlighted: Rows of the tokens that a search found.
        theme: Colours.
        height: Of the map itself, in pixels.

    Returns:
        Plain JSON values. Points come in drawing order (`results.KINDS`); those without a place,
        because a coordinate is NaN or infinite, are left out and counted in `left_out`.
    """
    ordered = _in_drawing_order(points)
    kinds = column(ordered, "kind")
    names = [kind for kind in KIND_STYLES if kind in set(kinds)]
    xy = ordered[["x", "y"]].to_numpy(dtype="<f4")
    drawn = {
        "xy": _packed(xy),
        "norm": _packed(ordered["norm"].to_numpy(dtype="<f4")),
        "token_id": _packed(ordered["token_id"].to_numpy(dtype="<i4")),
        "kind": _packed(np.array([names.index(kind) for kind in kinds], dtype="u1")),
        "tokens": "\n".join(visible(token) for token in column(ordered, "token")),
    }
    return {
        **drawn,
        "digest": _digest(drawn),
        "left_out": len(points) - len(ordered),
        "kinds": [_kind(name, kinds.count(name), theme) for name in names],
        "title": visible(title),
        "subtitle": visible(subtitle),
        "axes": [visible(axis) for axis in axes],
        "selected": selected,
        "highlighted": [int(row) for row in highlighted],
        "theme": {
            name: getattr(theme, name)
            for name in ("name", "page", "ink", "muted", "faint", "surface", "edge", "accent")
        },
        "height": height,
    }


def _in_drawing_order(points: pd.DataFrame) -> pd.DataFrame:
    """Drop points without a place and sort the others, so that padding comes last, on top."""
    placed = where(points, np.isfinite(points[["x", "y"]].to_numpy(dtype=float)).all(axis=1))
    ranks = {kind: rank for rank, kind in enumerate(KIND_STYLES)}
    order = np.argsort([ranks[kind] for kind in column(placed, "kind")], kind="stable")
    return placed.iloc[order]


def _packed(numbers: np.ndarray) -> str:
    return base64.b64encode(np.ascontiguousarray(numbers).tobytes()).decode("ascii")


def _digest(drawn: dict[str, str]) -> str:
    """Name the points by their content: the browser unpacks them only when they change."""
    digest = hashlib.blake2b(digest_size=16)
    for part in drawn.values():
        digest.update(part.encode("utf-8", errors="surrogatepass"))
    return digest.hexdigest()


def _kind(name: str, count: int, theme: Theme) -> dict[str, Any]:
    style = KIND_STYLES[name]
    return {
        "name": name,
        "count": count,
        "color": theme.kinds[name],
        "symbol": style.symbol,
        "size": style.size,
        "opacity": style.opacity,
        "labelled": count <= style.labels,
        "ringed": name == "padding",
    }
