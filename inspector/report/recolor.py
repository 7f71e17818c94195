"""One figure for light and dark readers: the light one, and what the dark one has otherwise."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import plotly.graph_objects as go

from inspector.plotting.theme import DARK, LIGHT, Theme

Change = list[Any]  # [path, value]: where in the figure, and what stands there


def both(draw: Callable[[Theme], go.Figure]) -> dict[str, Any]:
    """Draw a figure twice.

    Returns:
        "light": the figure as plain JSON values; "dark": changes that make the dark one of it.
    """
    light, dark = (plain(draw(theme), theme) for theme in (LIGHT, DARK))
    return {"light": light, "dark": list(changes(light, dark))}


def plain(figure: go.Figure, theme: Theme) -> dict[str, Any]:
    """A figure as JSON values, on the theme's ground: a saved dark one must stay readable."""
    figure.layout.paper_bgcolor = theme.page
    text = figure.to_json(engine="json")
    return json.loads(text if isinstance(text, str) else "{}")


def changes(first: Any, second: Any, path: tuple[str | int, ...] = ()) -> Iterator[Change]:
    """Find what to change in the first value to get the second; lists of numbers go whole."""
    if isinstance(first, dict) and isinstance(second, dict) and first.keys() == second.keys():
        for name in first:
            yield from changes(first[name], second[name], (*path, name))
    elif _alike(first, second):
        for place, (one, other) in enumerate(zip(first, second, strict=True)):
            yield from changes(one, other, (*path, place))
    elif first != second:
        yield [list(path), second]


def _alike(first: Any, second: Any) -> bool:
    return (
        isinstance(first, list)
        and isinstance(second, list)
        and len(first) == len(second)
        and any(isinstance(each, dict) for each in first)
    )
