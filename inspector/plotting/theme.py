"""Colors and fonts of every figure, light and dark, safe for color-blind readers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import plotly.graph_objects as go

from inspector.text import plain

SANS = "Source Sans, Source Sans Pro, Helvetica Neue, Arial, sans-serif"
MONO = "Source Code Pro, DejaVu Sans Mono, Menlo, Consolas, monospace"


@dataclass(frozen=True, slots=True)
class Theme:
    """One look: inks, surfaces and the colors that carry meaning."""

    name: str  # "light" or "dark"
    page: str  # what lies under the figure; used where a figure is drawn on its own
    ink: str
    muted: str  # second-rank text, still readable
    faint: str  # gridlines
    surface: str  # boxes
    edge: str  # outlines of boxes
    accent: str  # what was selected
    groups: tuple[str, ...]  # told apart without color vision too, in order of use
    ramp: tuple[str, ...]  # from nothing to all
    ramp_ink: str  # readable on the whole ramp
    kinds: dict[str, str]  # kind of token -> color

    @property
    def scale(self) -> list[list[Any]]:
        """The ramp as Plotly takes it."""
        return [[step / (len(self.ramp) - 1), color] for step, color in enumerate(self.ramp)]


LIGHT = Theme(
    name="light",
    page="#ffffff",
    ink="#1d2433",
    muted="#5c667a",
    faint="#e3e7ee",
    surface="#f0f3f8",
    edge="#d3dae5",
    accent="#b3261e",
    groups=("#bf4209", "#0f6cab", "#00755a", "#8f3f97", "#8a6200", "#3d4fb8", "#a83267", "#4a6b12"),
    ramp=("#f4f7fb", "#d5e6f4", "#a3cdea", "#6fb1de", "#3f92d2"),
    ramp_ink="#0d1420",
    kinds={
        "word": "#7389a6",
        "subword": "#3b8fbc",
        "byte": "#00755a",
        "no token": "#6b7280",
        "unused": "#a97800",
        "special": "#8f3f97",
        "padding": "#d0390b",
    },
)

DARK = Theme(
    name="dark",
    page="#0e1117",
    ink="#eceff5",
    muted="#a3adbf",
    faint="#2a3140",
    surface="#1c2330",
    edge="#3a4557",
    accent="#ff8a80",
    groups=("#ff8552", "#5bb5f0", "#35c79b", "#d993e6", "#e8b63a", "#9aa8ff", "#ff8cbb", "#a8cf5a"),
    ramp=("#181e29", "#1b3149", "#1f4768", "#245e8e", "#2a74b5"),
    ramp_ink="#ffffff",
    kinds={
        "word": "#7389a6",
        "subword": "#4c9fc9",
        "byte": "#35c79b",
        "no token": "#9aa3b2",
        "unused": "#e8b63a",
        "special": "#d993e6",
        "padding": "#ff7043",
    },
)

THEMES = {theme.name: theme for theme in (LIGHT, DARK)}
COLOR_BAR = 180  # pixels of a color bar


def get_theme(name: str | None) -> Theme:
    """Find a theme by the name that the browser gives.

    Args:
        name: "light", "dark", or None where the browser has not said yet.

    Returns:
        The theme; the light one for None and for a name that is not known.
    """
    return THEMES.get(name or "light", LIGHT)


def figure(title: str, subtitle: str, /, *, theme: Theme, height: int, **layout: object) -> go.Figure:
    """Begin a figure with what all figures have in common.

    Args:
        title: Any text, in bold at the top left; "" for none.
        subtitle: A second, smaller line; "" for none.
        height: Of the whole figure, in pixels.
        layout: What is its own, as Plotly's layout names it; dictionaries add to the common ones. Given
            here it costs 2 ms where `Figure.update_layout` takes 15.

    Returns:
        A figure without traces, with a transparent ground and margins that hold the title's lines.
    """
    common: dict[str, Any] = {
        "template": "none",
        "title": {
            "text": f"<b>{plain(title)}</b>" if title else "",
            "subtitle": {"text": plain(subtitle), "font": {"size": 13, "color": theme.muted}},
            "x": 0,
            "xref": "container",
            "xanchor": "left",
            "y": 1,
            "yref": "container",
            "yanchor": "top",
            "pad": {"t": 12, "l": 8},
            "font": {"size": 17, "color": theme.ink},
        },
        "height": height,
        "margin": {"l": 8, "r": 8, "t": title_height(title, subtitle), "b": 8},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "font": {"family": SANS, "size": 13, "color": theme.ink},
        "hoverlabel": {
            "bgcolor": theme.surface,
            "bordercolor": theme.edge,
            "align": "left",
            "font": {"family": SANS, "size": 13, "color": theme.ink},
        },
        "legend": {"font": {"color": theme.ink}, "bgcolor": "rgba(0,0,0,0)"},
        "modebar": {"bgcolor": "rgba(0,0,0,0)", "color": theme.muted, "activecolor": theme.ink},
    }
    return go.Figure(layout=_merged(common, layout))


def _merged(common: dict[str, Any], own: dict[str, Any]) -> dict[str, Any]:
    """Both; where both have a dictionary, theirs merged."""
    both = {
        name: _merged(common[name], value) if isinstance(value, dict) and isinstance(common.get(name), dict) else value
        for name, value in own.items()
    }
    return common | both


def legend_below(theme: Theme) -> dict[str, object]:
    """Describe a legend in one line below the horizontal axis."""
    return {
        "orientation": "h",
        "x": 0,
        "y": -0.2,
        "yanchor": "top",
        "font": {"size": 13, "color": theme.ink},
        "itemwidth": 42,
    }


def title_height(title: str, subtitle: str) -> int:
    """Say how much room the title's lines take at the top, in pixels."""
    return 12 + (34 if title else 0) + (24 if subtitle else 0)


