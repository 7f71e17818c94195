"""The static embeddings: norms, a map, the health of their rows; and the padding row."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd
import plotly.graph_objects as go

from inspector import figures
from inspector.figures.text import percent_text
from inspector.report.content import (
    Block,
    Context,
    Drawn,
    Facts,
    Question,
    Said,
    Section,
    Tabled,
)
from inspector.results import Embeddings, Padding, PaddingRow, Projection

MECHANISM = (
    "nn.Embedding(padding_idx=…) starts the row at zero and blocks the gradient through the "
    "look-up. Where the output layer is tied to the embeddings, the same row is also an output "
    "vector, and the softmax over the vocabulary pushes on every row at every predicted position, "
    "whether or not padding is ever a label (it is not: its labels are −100 and are ignored). So a "
    "mean over positions must use the attention mask."
)
MOST_POINTS = 10_000  # drawn without WebGL, which the page's content policy forbids
FEW = ("unused", "no token", "special", "padding", "byte")  # kinds of which every point is drawn
# Padded together: sentences of different lengths.
SENTENCES = ("a dog.", "the capital and largest city of France.")


def show_embeddings(context: Context, answers: tuple[Any, ...]) -> Iterator[Block]:
    """Norms, special tokens, the map, and what is wrong with the rows."""
    result: Embeddings = answers[0]
    yield Facts({
        "Matrix": f"{result.tensor}, {result.rows:,} × {result.columns:,}",
        "Smallest norm": f"{result.norms.min:.4f}",
        "Median norm": f"{result.norms.median:.4f}",
        "Largest norm": f"{result.norms.max:.4f}",
    })  # fmt: skip
    if answers[1] is not None:
        yield from _map(context, answers[1])
    if len(result.special):
        yield Tabled("special-tokens", "Special tokens", result.special)
    yield Tabled("health", "What was looked for in every row", pd.DataFrame(
        {"looked_for": each.name, "found": each.count, "status": each.status,
         "detail": each.detail}
        for each in result.health.findings
    ))  # fmt: skip
    yield Said(result.health.indicator.statement)
    if len(result.undertrained):
        yield Tabled("undertrained", "Under-trained tokens, the most suspicious first",
                     result.undertrained)  # fmt: skip


def _map(context: Context, projection: Projection) -> Iterator[Block]:
    points = projection.points
    yield Drawn(
        "norms",
        lambda theme: figures.norms_histogram(
            points, title=f"How long the rows of {context.name} are",
            subtitle=f"{projection.rows:,} rows, special tokens written out", theme=theme,
        ),
        "Histogram of the rows' norms, padding and special tokens marked",
    )  # fmt: skip
    kept = percent_text(projection.kept_neighbours)
    drawn = _thinned(points)
    cut = f", {len(drawn):,} of them drawn" if len(drawn) < len(points) else ""
    axes = [f"PC {place} ({percent_text(share)})"
            for place, share in enumerate(projection.explained[:2], start=1)]  # fmt: skip
    yield Drawn(
        "map",
        lambda theme: _as_svg(figures.projection_figure(
            drawn, title=f"PCA of {context.name}",
            subtitle=f"{projection.rows:,} rows{cut}; {kept} of the 15 true neighbours kept",
            axes=(axes[0], axes[1]), theme=theme,
        )),
        "Rows of the vocabulary as points on their first two principal components",
    )  # fmt: skip
    yield Said(
        f"The map keeps {kept} of each token's 15 true nearest neighbours (measured on "
        f"{projection.judged_rows:,} rows): it shows how the whole lies, not who is near whom."
    )
    yield Tabled("points", "The points of the map", points, rows=8)


def _thinned(points: pd.DataFrame) -> pd.DataFrame:
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


def ask_padding(context: Context) -> tuple[Question, ...]:
    """The row alone needs no model; its gradient is measured on sentences."""
    text = "\n".join(SENTENCES)
    return (Question("padding", {"text": text, **context.placement},
                     (f"--text={text}", *context.placement_options)),)  # fmt: skip


def show_padding(context: Context, answers: tuple[Any, ...]) -> Iterator[Block]:
    """The verdict, the row, where it lies and what pushes on it."""
    result: Padding = answers[0]
    yield Said(result.verdict)
    yield Said(result.agreement)
    row = result.row
    if row is None:
        return
    if result.stand_in:
        yield Said(f"All that follows is about {row.token}, which stands in for padding.")
    yield Facts({
        "Row": f"{row.token} (id {row.token_id:,})",
        "Norm": f"{row.norm:.4f}, the median row {result.median_norm:.4f}",
        "Shorter rows": f"{row.percentile:.1f} %",
        "Exactly zero": "yes" if row.is_zero else "no",
        "Output matrix tied": {True: "yes", False: "no", None: "not measured"}[result.tied],
    })  # fmt: skip
    yield Tabled("places", "Where it lies", row.places)
    if len(row.nearest):
        yield Tabled("nearest", "Nearest rows by cosine", row.nearest)
    yield Said(result.gradient_note)
    yield from _gradient(context, row)
    yield Said(MECHANISM)
    yield Said(result.averaging_note)
    if len(result.averaging):
        yield Tabled("averaging", "What padding does to a mean over positions", result.averaging)


def _gradient(context: Context, row: PaddingRow) -> Iterator[Block]:
    experiments = row.experiments
    if row.gradient is None or experiments is None:
        return
    yield Drawn(
        "gradient",
        lambda theme: figures.gradient_bars(
            experiments, title=f"Gradient on {row.token} of {context.name}",
            subtitle="one backward pass on the sentences, by path", theme=theme,
        ),
        "Gradient by path, as bars; the table below holds the same numbers",
    )  # fmt: skip
    yield Tabled("gradient", "Gradients of every experiment", experiments)


def _ask_embeddings(_: Context) -> tuple[Question, ...]:
    return (Question("embeddings"), Question("project", {"method": "pca", "dimensions": 2},
                                             ("--method=pca", "--dimensions=2")))  # fmt: skip


EMBEDDINGS = Section("embeddings", ask=_ask_embeddings, show=show_embeddings)
PADDING = Section("padding", ask=ask_padding, show=show_padding,
                  query=lambda _: {"sentences": "\n".join(SENTENCES)})  # fmt: skip
