"""What the map shows at the moment: selection, colors, layers. Small, and sent at every rerun."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from inspector.plotting.kinds import KIND_STYLES
from inspector.plotting.theme import LIGHT, Theme
from inspector.text import visible

MOST_FOUND = 5_000  # search results that are ringed

# Ways to color: column of the points (or "kind", "script") -> what the legend says.
COLORS = {
    "kind": "kind",
    "norm": "norm",
    "token_id": "token id",
    "script": "script",
    "score": "under-training score",
    "trust": "true neighbors kept",
    "stability": "kept under another seed",
}
SHARES = ("trust", "stability")  # drawn over 0..1, so that two maps can be compared

# From low to high: evenly darker or lighter throughout, so that they read without color vision,
# and nowhere close to the page (after Matplotlib's plasma, van der Walt & Smith 2015).
RAMPS = {
    "light": ("#d67205", "#d5536f", "#a62098", "#6a00a8", "#200a6e"),
    "dark": ("#8a4fd6", "#cc4778", "#f0804e", "#fdb42f", "#f0f921"),
}
NONE = {"light": "#8b93a1", "dark": "#6d7687"}  # what has no number, or no script of its own


def state(
    digest: str,
    *,
    title: str,
    subtitle: str = "",
    axes: tuple[str, str] = ("", ""),
    color: str = "kind",
    selected: int | None = None,
    found: Iterable[int] = (),
    neighbors: Iterable[int] = (),
    chosen: Iterable[int] = (),
    hidden: Iterable[str] = (),
    theme: Theme = LIGHT,
    height: int = 560,
    facts: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Describe what the map shows.

    Args:
        title: Of the map, with the checkpoint's name; the pictures' names begin with it.
        subtitle: One more line, written into the picture.
        axes: What x and y are, such as ("PC 1 (3.1 %)", "PC 2 (2.2 %)").
        color: One of COLORS; where the points lack the column, the kind.
        selected: Token id of the selected token, or None.
        found: Token ids that a search found; the first 5,000 are ringed.
        neighbors: Token ids of the selected token's true neighbors, nearest first.
        chosen: Token ids inside the lasso.
        hidden: Names of the layers that are switched off.
        height: Of the map itself, in pixels.
        facts: What its pictures say of themselves.

    Returns:
        Plain JSON values.
    """
    plain = ("name", "page", "ink", "muted", "faint", "surface", "edge", "accent")
    return {
        "digest": digest,
        "title": visible(title),
        "subtitle": visible(subtitle),
        "axes": [visible(axis) for axis in axes],
        "color": {
            "name": color,
            "label": COLORS[color],
            "share": color in SHARES,
            "range": [0, 1] if color in SHARES else None,
            "digits": 0 if color == "token_id" else 3,
        },
        "selected": selected,
        "found": [int(row) for row in found][:MOST_FOUND],
        "neighbors": [int(row) for row in neighbors],
        "chosen": [int(row) for row in chosen],
        "hidden": sorted(hidden),
        "styles": {
            name: {
                "color": theme.kinds[name],
                "symbol": style.symbol,
                "size": style.size,
                "opacity": style.opacity,
                "labels": style.labels,
                "ringed": name == "padding",
            }
            for name, style in KIND_STYLES.items()
        },
        "flag": {"name": "under-trained", "symbol": "triangle-down", "size": 9, "color": theme.groups[6]},
        "theme": {
            **{name: getattr(theme, name) for name in plain},
            "groups": list(theme.groups),
            "values": list(RAMPS[theme.name]),
            "none": NONE[theme.name],
        },
        "height": height,
        "facts": dict(facts or {}),
    }
