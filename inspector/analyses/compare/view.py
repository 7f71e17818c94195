"""What changed between the checkpoint and a second one."""

from __future__ import annotations

from collections.abc import Iterator

from inspector.analyses.compare.figures import change_bars, change_heatmap, changed_outside
from inspector.analyses.compare.figures_common import common_bars
from inspector.analyses.compare.frames import tie_rows
from inspector.analyses.compare.request import CompareRequest
from inspector.analyses.compare.result import Comparison
from inspector.analyses.compare.words import (
    MEASURED,
    NO_TIES,
    NO_TOKENS,
    SAME_OUTSIDE,
    WHY_MEASURED,
    describe_rows,
    describe_ties,
    in_common,
    no_layers,
)
from inspector.report.content import Context, Section
from inspector.report.provenance import query
from inspector.view.blocks import Bars, Block, Bullets, Figure, Sentence, Table, share_bars
from inspector.view.view import Headline, Picture, Tab, View, Why

BARS = 15


def view(result: Comparison, request: CompareRequest, *, name: str) -> View:
    """Summary, layers, the rest, ties and tokens."""
    first, *others = result.summary
    return View(
        Headline(first, "ok" if result.same else None),
        picture=_layers(result),
        beside=(Bullets(tuple(others)), *([Sentence(reason)] if (reason := no_layers(result.layers)) else [])),
        more="--json prints every tensor, layer and token that moved.",
        tabs=(
            Tab("Tensors", lambda: _tensors(result)),
            Tab("Layers", lambda: _by_layer(result)),
            Tab("Ties", lambda: _ties(result)),
            Tab("Tokens", lambda: _tokens(result)),
            Tab("Outside the layers", lambda: _outside(result)),
        ),
        why=(Why(WHY_MEASURED, " ".join(MEASURED)),),
    )


def _both(result: Comparison) -> str:
    return f"{result.name} and {result.other_name}"


def _in_common(result: Comparison) -> Picture:
    shared = in_common(result.tensors, result.vocabulary)
    names = result.name, result.other_name
    alt = "Tensors by name, tensors by shape, and tokens that are in one of the two, and in both"
    return Picture(Figure("common", lambda theme: common_bars(shared, names=names, theme=theme), alt), _largest(result))


def _layers(result: Comparison) -> Picture:
    if no_layers(result.layers):
        return _in_common(result)
    text = _largest(result)
    return Picture(
        Figure(
            "layers",
            lambda theme: change_heatmap(result.layers, names=_both(result), values=result.values, theme=theme),
            "Relative change by layer and kind of tensor",
        ),
        text,
    )


def _largest(result: Comparison) -> Bars | None:
    """The tensors that changed most, as text."""
    measured = result.tensors.dropna(subset=["relative_change"])
    ranked = measured.sort_values("relative_change", ascending=False, kind="stable").head(BARS)
    changed = [row for row in ranked.to_dict("records") if row["relative_change"] > 0]
    if not changed:
        return None
    return share_bars([row["name"] for row in changed], [row["relative_change"] for row in changed])


def _tensors(result: Comparison) -> Iterator[Block]:
    ranked = result.tensors.sort_values("relative_change", ascending=False, kind="stable")
    yield Table("tensors", "Every tensor of both", ranked)


def _outside(result: Comparison) -> Iterator[Block]:
    rest = changed_outside(result.tensors, most=BARS)
    if len(rest):
        yield Figure(
            "outside",
            lambda theme: change_bars(rest, names=_both(result), theme=theme),
            "Relative change of tensors outside the layers; the table of tensors lists them",
        )
    else:
        yield Sentence(SAME_OUTSIDE)


def _ties(result: Comparison) -> Iterator[Block]:
    if not result.ties_compared:
        yield Sentence(NO_TIES)
        return
    yield Sentence(describe_ties(result.ties_changed, (result.name, result.other_name)))
    if result.ties_changed:
        yield Table("ties", "Names that are tied in only one of the two", tie_rows(result))


def _by_layer(result: Comparison) -> Iterator[Block]:
    if len(result.layers):
        yield Table("layers", "The layers, by kind of tensor", result.layers)


def _tokens(result: Comparison) -> Iterator[Block]:
    if result.vocabulary is None:
        yield Sentence(NO_TOKENS)
        return
    yield Sentence(describe_rows(result.vocabulary, (result.name, result.other_name), result.tokens_moved)[0])
    if len(result.tokens_moved):
        yield Table("tokens", "Tokens whose embedding moved furthest", result.tokens_moved)
    if len(result.special_tokens):
        yield Table("special_tokens", "Special tokens of both", result.special_tokens)


def _asked(context: Context) -> CompareRequest:
    return CompareRequest(other=context.beside["other"].fingerprint)


SECTION = Section(
    "compare",
    ask=lambda context: (_asked(context),),
    query=lambda context: query(context, _asked(context)),
    needs=("other",),
)
