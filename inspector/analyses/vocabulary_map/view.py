"""A map of the vocabulary."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pandas as pd
import plotly.graph_objects as go

from inspector.analyses.embeddings.figures import norms_histogram
from inspector.analyses.vocabulary_map import words
from inspector.analyses.vocabulary_map.figures import figure
from inspector.analyses.vocabulary_map.request import ProjectRequest
from inspector.analyses.vocabulary_map.result import Projection
from inspector.view.blocks import Block, Figure, Sentence, Table
from inspector.view.view import Headline, Picture, Tab, View

MOST_POINTS = 10_000  # drawn in a report
FEW = ("unused", "no token", "special", "padding", "byte")  # kinds of which every point is drawn


def view(result: Projection, request: ProjectRequest, *, name: str) -> View:
    """The map, how far to trust it, the norms of its rows and its points."""
    drawn = replace(result, points=thinned(result.points))
    return View(
        Headline(words.headline(result)),
        picture=Picture(
            Figure(
                "map",
                lambda theme: figure(result, name=name, theme=theme),
                f"Vocabulary rows as points of a map by {words.made_by(result)}",
                printed=lambda theme: as_svg(figure(drawn, name=name, theme=theme)),
            )
        ),
        beside=(Sentence(words.trust(result)),),
        more="-o FILE.csv or FILE.parquet writes the place of every token.",
        tabs=(
            Tab("Norms", lambda: _norms(result, name)),
            Tab("Points", lambda: [Table("points", "The points of the map", result.points, rows=8)]),
        ),
    )


def _norms(result: Projection, name: str) -> Iterator[Block]:
    yield Figure(
        "norms",
        lambda theme: norms_histogram(result.points, name=name, theme=theme),
        "Histogram of row norms, with padding and special tokens marked",
    )


def thinned(points: pd.DataFrame) -> pd.DataFrame:
    """All points, or of a large vocabulary's words some of each stretch."""
    if len(points) <= MOST_POINTS:
        return points
    stride = -(-len(points) // MOST_POINTS)
    every = pd.Series(range(len(points)), index=points.index) % stride == 0
    return pd.DataFrame(points[every | points["kind"].isin(FEW)])


def as_svg(figure: go.Figure) -> go.Figure:
    """The same figure drawn without WebGL."""
    plain = figure.to_dict()
    for trace in plain["data"]:
        trace["type"] = trace["type"].removesuffix("gl")
    return go.Figure(plain)
