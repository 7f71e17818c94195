"""Which pairs of tokens a score is the sum of, and one text against several."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from inspector.plotting import theme as look
from inspector.plotting.frames import columns
from inspector.plotting.theme import LIGHT, Theme
from inspector.text import plain, shorten

LEGIBLE = 12  # tokens across, up to which a cell's number has room
CELL, SMALL, LEAST = 26, 16, 104  # pixels of a row that can be read, of others, and of all rows
LABEL, TEXT = 16, 48  # characters of a token and of a text
PITCH = 34  # pixels from bar to bar
STRONGEST = 0.6  # share of the color in the strongest cell: ink stays readable on it


def pair_map(pairs: pd.DataFrame, *, title: str, subtitle: str, theme: Theme = LIGHT) -> go.Figure:
    """Draw what each pair of tokens brings of a score.

    Args:
        pairs: Of two texts, from `Similarity.pairs`.
        title: Of the figure, with the checkpoint's name.
        subtitle: What the cells add up to.

    Returns:
        A heat map: the first text's tokens from top to bottom, the second's from left to right.
    """
    down = dict(columns(pairs, "first_position", "first_token"))
    across = dict(columns(pairs, "second_position", "second_token"))
    values = pairs["part"].to_numpy(dtype=float).reshape(len(down), len(across))
    most = float(np.abs(values).max(initial=0)) or 1.0
    legible = len(across) <= LEGIBLE
    above = look.title_height(title, subtitle) + 8
    below = 56 + 5 * min(max(map(len, across.values())), LABEL)  # slanted names, and the colors' explanation
    figure = look.figure(
        title,
        subtitle,
        theme=theme,
        height=above + max((CELL if legible else SMALL) * len(down), LEAST) + below,
        xaxis=_tokens(list(across.values()), theme) | {"range": [-0.5, len(across) - 0.5], "tickangle": -45},
        yaxis=_tokens(list(down.values()), theme) | {"range": [len(down) - 0.5, -0.5]},
        margin={"t": above, "b": below},
        dragmode=False,
    )
    figure.add_trace(
        go.Heatmap(
            z=values,
            zmin=-most,
            zmax=most,
            text=[[f"{value:.3f}" for value in row] for row in values] if legible else None,
            texttemplate="%{text}" if legible else None,
            textfont={"color": theme.ink, "size": 12},
            hovertext=[
                [
                    f"<b>{plain(one)}</b> × <b>{plain(other)}</b><br>brings {value:.5f}"
                    for other, value in zip(across.values(), row, strict=True)
                ]
                for one, row in zip(down.values(), values, strict=True)
            ],
            hoverinfo="text",
            xgap=1,
            ygap=1,
            colorscale=[
                [0, look.mix(theme.groups[0], theme.page, STRONGEST)],
                [0.5, theme.page],
                [1, look.mix(theme.groups[1], theme.page, STRONGEST)],
            ],
            colorbar=look.colorbar("part of the score", theme=theme),
        )
    )
    return figure


def score_bars(scores: pd.DataFrame, *, title: str, subtitle: str, theme: Theme = LIGHT) -> go.Figure:
    """Draw how similar each text is to the first, the most similar on top.

    Args:
        scores: As `scores_with_texts` gives them.
        title: Of the figure, with the checkpoint's name.
        subtitle: What is compared with what.
    """
    values = scores["score"].tolist()
    low, high = min([0.0, *values]), max([0.0, *values])
    room = 0.16 * (high - low or 1.0)
    figure = look.figure(
        title,
        subtitle,
        theme=theme,
        height=look.title_height(title, subtitle) + max(PITCH * len(values), LEAST) + 58,
        xaxis={
            **look.axis(title="score", theme=theme),
            "range": [low - (room if low < 0 else 0), high + (room if high > 0 else 0)],
        },
        yaxis={
            **look.axis(title="", theme=theme, grid=False),
            "range": [len(values) - 0.5, -0.5],
            "tickvals": list(range(len(values))),
            "ticktext": [plain(shorten(text, TEXT)) for text in scores["text"]],
            "tickfont": {"size": 13, "color": theme.ink},
        },
        bargap=0.28,
        dragmode=False,
    )
    figure.add_trace(
        go.Bar(
            orientation="h",
            x=values,
            y=list(range(len(values))),
            text=[f" {value:.4f} " for value in values],
            textposition="outside",
            textfont={"size": 13, "color": theme.ink},
            cliponaxis=False,
            marker={"color": theme.groups[1]},
            hovertext=[f"{plain(text)}<br>{value:.6f}" for text, value in zip(scores["text"], values, strict=True)],
            hoverinfo="text",
        )
    )
    return figure


def _tokens(tokens: Sequence[str], theme: Theme) -> dict[str, object]:
    return {
        **look.axis(title="", theme=theme, grid=False),
        "tickvals": list(range(len(tokens))),
        "ticktext": [plain(shorten(token, LABEL)) for token in tokens],
        "tickfont": {"size": 12, "color": theme.ink},
    }
