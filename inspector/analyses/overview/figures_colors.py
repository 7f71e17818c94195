"""What the colors of the portrait tell: kinds, dtypes, files, or how large the numbers are."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import plotly.graph_objects as go

from inspector.analyses.overview.figures_parts import DrawnTensors, Kind, Magnitude, Portrait, measure
from inspector.plotting import theme as look
from inspector.plotting.theme import Theme
from inspector.text import plain, plural, shape_text, shorten

COLORINGS = ("kind", "dtype", "file", "rms")  # what the colors may tell; the last one where numbers were read
SOFT = 0.72  # share of a color in the fill of large areas
ORDER = (1, 2, 4, 3, 5, 6, 7)  # of the theme's colors: the first one is that of ties
PATTERNS = ("", "\\", ".", "-", "x", "|", "+")  # one a color, so that color is never the only sign
KINDS: dict[Kind, str] = {
    "embedding": "embeddings",
    "attention": "attention",
    "feed-forward": "feed-forward",
    "other": "other layers",
    "head": "heads",
    "vectors": "norms, biases",
    "tied": "second name",
}
BROKEN = "NaN or infinity"
MEASURED, UNMEASURED = "measured", "not measured"


@dataclass(frozen=True, slots=True)
class Box:
    """A part, and where it is drawn."""

    part: DrawnTensors
    left: float
    top: float
    width: float
    height: float


def told_by(portrait: Portrait, color: str) -> set[str]:
    """What the colors of a portrait tell apart, second names aside."""
    return {_told(part, color) for part in portrait.parts if part.kind != "tied"}


def paint(
    boxes: Sequence[Box], parts: Sequence[DrawnTensors], *, color: str, rms: Sequence[float], theme: Theme
) -> tuple[list[go.Bar], dict[DrawnTensors, str]]:
    """Draw the rectangles, those that hold NaN or infinity in red whatever else the colors tell.

    Args:
        parts: Their places here are the customdata of the bars.
        color: One of COLORINGS.
        rms: As for `measure`; empty: no numbers were read.

    Returns:
        A trace for each color, and for each part the ink of its text.
    """
    sizes = {box.part: measure(box.part, rms) for box in boxes}
    traces, inks = [], {}
    for number, (name, group) in enumerate(_grouped(boxes, color, sizes)):
        first = group[0].part
        ground = _ground(first, number, color, theme)
        marker: dict[str, Any] = {"color": ground, "line": {"color": theme.page, "width": 1}}
        ink = look.ink_on(ground)
        if first.kind == "tied":
            hatch = {"shape": "/", "fgcolor": ground, "size": 7, "solidity": 0.16}
            marker = {"color": theme.page, "line": {"color": ground, "width": 1.5}, "pattern": hatch}
            ink = theme.ink
        elif name == BROKEN:
            marker["color"] = theme.accent
            ink = look.ink_on(theme.accent)
            marker["pattern"] = _pattern("x", ink)
        elif color == "rms":
            marker |= _shade([sizes[box.part].rms for box in group], theme) if name == MEASURED else _blank(theme)
            ink = theme.ramp_ink if name == MEASURED else theme.ink
        elif pattern := PATTERNS[number % len(PATTERNS)] if color != "kind" else "":
            marker["pattern"] = _pattern(pattern, ink)
        inks |= {box.part: ink for box in group}
        bar = _bars(group, parts, name=name, marker=marker, hovers=[_hover(box.part, sizes[box.part]) for box in group])
        bar.showlegend = name != MEASURED  # the color bar explains it
        traces.append(bar)
    return traces, inks


def _grouped(boxes: Sequence[Box], color: str, sizes: dict[DrawnTensors, Magnitude]) -> Iterator[tuple[str, list[Box]]]:
    """The rectangles by what their color tells, in the order of the legend; second names come last."""
    tied = [box for box in boxes if box.part.kind == "tied"]
    broken = [box for box in boxes if sizes[box.part].broken]
    rest = [box for box in boxes if box.part.kind != "tied" and not sizes[box.part].broken]
    if color == "rms":
        measured = [box for box in rest if sizes[box.part].measured]
        unmeasured = [box for box in rest if not sizes[box.part].measured]
        found = {MEASURED: measured, UNMEASURED: unmeasured}
    else:
        found = _told_apart(rest, color)
    yield from ((name, group) for name, group in (found | {BROKEN: broken, KINDS["tied"]: tied}).items() if group)


def _told_apart(boxes: Sequence[Box], color: str) -> dict[str, list[Box]]:
    counted: Counter[str] = Counter()
    for box in boxes:
        counted[_told(box.part, color)] += box.part.parameters
    names = [name for name, _ in counted.most_common()] if color != "kind" else list(KINDS.values())
    own = names[: len(PATTERNS) - 1] if len(names) > len(PATTERNS) else names
    found: dict[str, list[Box]] = {name: [] for name in own}
    for box in boxes:
        name = _told(box.part, color)
        found.setdefault(name if name in own else f"{len(names) - len(own):,} others", []).append(box)
    return found


def _told(part: DrawnTensors, color: str) -> str:
    """What a rectangle's color tells of it."""
    if color == "dtype":
        return part.dtype
    if color == "file":
        return part.files[0] if len(part.files) == 1 else "several files"
    return KINDS[part.kind]


