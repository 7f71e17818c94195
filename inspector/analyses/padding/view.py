"""Why the padding row is, or is not, zero."""

from __future__ import annotations

from collections.abc import Iterator

from inspector.analyses.padding import words
from inspector.analyses.padding.figures import gradient_bars
from inspector.analyses.padding.request import PaddingRequest
from inspector.analyses.padding.result import Padding, PaddingRow
from inspector.report.content import Context, Section
from inspector.view.blocks import Bars, Block, Bullets, Code, Facts, Figure, Sentence, Table
from inspector.view.view import Headline, Picture, Tab, View, Why


def view(result: Padding, request: PaddingRequest, *, name: str) -> View:
    """The verdict, the row, what pushes on it, and where it lies."""
    row = result.row
    damaged = row is not None and row.norm != row.norm
    return View(
        Headline(result.verdict, "problem" if damaged else None),
        picture=_picture(row, result.median_norm, name),
        beside=tuple(_beside(result, request, row)),
        more=words.MORE if row is None or row.gradient else words.MORE_WITH_TEXT,
        tabs=()
        if row is None
        else (
            *([Tab("Experiments", lambda: _experiments(row))] if row.gradient is not None else []),
            Tab("Where it lies", lambda: _places(result, row)),
            Tab("Averages", lambda: _averages(result)),
            *([Tab("Input", lambda: _input(result, row))] if row.gradient is not None else []),
        ),
        why=() if row is None else (Why(words.WHY_NOT_ZERO, words.MECHANISM), Why(words.WHY_MASK, words.AVERAGES)),
    )


def _picture(row: PaddingRow | None, median: float, name: str) -> Picture | None:
    if row is None:
        return None
    text = Bars((row.token, "median row"), (row.norm, median), (f"norm {row.norm:.4f}", f"norm {median:.4f}"))
    experiments = row.experiments
    if row.gradient is None or experiments is None:
        return Picture(text=text)
    return Picture(
        Figure(
            "gradient",
            lambda theme: gradient_bars(experiments, row=f"{row.token} of {name}", theme=theme),
            "Gradient by path, as bars; the table of experiments lists the same numbers",
        ),
        text,
    )


def _beside(result: Padding, request: PaddingRequest, row: PaddingRow | None) -> Iterator[Block]:
    yield Sentence(result.agreement)
    if result.loading:
        yield Sentence(result.loading)
    if row is None:
        return
    if result.stand_in:
        yield Sentence(words.stand_in(row))
    norms = {
        "Norm": f"{row.norm:.4f}, the median row {result.median_norm:.4f}",
        "Shorter rows": f"{row.percentile:.1f} %",
    }
    yield Facts(norms | words.facts(result, row))
    if request.text:
        yield Sentence(result.gradient_note)


def _experiments(row: PaddingRow) -> Iterator[Block]:
    if row.gradient is None:
        return
    yield Bullets(words.explain_gradient(row, row.gradient))
    if row.experiments is not None:
        yield Table("gradient", "Gradients in every experiment", row.experiments)


def _input(result: Padding, row: PaddingRow) -> Iterator[Block]:
    yield Sentence("The model read these tokens:")
    yield Code("\n".join(result.masked_text))
    if row.gradient is not None:
        yield Sentence(words.conditions(result, row.gradient))


def _places(result: Padding, row: PaddingRow) -> Iterator[Block]:
    yield Table("places", "Distances", row.places)
    yield Sentence(words.neighbors(row))
    if len(row.nearest):
        yield Table("nearest", "Nearest rows by cosine", row.nearest)
    if result.output_row:
        yield Sentence(words.output_row(result.output_row))
        yield Table("output-nearest", "Nearest rows in the output matrix", result.output_row.nearest)


def _averages(result: Padding) -> Iterator[Block]:
    yield Sentence(result.averaging_note)
    if len(result.averaging):
        yield Table("averaging", "Effect of padding on a mean over positions", result.averaging)
        yield Sentence(words.MEASURES)


def _asked(context: Context) -> PaddingRequest:
    """The row alone needs no model; its gradient is measured on sentences."""
    return PaddingRequest(text=words.SENTENCES, device=context.setting.device, dtype=context.setting.dtype)


SECTION = Section("padding", ask=lambda context: (_asked(context),), query=lambda context: _asked(context).to_query())
