"""What only the sharing page shows: the row that was clicked, and each group in config, file, memory."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from inspector.analyses.sharing import words
from inspector.analyses.sharing.figures_words import group_letter
from inspector.analyses.sharing.frames import alike_groups, member_rows, properties, tensors_of_row
from inspector.analyses.sharing.result import SharedGroup, Sharing
from inspector.text import literal, plural
from pages._ui import parts

CARDS = 12  # groups shown at length; the table holds all of them
NAMES = 200  # of a row, written out
YES, NO, MANY = ":material/check_circle:", ":material/cancel:", ":material/content_copy:"
TRUTHS = ("Declared", "In the file", "In memory")
IN_FILE = {"one copy": YES, "one storage": YES, "equal copies": MANY, "not compared": MANY}


def draw_selected(sharing: Sharing, row: int | None) -> None:
    """Show the properties and names of the row that was clicked."""
    if not sharing.groups:
        st.info("Checkpoints with tied input and output embeddings, such as demo-bert, show a group here.")
    if row is None:
        st.caption(":material/ads_click: Click a row or a tensor in the graph for details.")
        return
    with st.container(border=True):
        st.header("Properties", anchor=False)
        _draw_row(sharing, row)


def _draw_row(sharing: Sharing, row: int) -> None:
    names = tensors_of_row(sharing, row)["name"].tolist()
    parts.facts(properties(sharing, row))
    if len(names) > 1:
        st.caption(plural(len(names), "name"))
        _list_names(names)


def _list_names(names: Sequence[str]) -> None:
    height = "content" if len(names) < 10 else 240
    st.code("\n".join(names[:NAMES]), language=None, wrap_lines=True, height=height)
    if len(names) > NAMES:
        st.caption(f"The first {NAMES} of {len(names):,}; the tab Names lists all of them.")


def draw_groups(sharing: Sharing) -> None:
    """Show each group of names as declared, in the file and in memory; alike ones once."""
    families = alike_groups(sharing)
    for alike in families[:CARDS]:
        _draw_group(sharing, alike)
    shown = sum(map(len, families[:CARDS]))
    if shown < len(sharing.groups):
        st.caption(f"The tab Names lists all {plural(len(sharing.groups), 'group')}.")


def _draw_group(sharing: Sharing, alike: Sequence[int]) -> None:
    number = alike[0]
    group = sharing.groups[number]
    with st.container(border=True):
        st.markdown(f"**{group_letter(number)}** {parts.verdict(group.verdict)} {literal(group.reason)}")
        if len(alike) > 1:
            st.markdown(literal(words.alike([sharing.groups[each] for each in alike])))
        st.markdown(truths(group))
        st.markdown(literal(words.sizes(group)))
        _list_names(group.names)
        with st.expander("Storage of each name"):
            parts.table(member_rows(group), alt=f"Group {group_letter(number)}: names with storage, offset and stride")


def truths(group: SharedGroup) -> str:
    """The three truths, as a list in Markdown."""
    icons = (YES if group.declared else NO, IN_FILE.get(group.file_relation, NO), YES if group.in_memory else NO)
    cells = (f"{icon} {literal(text)}" for icon, text in zip(icons, words.truths(group), strict=True))
    return "\n".join(f"- **{name}** {cell}" for name, cell in zip(TRUTHS, cells, strict=True))
