"""What two checkpoints have in common: bars of what is in one, in both, in the other."""

from __future__ import annotations

from collections.abc import Mapping

import plotly.graph_objects as go

from inspector.plotting import theme as look
from inspector.plotting.theme import LIGHT, Theme
from inspector.text import percent_text, plain, shorten_name

PITCH = 54  # pixels from bar to bar
LABEL = 28  # characters of a checkpoint's name
READABLE = 0.12  # share from which on a number has room
BOTH = "in both"
GROUPS = (1, 2, 4)  # of the theme's colors
PATTERNS = ("", "/", ".")  # so that color is never the only sign


def common_bars(
    shared: Mapping[str, tuple[int, int, int]], *, names: tuple[str, str], theme: Theme = LIGHT
) -> go.Figure:
    """Draw a bar for each thing that is counted, as wide as all others.

    Args:
        shared: What is counted -> only in the first, in both, only in the second; as `words.in_common` has it.
        names: Of both checkpoints.
    """
    short = [plain(shorten_name(name, LABEL)) for name in names]
    title, subtitle = f"What {names[0]} and {names[1]} have in common", "share of all that either of them has"
    below = 84
    figure = look.figure(
        title,
        subtitle,
        theme=theme,
        height=look.title_height(title, subtitle) + PITCH * len(shared) + below,
        barmode="stack",
        bargap=0.45,
        xaxis={**look.axis(title="", theme=theme), "range": [0, 1], "tickformat": ".0%", "dtick": 0.25},
        yaxis={
            **look.axis(title="", theme=theme, grid=False),
            "range": [len(shared) - 0.5, -0.5],
            "tickvals": list(range(len(shared))),
            "ticktext": [f"{plain(what)}<br>{counts[1]:,} {BOTH}" for what, counts in shared.items()],
            "tickfont": {"size": 13, "color": theme.ink},
        },
        legend=look.legend_below(theme) | {"traceorder": "normal", "itemclick": False, "itemdoubleclick": False},
        margin={"b": below, "r": 24},
        dragmode=False,
    )
    for number, where in enumerate((f"only in {short[0]}", BOTH, f"only in {short[1]}")):
        counts = [each[number] for each in shared.values()]
        shares = [count / max(sum(each), 1) for count, each in zip(counts, shared.values(), strict=True)]
        color = look.mix(theme.groups[GROUPS[number]], theme.page, 0.72)
        ink = look.ink_on(color)
        figure.add_trace(
            go.Bar(
                name=where,
                orientation="h",
                y=list(range(len(shared))),
                x=shares,
                text=[f"{count:,}" if share >= READABLE else "" for count, share in zip(counts, shares, strict=True)],
                textposition="inside",
                insidetextanchor="middle",
                textangle=0,
                constraintext="none",
                textfont={"size": 13, "color": ink},
                marker={
                    "color": color,
                    "line": {"color": theme.page, "width": 1},
                    "pattern": {
                        "shape": PATTERNS[number],
                        "fillmode": "overlay",
                        "fgcolor": ink,
                        "fgopacity": 0.3,
                        "size": 9,
                        "solidity": 0.1,
                    },
                },
                hovertext=[
                    f"{plain(what)}: {count:,} {where} ({percent_text(share)})"
                    for what, count, share in zip(shared, counts, shares, strict=True)
                ],
                hoverinfo="text",
            )
        )
    return figure
