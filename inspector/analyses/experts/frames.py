"""Tables and labels of experts."""

from __future__ import annotations

import re
from collections import Counter

import pandas as pd

from inspector.analyses.experts.result import MixtureExperts
from inspector.analyses.experts.words import called

NUMBER = re.compile(r"\.(\d+)(?:\.|$)")
OPTIONAL = ("router_bias", "selection_bias", "used", "same as")  # columns that many mixtures have nothing for


def layer_labels(experts: pd.DataFrame) -> dict[str, str]:
    """Block -> a short name of its own: its layer's number where no other block has that.

    Args:
        experts: `MixtureExperts.experts`.
    """
    modules = list(dict.fromkeys(experts["module"].tolist()))
    numbers = {module: NUMBER.findall(module) for module in modules}
    counts = Counter(each[0] for each in numbers.values() if each)
    return {module: each[0] if each and counts[each[0]] == 1 else module for module, each in numbers.items()}


def expert_table(found: MixtureExperts) -> pd.DataFrame:
    """Every expert, with what it is the same as; columns that nothing is known of are left out."""
    same = {
        (place.module, place.expert): ", ".join(called(each) for each in group[:3] if each != place)
        for group in found.duplicates
        for place in group
    }
    frame = found.experts.drop(columns=["zero", "finite"])
    frame["same as"] = [
        same.get(place, "") for place in zip(frame["module"].tolist(), frame["expert"].tolist(), strict=True)
    ]
    empty = [name for name in OPTIONAL if not any(pd.notna(each) and each != "" for each in frame[name])]
    return frame.drop(columns=empty)
