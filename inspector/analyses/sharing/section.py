"""Which parameters share memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from inspector.analyses.sharing import words
from inspector.analyses.sharing.figures import figure
from inspector.analyses.sharing.figures_parameters import parameter_icicle
from inspector.analyses.sharing.figures_words import group_letter
from inspector.analyses.sharing.frames import group_table, reused_modules
from inspector.analyses.sharing.result import SharedGroup, Sharing
from inspector.catalog import request_of
from inspector.report.content import Block, Context, Drawn, Listed, Said, Section, Tabled


def show(context: Context, answers: tuple[Any, ...]) -> Iterator[Block]:
    """The counts, the graph, each group with its reason, and where the parameters are."""
    sharing: Sharing = answers[0]
    yield Said(f"{words.answer(sharing)} {words.sizes(sharing)}")
    yield Drawn(
        "graph",
        lambda theme: figure(sharing, name=context.name, theme=theme),
        "Names of parameters on the left, joined to the tensors in memory that they share",
    )
    if sharing.groups:
        yield Said("How each group was judged: as declared, in the file, and in memory.")
        yield Listed(tuple(_group(number, group) for number, group in enumerate(sharing.groups)))
        yield Tabled("groups", "Groups of names", group_table(sharing))
    yield Listed(tuple(f"{question} {answer}" for question, answer in words.explain(sharing)))
    if sharing.reused_modules:
        yield Tabled("reused-modules", words.REUSED, reused_modules(sharing))
    yield Drawn(
        "parameters",
        lambda theme: parameter_icicle(sharing.tensors, sharing.groups, name=context.name, theme=theme),
        "Modules as boxes; a box's width is its share of the parameters",
    )
    letters = [group_letter(group) if group >= 0 else None for group in sharing.tensors["group"]]
    names = sharing.tensors.drop(columns=["row", "file_offset"]).assign(group=letters)
    yield Tabled("names", "Every name", names)


def _group(number: int, group: SharedGroup) -> str:
    return f"{group_letter(number)}, {group.verdict}: {group.reason}"


SECTION = Section("sharing", ask=lambda _: (request_of("sharing")(),), show=show)
