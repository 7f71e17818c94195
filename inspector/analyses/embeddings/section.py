"""The static embeddings: norms, a map, the health of their rows; and the padding row."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pandas as pd
import plotly.graph_objects as go

from inspector.analyses.embeddings.figures import norms_histogram
from inspector.analyses.embeddings.request import EmbeddingsRequest
from inspector.analyses.embeddings.result import Embeddings
from inspector.analyses.embeddings.words import UNTRAINED
from inspector.analyses.vocabulary_map.figures import figure
from inspector.analyses.vocabulary_map.request import ProjectRequest
from inspector.analyses.vocabulary_map.result import Projection
from inspector.analyses.vocabulary_map.words import trust
from inspector.report.content import Block, Context, Drawn, Facts, Said, Section, Tabled

MOST_POINTS = 10_000  # drawn without WebGL, which the page's content policy forbids
FEW = ("unused", "no token", "special", "padding", "byte")  # kinds of which every point is drawn


def show_embeddings(context: Context, answers: tuple[Any, ...]) -> Iterator[Block]:
    """Norms, special tokens, the map, and what is wrong with the rows."""
    result: Embeddings = answers[0]
    yield Facts(
        {
            "Matrix": f"{result.tensor}, {result.rows:,} × {result.columns:,}",
            "Smallest norm": f"{result.norms.min:.4f}",
            "Median norm": f"{result.norms.median:.4f}",
            "Largest norm": f"{result.norms.max:.4f}",
        }
    )
    if answers[1] is not None:
        yield from _map(context, answers[1])
    if len(result.special):
        yield Tabled("special-tokens", "Special tokens", result.special)
    yield Tabled(
        "health",
        "Checks of every row",
        pd.DataFrame(
            {"looked_for": each.name, "found": each.count, "status": each.status, "detail": each.detail}
            for each in result.health.findings
        ),
    )
    yield Said(result.health.indicator.statement)
    if len(result.undertrained):
        yield Said(UNTRAINED)
        yield Tabled("undertrained", "Under-trained tokens, most suspicious first", result.undertrained)


def _map(context: Context, projection: Projection) -> Iterator[Block]:
    points = projection.points
    yield Drawn(
        "norms",
        lambda theme: norms_histogram(points, name=context.name, theme=theme),
        "Histogram of row norms, with padding and special tokens marked",
    )
    drawn = replace(projection, points=thinned(points))
    yield Drawn(
        "map",
        lambda theme: _as_svg(figure(drawn, name=context.name, theme=theme)),
        "Vocabulary rows as points on their first two principal components",
    )
    yield Said(trust(projection))
    yield Tabled("points", "The points of the map", points, rows=8)


def thinned(points: pd.DataFrame) -> pd.DataFrame:
    """All points, or of a large vocabulary's words some of each stretch."""
    if len(points) <= MOST_POINTS:
        return points
    stride = -(-len(points) // MOST_POINTS)
    every = pd.Series(range(len(points)), index=points.index) % stride == 0
    return pd.DataFrame(points[every | points["kind"].isin(FEW)])


def _as_svg(figure: go.Figure) -> go.Figure:
    """The same figure drawn without WebGL."""
    plain = figure.to_dict()
    for trace in plain["data"]:
        trace["type"] = trace["type"].removesuffix("gl")
    return go.Figure(plain)


QUESTIONS = (EmbeddingsRequest(), ProjectRequest())
SECTION = Section("embeddings", ask=lambda _: QUESTIONS, show=show_embeddings)
