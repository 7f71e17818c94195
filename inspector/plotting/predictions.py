"""What a head predicts: the most likely tokens as bars."""

from __future__ import annotations

import pandas as pd
import plotly.graph_objects as go

from inspector.plotting.bars import bar_rows
from inspector.plotting.frames import column, columns
from inspector.plotting.theme import LIGHT, Theme
from inspector.text import percent_text, plain, shorten

BAR = 22  # pixels from bar to bar


def topk_bars(predictions: pd.DataFrame, *, title: str, subtitle: str = "", theme: Theme = LIGHT) -> go.Figure:
    """Draw one mask's most likely tokens, the first one on top.

    Args:
        predictions: `Mask.predictions`: token, token_id, probability (0..1), logit, most likely
            first. Two tokens may look the same; each has its bar.

    Returns:
        A figure with one bar a token at y = 0, 1, ..., with customdata token_id.
    """
    shares = column(predictions, "probability")
    longest = max(shares, default=1.0)
    figure = bar_rows(
        shares,
        names=[plain(shorten(token, 24)) for token in column(predictions, "token")],
        texts=[plain(percent_text(share)) for share in shares],
        hovers=[
            f"<b>{plain(token)}</b><br>id {token_id}<br>{plain(percent_text(share))}<br>logit {logit:.3f}"
            for token, token_id, share, logit in columns(predictions, "token", "token_id", "probability", "logit")
        ],
        measure="probability",
        tickformat=_tick_format(longest),
        title=title,
        subtitle=subtitle,
        pitch=BAR,
        size=14,
        room=60,
        theme=theme,
    )
    figure.layout.clickmode = "event+select"
    figure.update_traces(
        customdata=column(predictions, "token_id"),
        selected={"marker": {"color": theme.accent, "opacity": 1}},
        unselected={"marker": {"opacity": 1}},
    )
    return figure


def _tick_format(longest: float) -> str:
    """Ticks that differ from each other and are not all rounded to nothing."""
    if longest >= 0.04:
        return ".0%"
    return ".2%" if longest >= 0.001 else ".1e"
