"""What a head predicts: the likeliest tokens as bars."""

from __future__ import annotations

import pandas as pd
import plotly.graph_objects as go

from inspector.figures import theme as look
from inspector.figures.frames import column, columns
from inspector.figures.text import percent_text, plain, shorten
from inspector.figures.theme import LIGHT, Theme

BAR = 30  # pixels from bar to bar


def topk_bars(
    predictions: pd.DataFrame,
    *,
    title: str,
    subtitle: str = "",
    theme: Theme = LIGHT,
) -> go.Figure:
    """Draw one mask's likeliest tokens, the first one on top.

    Args:
        predictions: `Mask.predictions`: token, token_id, probability (0..1), logit, likeliest
            first. Two tokens may look the same; each has its bar.
        title: Of the figure, with the checkpoint's name.
        subtitle: One more line of plain text.
        theme: Colours.

    Returns:
        A figure with one bar a token at y = 0, 1, ..., with customdata token_id.
    """
    count = len(predictions)
    shares = column(predictions, "probability")
    figure = go.Figure(
        layout=look.layout(
            title=plain(title),
            subtitle=plain(subtitle),
            theme=theme,
            height=look.title_height(title, subtitle) + BAR * max(count, 1) + 56,
        )
    )
    longest = max(shares, default=1.0)
    figure.update_layout(
        xaxis={
            **look.axis(title="probability", theme=theme),
            "range": [0, max(longest, 1e-9) * 1.02],
            "tickformat": _tick_format(longest),
            "nticks": 6,
        },
        yaxis={
            **look.axis(title="", theme=theme, grid=False),
            "range": [count - 0.5, -0.5],
            "tickvals": list(range(count)),
            "ticktext": [plain(shorten(token, 24)) for token in column(predictions, "token")],
            "tickfont": {"size": 14, "color": theme.ink},
        },
        bargap=0.28,
        margin={"r": 60},  # for the last bar's number, on narrow pages too
        clickmode="event+select",
        dragmode=False,
    )
    figure.add_trace(
        go.Bar(
            orientation="h",
            y=list(range(count)),
            x=shares,
            text=[f" {plain(percent_text(share))}" for share in shares],
            textposition="outside",
            textfont={"size": 13, "color": theme.ink},
            cliponaxis=False,
            marker={"color": theme.groups[1]},
            customdata=column(predictions, "token_id"),
            hovertext=[
                f"<b>{plain(token)}</b><br>id {token_id}<br>{plain(percent_text(share))}"
                f"<br>logit {logit:.3f}"
                for token, token_id, share, logit in columns(
                    predictions, "token", "token_id", "probability", "logit"
                )
            ],
            hoverinfo="text",
            selected={"marker": {"color": theme.accent, "opacity": 1}},
            unselected={"marker": {"opacity": 1}},
        )
    )
    return figure


def _tick_format(longest: float) -> str:
    """Ticks that differ from each other and are not all rounded to nothing."""
    if longest >= 0.04:
        return ".0%"
    return ".2%" if longest >= 0.001 else ".1e"
