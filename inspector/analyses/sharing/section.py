"""Which parameters share memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd

from inspector.analyses.sharing.figures import sharing_graph
from inspector.analyses.sharing.figures_parameters import parameter_icicle
from inspector.analyses.sharing.figures_words import group_letter, sharing_subtitle
from inspector.analyses.sharing.request import SharingRequest
from inspector.analyses.sharing.result import SharedGroup, Sharing
from inspector.report.content import Block, Context, Drawn, Listed, Question, Said, Section, Tabled
from inspector.text import bytes_text, plural, shape_text

TYING = (
    "Weight tying: the output projection is the input embedding, one block of memory (Press & "
    "Wolf 2017, Using the Output Embedding to Improve Language Models; Inan et al. 2016; Vaswani "
    "et al. 2017, section 3.4). A linear layer stores its weight as (out, in) = (vocabulary, "
    "hidden size), the embedding's own shape, so nothing is transposed. A clone starts equal and "
    "parts at the first training step; names of one tensor cannot."
)


def show(context: Context, answers: tuple[Any, ...]) -> Iterator[Block]:
    """The counts, the graph, each group with its reason, and where the parameters are."""
    sharing: Sharing = answers[0]
    yield Said(_counts(sharing))
    yield Drawn(
        "graph",
        lambda theme: sharing_graph(
            sharing.rows,
            sharing.groups,
            sharing.tensors,
            title=f"Names and tensors of {context.name}",
            subtitle=sharing_subtitle(sharing),
            theme=theme,
        ),
        "Names of parameters on the left, joined to the tensors in memory that they share",
    )
    if sharing.groups:
        yield Said("How each group was judged: as declared, in the file, and in memory.")
        yield Listed(tuple(_group(number, group) for number, group in enumerate(sharing.groups)))
        yield Tabled("groups", "Groups of names", _groups(sharing))
    if any(group.verdict == "tied" and len(group.shape) == 2 for group in sharing.groups):
        yield Said(TYING)
    if sharing.reused_modules:
        yield Tabled(
            "reused-modules",
            "Modules that one forward pass runs more than once",
            pd.DataFrame({"name": each.name, "uses": each.uses} for each in sharing.reused_modules),
        )
    yield Drawn(
        "parameters",
        lambda theme: parameter_icicle(
            sharing.tensors, sharing.groups, title=f"Parameters of {context.name}", theme=theme
        ),
        "Modules as boxes, as wide as their share of the parameters",
    )
    letters = [group_letter(group) if group >= 0 else None for group in sharing.tensors["group"]]
    names = sharing.tensors.drop(columns=["row", "file_offset"]).assign(group=letters)
    yield Tabled("names", "Every name", names)


def _counts(sharing: Sharing) -> str:
    saved = sharing.listed_nbytes - sharing.unique_nbytes
    if not sharing.groups:
        return f"Nothing is shared: all {plural(len(sharing.tensors), 'name')} have a tensor each."
    return (
        f"{sharing.listed_parameters:,} parameters by name, {sharing.unique_parameters:,} in "
        f"memory: sharing saves {bytes_text(saved)} of {bytes_text(sharing.listed_nbytes)}."
    )


def _group(number: int, group: SharedGroup) -> str:
    return f"{group_letter(number)}, {group.verdict}: {group.reason}"


def _groups(sharing: Sharing) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "group": group_letter(number),
            "verdict": group.verdict,
            "names": ", ".join(group.names),
            "shape": shape_text(group.shape),
            "nbytes": group.nbytes,
            "declared": group.declared,
            "in_the_file": group.file_relation,
            "one_in_memory": group.in_memory,
        }
        for number, group in enumerate(sharing.groups)
    )


SECTION = Section("sharing", ask=lambda _: (Question.of(SharingRequest()),), show=show)
