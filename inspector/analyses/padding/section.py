"""Why the padding row is, or is not, zero."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from inspector.analyses.padding import words
from inspector.analyses.padding.figures import gradient_bars
from inspector.analyses.padding.request import PaddingRequest
from inspector.analyses.padding.result import Padding, PaddingRow
from inspector.report.content import Block, Context, Drawn, Facts, Listed, Said, Section, Tabled


def request(context: Context) -> PaddingRequest:
    """The row alone needs no model; its gradient is measured on sentences."""
    return PaddingRequest(text=words.SENTENCES, device=context.setting.device, dtype=context.setting.dtype)


def show_padding(context: Context, answers: tuple[Any, ...]) -> Iterator[Block]:
    """The verdict, the row, where it lies and what pushes on it."""
    result: Padding = answers[0]
    yield Said(result.verdict)
    yield Said(result.agreement)
    if result.loading:
        yield Said(result.loading)
    row = result.row
    if row is None:
        return
    if result.stand_in:
        yield Said(words.stand_in(row))
    yield Facts(
        {"Norm": f"{row.norm:.4f}, the median row {result.median_norm:.4f}", "Shorter rows": f"{row.percentile:.1f} %"}
        | words.facts(result, row)
    )
    yield Tabled("places", "Distances", row.places)
    yield Said(words.neighbors(row))
    if len(row.nearest):
        yield Tabled("nearest", "Nearest rows by cosine", row.nearest)
    yield Said(result.gradient_note)
    yield from _gradient(context, row)
    yield Said(words.MECHANISM)
    yield Said(words.AVERAGES)
    yield Said(result.averaging_note)
    if len(result.averaging):
        yield Tabled("averaging", "Effect of padding on a mean over positions", result.averaging)
        yield Said(words.MEASURES)


def _gradient(context: Context, row: PaddingRow) -> Iterator[Block]:
    experiments = row.experiments
    if row.gradient is None or experiments is None:
        return
    yield Drawn(
        "gradient",
        lambda theme: gradient_bars(experiments, row=f"{row.token} of {context.name}", theme=theme),
        "Gradient by path, as bars; the table below lists the same numbers",
    )
    yield Listed(words.explain_gradient(row, row.gradient))
    yield Tabled("gradient", "Gradients in every experiment", experiments)


SECTION = Section(
    "padding",
    ask=lambda context: (request(context),),
    show=show_padding,
    query=lambda context: request(context).to_query(),
)
