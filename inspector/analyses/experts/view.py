"""The experts of a mixture."""

from __future__ import annotations

from collections.abc import Iterator

from inspector.analyses.experts import words
from inspector.analyses.experts.figures import expert_map, sign
from inspector.analyses.experts.frames import expert_table, layer_labels
from inspector.analyses.experts.request import ExpertsRequest
from inspector.analyses.experts.result import MixtureExperts
from inspector.plotting.frames import columns
from inspector.view.blocks import Block, Figure, Grid, Table
from inspector.view.view import Headline, Picture, Tab, View, Why

MOST = 16  # experts, and layers, that a picture of text has room for


def view(found: MixtureExperts, request: ExpertsRequest, *, name: str) -> View:
    """Whether all experts differ, their norms by layer, and how often a text uses each."""
    return View(
        Headline(words.headline(found), words.judged(found)),
        picture=Picture(
            Figure(
                "expert_norms",
                lambda theme: expert_map(
                    found.experts,
                    value="norm",
                    title=words.title(name),
                    subtitle=words.SUBTITLE,
                    duplicates=found.duplicates,
                    theme=theme,
                ),
                "The norm of each expert by layer; the table of experts has every number",
            ),
            _text(found),
        ),
        beside=tuple(_uses(found, name)),
        tabs=(Tab("Experts", lambda: _tables(found)),),
        why=tuple(Why(question, answer) for question, answer in words.WHY),
        more="--text TEXT counts how often each expert is used on it; --json prints every expert.",
    )


def _uses(found: MixtureExperts, name: str) -> Iterator[Block]:
    if found.tokens is not None and any(each is not None for (each,) in columns(found.experts, "used")):
        yield Figure(
            "expert_uses",
            lambda theme: expert_map(
                found.experts, value="used", title=words.uses_title(name), subtitle=words.USES_SUBTITLE, theme=theme
            ),
            "How many tokens of the text chose each expert by layer; the table of experts has every number",
        )


def _text(found: MixtureExperts) -> Grid | None:
    labels = layer_labels(found.experts)
    count = 1 + max(each for (each,) in columns(found.experts, "expert"))
    if count > MOST or len(labels) > MOST:
        return None
    same = {(place.module, place.expert) for group in found.duplicates for place in group}
    cells = {
        (module, expert): (norm, sign(norm, zero=zero, finite=finite, same=(module, expert) in same))
        for module, expert, norm, zero, finite in columns(found.experts, "module", "expert", "norm", "zero", "finite")
    }
    largest = max((norm for norm, _ in cells.values() if norm < float("inf")), default=0.0) or 1.0
    rows = [[cells.get((module, expert)) for module in labels] for expert in range(count)]
    return Grid(
        tuple(f"expert {number}" for number in range(count)),
        tuple(labels.values()),
        tuple(tuple(each[1] if each else "" for each in row) for row in rows),
        tuple(tuple(each[0] / largest if each and 0 <= each[0] <= largest else None for each in row) for row in rows),
        "norm by layer; ∅ only zeros, = same as another, ! not finite, ? not in the files",
    )


def _tables(found: MixtureExperts) -> Iterator[Block]:
    yield Table("experts", "Every expert", expert_table(found), meanings=words.MEANINGS)
    if len(found.shared):
        yield Table("shared", "Modules that every token runs through", found.shared, by="module")
