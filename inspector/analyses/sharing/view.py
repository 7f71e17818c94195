"""Which parameters share memory."""

from __future__ import annotations

from collections.abc import Iterator

from inspector.analyses.sharing import words
from inspector.analyses.sharing.figures import figure
from inspector.analyses.sharing.figures_parameters import parameter_icicle
from inspector.analyses.sharing.figures_words import group_letter
from inspector.analyses.sharing.frames import group_table, reused_modules
from inspector.analyses.sharing.result import SharedGroup, Sharing
from inspector.catalog import request_of
from inspector.report.content import Section
from inspector.request import Request
from inspector.text import bytes_text, shape_text
from inspector.view.blocks import Block, Bullets, Figure, Joins, Sentence, Table
from inspector.view.view import Headline, Picture, Tab, Verdict, View, Why

MOST = 8  # groups of names that are drawn as text
BROKEN = ("diverged", "declared only", "alias only")  # verdicts on names that were meant to be one tensor


def view(sharing: Sharing, request: Request, *, name: str) -> View:
    """The graph, each group with its reason, and where the parameters are."""
    return View(
        Headline(words.answer(sharing), _verdict(sharing)),
        picture=Picture(
            Figure(
                "graph",
                lambda theme: figure(sharing, name=name, theme=theme),
                "Names of parameters on the left, joined to the tensors in memory that they share",
                narrow=lambda theme: figure(sharing, name=name, narrow=True, theme=theme),
            ),
            _joins(sharing),
        ),
        beside=tuple(_groups(sharing)),
        more="--json prints where every name of a group lies in memory and in the file.",
        tabs=(
            Tab("Where the parameters are", lambda: _parameters(sharing, name)),
            Tab("Names", lambda: _names(sharing)),
        ),
        why=tuple(Why(*pair) for pair in words.explain(sharing)),
    )


def _verdict(sharing: Sharing) -> Verdict:
    if any(group.verdict in BROKEN and (group.declared or group.aliases) for group in sharing.groups):
        return "warning"
    return "ok" if sharing.groups and words.main_group(sharing).verdict == "tied" else "note"


def _joins(sharing: Sharing) -> Joins | None:
    """The graph as text: the names of each group, joined to what they share."""
    groups = sharing.groups[:MOST]
    if not groups:
        return None
    return Joins(
        tuple(
            (
                group.names,
                f"{group_letter(number)}: {shape_text(group.shape)}, {bytes_text(group.nbytes)}, {group.verdict}",
            )
            for number, group in enumerate(groups)
        )
    )


def _groups(sharing: Sharing) -> Iterator[Block]:
    yield Sentence(words.sizes(sharing))
    if sharing.groups:
        yield Sentence(words.JUDGED)
        yield Bullets(tuple(_group(number, group) for number, group in enumerate(sharing.groups)))
    if sharing.reused_modules:
        yield Table("reused-modules", words.REUSED, reused_modules(sharing))


def _group(number: int, group: SharedGroup) -> str:
    return f"{group_letter(number)}, {group.verdict}: {group.reason}"


def _parameters(sharing: Sharing, name: str) -> Iterator[Block]:
    yield Figure(
        "parameters",
        lambda theme: parameter_icicle(sharing.tensors, sharing.groups, name=name, theme=theme),
        "Modules as boxes; a box's width is its share of the parameters",
    )


def _names(sharing: Sharing) -> Iterator[Block]:
    if sharing.groups:
        yield Table("groups", "Groups of names", group_table(sharing))
    letters = [group_letter(group) if group >= 0 else None for group in sharing.tensors["group"]]
    yield Table("names", "Every name", sharing.tensors.drop(columns=["row", "file_offset"]).assign(group=letters))


SECTION = Section("sharing", ask=lambda _: (request_of("sharing")(),))
