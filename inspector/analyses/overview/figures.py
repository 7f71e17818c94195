"""The portrait of a checkpoint: every matrix to scale, ties as loops, identical layers folded."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import plotly.graph_objects as go

from inspector.analyses.overview.figures_colors import COLORINGS, Box, paint
from inspector.analyses.overview.figures_layout import HEADER, LINE, SMALL, TEXT, WIDTH, Absent, Note, arrange
from inspector.analyses.overview.figures_narrow import arrange_narrow
from inspector.analyses.overview.figures_parts import DrawnTensors, Portrait
from inspector.plotting import theme as look
from inspector.plotting.lettering import text_width
from inspector.plotting.theme import LIGHT, Theme
from inspector.text import plain, shape_text

BELOW, SCALE = 44, 26  # pixels of the legend's line, and of a color bar
LEGEND, ROW, KEY = 13, 19, 58  # on a phone: pixels of its letters and lines, and of an entry besides its name


def portrait_figure(
    portrait: Portrait,
    *,
    title: str,
    subtitle: str = "",
    color: str = COLORINGS[0],
    rms: Sequence[float] = (),
    narrow: bool = False,
    theme: Theme = LIGHT,
) -> go.Figure:
    """Draw a checkpoint's matrices as rectangles with areas by their parameters.

    Columns are embeddings, layers, and what follows; a column of identical layers shows one of them and says how many
    there are. A second name of a matrix is hatched and joined to the matrix by a curve; a head that the files lack has
    a dashed outline.

    Args:
        color: One of COLORINGS: what the colors of the rectangles tell.
        rms: Of each stored tensor, as `measure` takes it; empty: no numbers were read.
        narrow: For a phone: what are columns else are one below the other.

    Returns:
        A figure with one trace of clickable bars for each color; their customdata is the number of the part in
        `Portrait.parts`.
    """
    layout = arrange_narrow(portrait) if narrow else arrange(portrait)
    scaled = color == "rms" and any(map(math.isfinite, rms))
    traces, inks = paint(layout.boxes, portrait.parts, color=color, rms=rms, theme=theme)
    legend = (
        _legend_height([str(trace.name) for trace in traces if trace.showlegend], layout.right) if narrow else BELOW
    )
    figure = look.figure(
        title,
        subtitle,
        theme=theme,
        height=round(layout.bottom + HEADER + look.title_height(title, subtitle) + legend + (SCALE if scaled else 0)),
        meta={"least": layout.right if narrow else WIDTH},
        xaxis=look.hidden_axis(-2, max(layout.right, 1) + 2),
        yaxis=look.hidden_axis(layout.bottom, -HEADER),
        barmode="overlay",
        bargap=0,
        hovermode="closest",
        dragmode=False,
        clickmode="event+select",
        legend=look.legend_below(theme) | {"y": -0.01, "itemclick": False, "itemdoubleclick": False},
    )
    figure.add_traces(traces)
    figure.layout.shapes = [
        *(_dashed(each, theme) for each in layout.absent),
        *(_loop(each, theme) for each in layout.loops),
    ]
    figure.layout.annotations = [
        *(_note(each, theme) for each in layout.notes),
        *_labels(layout.boxes, inks, theme),
        *(_absent(each, theme) for each in layout.absent),
    ]
    return figure


def _legend_height(names: Sequence[str], width: float) -> float:
    """Pixels of a legend whose entries stand in as many columns as there is room for."""
    entry = max([text_width(name, LEGEND) for name in names], default=0.0) + KEY
    return LINE + ROW * math.ceil(len(names) / max(1, width // entry))


def _note(note: Note, theme: Theme) -> dict[str, Any]:
    """What a column is, or on a curve what it says."""
    color = theme.groups[0] if note.is_tie else theme.ink
    made = _text(plain(note.text), (note.x, note.y), color, size=TEXT)
    return made | ({"bgcolor": theme.page, "borderpad": 3} if note.is_centered else {"xanchor": "left"})


def _labels(boxes: Sequence[Box], inks: dict[DrawnTensors, str], theme: Theme) -> list[dict[str, Any]]:
    """Names and shapes inside the rectangles that have room for them."""
    found = []
    for box in boxes:
        part = box.part
        if part.kind == "vectors":
            continue
        name = f"{part.label} × {part.count}" if part.count > 1 else part.label
        size = "same tensor" if part.kind == "tied" else shape_text(part.shape)
        names = [name, name[0].upper()] if part.kind == "attention" else [name]
        fitting = [each for each in names if text_width(each, SMALL) <= box.width - 4]
        lines = fitting[:1] if box.height >= 15 else []
        if lines and text_width(size, SMALL) <= box.width - 6 and box.height >= 32:
            lines.append(size)
        if lines:
            middle = box.left + box.width / 2, box.top + box.height / 2
            text = _text("<br>".join(plain(line) for line in lines), middle, inks[part], size=SMALL)
            found.append(text | ({"bgcolor": theme.page} if part.kind == "tied" else {}))
    return found


def _text(text: str, place: tuple[float, float], color: str, *, size: int) -> dict[str, Any]:
    return {
        "text": text,
        "x": place[0],
        "y": place[1],
        "xanchor": "center",
        "yanchor": "middle",
        "showarrow": False,
        "font": {"color": color, "size": size},
        "borderpad": 1,
    }


def _absent(absent: Absent, theme: Theme) -> dict[str, Any]:
    middle = absent.left + absent.width / 2, absent.top + absent.height / 2
    return _text("<br>".join(map(plain, absent.lines)), middle, theme.muted, size=SMALL)


def _dashed(absent: Absent, theme: Theme) -> dict[str, Any]:
    return {
        "type": "rect",
        "x0": absent.left,
        "x1": absent.left + absent.width,
        "y0": absent.top,
        "y1": absent.top + absent.height,
        "line": {"color": theme.muted, "width": 1, "dash": "4px,3px"},
    }


def _loop(path: str, theme: Theme) -> dict[str, Any]:
    return {"type": "path", "path": path, "line": {"color": theme.groups[0], "width": 1.5}, "layer": "below"}
