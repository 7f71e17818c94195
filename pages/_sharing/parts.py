"""What only the sharing page shows: the row that was clicked, and each group in config, file, memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pandas as pd
import streamlit as st

from inspector.analyses.sharing import words
from inspector.analyses.sharing.figures_layout import groups_of_rows
from inspector.analyses.sharing.figures_words import file_place, group_letter
from inspector.analyses.sharing.result import SharedGroup, Sharing
from inspector.text import bytes_text, literal, percent_text, plural, shape_text, some
from pages._ui import parts

CARDS = 12  # groups shown at length; the table holds all of them
NAMES = 200  # of a row, written out
YES, NO, MANY = ":material/check_circle:", ":material/cancel:", ":material/content_copy:"
TRUTHS = ("Declared", "In the file", "In memory")
IN_FILE = {"one copy": YES, "one storage": YES, "equal copies": MANY, "not compared": MANY}


def properties(sharing: Sharing, row: int) -> dict[str, str]:
    """What there is to know of one row of the graph."""
    line = sharing.rows.iloc[row]
    tensors = tensors_of_row(sharing, row)
    found = {
        "Name" if line["tensors"] == 1 else "Names": line["label"],
        "Shape": line["shape"] or "several",
        "Dtype": ", ".join(sorted(set(tensors["dtype"]))),
        "Parameters": f"{line['parameters']:,}, "
        + percent_text(line["parameters"] / max(sharing.listed_parameters, 1))
        + " of all by name",
        "Size": bytes_text(line["nbytes"]),
    }
    if line["tensors"] == 1:
        tensor = tensors.to_dict("records")[0]
        found |= {
            "In memory": f"storage {tensor['storage']}, offset {tensor['offset']:,} bytes, stride ({tensor['stride']})",
            "In the file": file_place(tensor),
        }
    else:
        files = sorted(set(tensors["file"]) - {""})
        found["In the file"] = ", ".join(files[:3]) + (" …" if len(files) > 3 else "")
    return found | _shared_with(sharing, row)


def tensors_of_row(sharing: Sharing, row: int) -> pd.DataFrame:
    """The tensors that a row of the graph stands for."""
    return pd.DataFrame(sharing.tensors[sharing.tensors["row"] == row])


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
    families = _families(sharing)
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
            parts.table(
                pd.DataFrame(_members(group)),
                alt=f"Group {group_letter(number)}: names with storage, offset and stride",
            )


def truths(group: SharedGroup) -> str:
    """The three truths, as a list in Markdown."""
    icons = (YES if group.declared else NO, IN_FILE.get(group.file_relation, NO), YES if group.in_memory else NO)
    cells = (f"{icon} {literal(text)}" for icon, text in zip(icons, words.truths(group), strict=True))
    return "\n".join(f"- **{name}** {cell}" for name, cell in zip(TRUTHS, cells, strict=True))


def _members(group: SharedGroup) -> Iterator[dict]:
    for member in group.members:
        yield {
            "name": member.name,
            "kind": member.kind,
            "dtype": member.dtype,
            "shape": shape_text(member.shape),
            "storage": member.storage,
            "offset": f"{member.offset:,} B",
            "stride": ", ".join(map(str, member.stride)),
            "nbytes": member.nbytes,
            "stored_as": member.stored_as or "–",
            "file": member.file or "–",
        }


def _families(sharing: Sharing) -> list[list[int]]:
    """Groups by the storage node that the graph draws for them, in the groups' order."""
    found: dict[int, set[int]] = {}
    for row, groups in groups_of_rows(sharing.tensors).items():
        first = int(sharing.rows["group"].iloc[row])
        if first >= 0:
            found.setdefault(first, set()).update(groups)
    drawn = {group for groups in found.values() for group in groups}
    alone = [[group] for group in range(len(sharing.groups)) if group not in drawn]
    return sorted([*map(sorted, found.values()), *alone])


def _shared_with(sharing: Sharing, row: int) -> dict[str, str]:
    groups = list(groups_of_rows(sharing.tensors).get(row, ()))
    if not groups:
        return {"Shared": "with nothing"}
    if len(groups) > 1:
        return {"Shared": f"in {plural(len(groups), 'group')}"}
    group = sharing.groups[groups[0]]
    mine = set(tensors_of_row(sharing, row)["name"])
    others = [name for name in group.names if name not in mine]
    label = "Shared with" if group.in_memory else "Compared with"
    return {"Verdict": group.verdict, label: some(others, 8) or "each other"}
