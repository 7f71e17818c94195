"""Tables of what is shared."""

from __future__ import annotations

import pandas as pd

from inspector.analyses.sharing.figures_layout import groups_of_rows
from inspector.analyses.sharing.figures_words import file_place, group_letter
from inspector.analyses.sharing.result import SharedGroup, Sharing
from inspector.text import bytes_text, percent_text, plural, shape_text, some


def group_table(sharing: Sharing) -> pd.DataFrame:
    """One row a group: verdict, the three truths, parameters and bytes."""
    return pd.DataFrame(
        {
            "group": group_letter(number),
            "verdict": group.verdict,
            "names": ", ".join(group.names),
            "shape": shape_text(group.shape),
            "declared": group.declared,
            "in_the_file": group.file_relation,
            "one_in_memory": group.in_memory,
            "listed_parameters": group.listed_parameters,
            "unique_parameters": group.unique_parameters,
            "listed_nbytes": group.listed_nbytes,
            "unique_nbytes": group.unique_nbytes,
        }
        for number, group in enumerate(sharing.groups)
    )


def reused_modules(sharing: Sharing) -> pd.DataFrame:
    """One row a module that a pass runs more than once: name, uses."""
    return pd.DataFrame({"name": each.name, "uses": each.uses} for each in sharing.reused_modules)


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


def tensors_of_row(sharing: Sharing, row: int) -> pd.DataFrame:
    """The tensors that a row of the graph stands for."""
    return pd.DataFrame(sharing.tensors[sharing.tensors["row"] == row])


def member_rows(group: SharedGroup) -> pd.DataFrame:
    """One row a name of a group: where its numbers lie in memory and in the files."""
    return pd.DataFrame(
        {
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
        for member in group.members
    )


def alike_groups(sharing: Sharing) -> list[list[int]]:
    """Groups by the storage node that the graph draws for them, in the groups' order."""
    found: dict[int, set[int]] = {}
    for row, groups in groups_of_rows(sharing.tensors).items():
        first = int(sharing.rows["group"].iloc[row])
        if first >= 0:
            found.setdefault(first, set()).update(groups)
    drawn = {group for groups in found.values() for group in groups}
    alone = [[group] for group in range(len(sharing.groups)) if group not in drawn]
    return sorted([*map(sorted, found.values()), *alone])
