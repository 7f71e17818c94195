"""Fold long lists of parameters into the lines of the sharing graph."""

from __future__ import annotations

import re

import pandas as pd

INDEX = re.compile(r"\.(\d+)(?=\.)")


def fold_rows(tensors: pd.DataFrame) -> pd.DataFrame:
    """Draw what is shared as lines of its own, and fold everything else by block.

    Repeated layers become one line, "encoder.layer.[0–11]"; other neighbours of one module become
    the module's line.

    Args:
        tensors: results.Sharing.tensors, in execution order.

    Returns:
        label, tensors, parameters, nbytes, shape ("" when folded), group (-1: not shared), in the
        order of each line's first tensor.
    """
    lines: list[dict] = []
    for row in tensors.to_dict("records"):
        key = row["name"] if row["group"] >= 0 else _block(row["name"])
        # Layers that a shared name interrupts still fold into one line.
        line = next((each for each in lines if each["key"] == key and row["group"] < 0), None)
        if line is None:
            line = {"key": key, "names": [], "parameters": 0, "nbytes": 0, "shapes": [],
                    "group": row["group"]}  # fmt: skip
            lines.append(line)
        line["names"].append(row["name"])
        line["shapes"].append(row["shape"])
        line["parameters"] += row["parameters"]
        line["nbytes"] += row["nbytes"]
    return pd.DataFrame(
        [
            {
                "label": _label(line["names"], line["key"]),
                "tensors": len(line["names"]),
                "parameters": line["parameters"],
                "nbytes": line["nbytes"],
                "shape": line["shapes"][0] if len(line["names"]) == 1 else "",
                "group": line["group"],
            }
            for line in lines
        ],
        columns=["label", "tensors", "parameters", "nbytes", "shape", "group"],
    )


def _block(name: str) -> str:
    """The line that an unshared tensor belongs to."""
    index = INDEX.search(name)
    if index:
        return name[: index.start()] + ".["
    parts = name.split(".")
    return ".".join(parts[:-2] or parts[:-1] or parts)


def _label(names: list[str], key: str) -> str:
    if len(names) == 1:
        return names[0]
    if not key.endswith(".["):
        modules = {name.rpartition(".")[0] for name in names}
        return modules.pop() if len(modules) == 1 else key
    indices = sorted({int(found[1]) for name in names if (found := INDEX.search(name))})
    span = f"{indices[0]}–{indices[-1]}" if len(indices) > 1 else str(indices[0])
    return f"{key}{span}]"