def axis(*, title: str, theme: Theme, grid: bool = True) -> dict[str, object]:
    """Describe a plain axis: quiet grid, no zero line, no frame."""
    return {
        "title": {"text": title, "font": {"size": 13, "color": theme.muted}, "standoff": 10},
        "showgrid": grid,
        "gridcolor": theme.faint,
        "zeroline": False,
        "showline": False,
        "ticks": "",
        "ticklabelstandoff": 6,
        "tickfont": {"size": 12, "color": theme.muted},
        "automargin": True,
    }


def colorbar(name: str, *, theme: Theme) -> dict[str, object]:
    """Build a flat color bar at the foot of the figure, at the right.

    Args:
        name: What the colors mean; already safe for Plotly.
    """
    return {
        "title": {"text": name, "side": "bottom", "font": {"size": 13, "color": theme.muted}},
        "tickfont": {"size": 12, "color": theme.muted},
        "orientation": "h",
        "thickness": 10,
        "lenmode": "pixels",  # so that there is a bar on a phone, too
        "len": COLOR_BAR,
        "tickangle": 0,
        "x": 1,
        "xanchor": "right",
        "ticklabeloverflow": "allow",
        "y": 0,
        "yref": "container",
        "yanchor": "bottom",
        "ypad": 4,
        "xpad": 24,  # room for half of the last label
        "outlinewidth": 0,
    }


def hidden_axis(low: float, high: float) -> dict[str, object]:
    """Describe an axis that only places things and is not drawn."""
    return {"range": [low, high], "visible": False, "fixedrange": True}


def channels(color: str) -> tuple[int, int, int]:
    """Read "#rrggbb" as red, green and blue, 0..255."""
    return int(color[1:3], 16), int(color[3:5], 16), int(color[5:7], 16)


def luminance(color: str) -> float:
    """Measure a color's relative luminance, 0..1, as WCAG 2.2 defines it."""
    linear = [
        c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4
        for c in (channel / 255 for channel in channels(color))
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(first: str, second: str) -> float:
    """Measure the contrast of two colors, 1..21, as WCAG 2.2 defines it."""
    low, high = sorted((luminance(first), luminance(second)))
    return (high + 0.05) / (low + 0.05)


def mix(color: str, ground: str, share: float) -> str:
    """Lay a color over a ground with an opacity of 0..1 and give the opaque result."""
    pairs = zip(channels(color), channels(ground), strict=True)
    return "#{:02x}{:02x}{:02x}".format(*(round(share * a + (1 - share) * b) for a, b in pairs))


def ink_on(color: str) -> str:
    """Choose the ink, near black or white, that is easier to read on a color."""
    return max(("#0d1420", "#ffffff"), key=lambda ink: contrast(ink, color))


def alpha(color: str, opacity: float) -> str:
    """Turn "#rrggbb" into Plotly's "rgba(…)" with an opacity of 0..1."""
    red, green, blue = channels(color)
    return f"rgba({red},{green},{blue},{opacity:g})"
