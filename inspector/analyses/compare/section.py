"""What changed between the checkpoint and a second one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from inspector.analyses.compare.figures import change_bars, change_heatmap, changed_outside
from inspector.analyses.compare.request import CompareRequest
from inspector.analyses.compare.result import Comparison
from inspector.analyses.compare.words import MEASURED, no_layers
from inspector.report import provenance
from inspector.report.content import Block, Context, Drawn, Listed, Said, Section, Tabled
from inspector.request import Request
from inspector.results.checkpoint import Opened

BARS = 15


def ask(context: Context) -> tuple[Request, ...]:
    """The comparison with the second checkpoint, which `make_report` has made sure of."""
    return (CompareRequest(other=_other(context).fingerprint),)


def show(context: Context, answers: tuple[Any, ...]) -> Iterator[Block]:
    """Summary, layers, the rest, ties and tokens."""
    result: Comparison = answers[0]
    both = f"{result.name} and {result.other_name}"
    yield Listed(result.summary)
    yield Listed(MEASURED)
    layers = result.layers
    if reason := no_layers(layers):
        yield Said(reason)
    else:
        yield Drawn(
            "layers",
            lambda theme: change_heatmap(layers, names=both, values=result.values, theme=theme),
            "Relative change by layer and kind of tensor",
        )
    rest = changed_outside(result.tensors, most=BARS)
    if len(rest):
        yield Drawn(
            "outside",
            lambda theme: change_bars(rest, names=both, theme=theme),
            "Relative change of tensors outside the layers",
        )
    ranked = result.tensors.sort_values("relative_change", ascending=False, kind="stable")
    yield Tabled("tensors", "Every tensor of both", ranked)
    if len(layers):
        yield Tabled("layers", "The layers, by kind of tensor", layers)
    if len(result.tokens_moved):
        yield Tabled("tokens", "Tokens whose embedding moved furthest", result.tokens_moved)


def _other(context: Context) -> Opened:
    if context.other is None:
        raise AssertionError("This section needs a second checkpoint.")
    return context.other


def _query(context: Context) -> dict[str, str]:
    named = provenance.reference(_other(context))
    return CompareRequest(other=named).to_query() if named else {}


SECTION = Section("compare", ask=ask, show=show, query=_query, quick=False)