def _ground(part: DrawnTensors, number: int, color: str, theme: Theme) -> str:
    """The color of a rectangle: soft, as the areas are large."""
    kinds: dict[Kind, str] = dict(zip(KINDS, (theme.groups[each] for each in (1, 2, 4, 5, 3, 6, 0)), strict=True))
    if part.kind == "tied":
        return kinds["tied"]
    if color == "kind":
        return theme.muted if part.kind == "vectors" else look.mix(kinds[part.kind], theme.page, SOFT)
    return look.mix(theme.groups[ORDER[number % len(ORDER)]], theme.page, SOFT)


def _pattern(shape: str, ink: str) -> dict[str, Any]:
    return {"shape": shape, "fillmode": "overlay", "fgcolor": ink, "fgopacity": 0.3, "size": 9, "solidity": 0.1}


def _blank(theme: Theme) -> dict[str, Any]:
    return {"color": theme.page, "line": {"color": theme.muted, "width": 1}}


def _shade(rms: Sequence[float], theme: Theme) -> dict[str, Any]:
    """Colors by the logarithm: weights of one model are of several orders."""
    positive = [each for each in rms if each] or [1.0]
    low, high = math.log10(min(positive)), math.log10(max(positive))
    low, high = (low, high) if high - low > 1e-6 else (low - 0.5, high + 0.5)
    ticks = [low, (low + high) / 2, high]
    bar = look.colorbar("RMS", theme=theme)
    return {
        "color": [math.log10(each) if each else low for each in rms],
        "cmin": low,
        "cmax": high,
        "colorscale": theme.scale,
        "showscale": True,
        "colorbar": bar | {"tickvals": ticks, "ticktext": [f"{10**tick:.2g}" for tick in ticks]},
        "line": {"color": theme.edge, "width": 1},
    }


def _bars(
    boxes: Sequence[Box], parts: Sequence[DrawnTensors], *, name: str, marker: dict[str, Any], hovers: Sequence[str]
) -> go.Bar:
    return go.Bar(
        name=plain(shorten(name, 40)),
        x=[box.left + box.width / 2 for box in boxes],
        width=[box.width for box in boxes],
        base=[box.top for box in boxes],
        y=[box.height for box in boxes],
        customdata=[parts.index(box.part) for box in boxes],
        hovertext=hovers,
        hoverinfo="text",
        marker=marker,
        selected={"marker": {"opacity": 1}},
        unselected={"marker": {"opacity": 1}},
    )


def _hover(part: DrawnTensors, size: Magnitude) -> str:
    lines = [plain(part.pattern or part.label)]
    if part.kind == "vectors":
        lines.append(f"{plural(part.count, 'vector')}: {part.parameters:,} parameters")
    else:
        each = f"{part.count:,} × " if part.count > 1 else ""
        end = "the same tensor under a second name" if part.kind == "tied" else f"{part.parameters:,} parameters"
        lines += [f"{each}{shape_text(part.shape)}, {part.dtype}", end]
    if size.measured:
        lines.append(f"RMS {size.rms:.3g}")
    if size.broken:
        lines.append(f"{BROKEN} in {plural(size.broken, 'tensor')}")
    return "<br>".join(lines)
