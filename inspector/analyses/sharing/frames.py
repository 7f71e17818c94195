"""Tables of what is shared."""

from __future__ import annotations

import pandas as pd

from inspector.analyses.sharing.figures_words import group_letter
from inspector.analyses.sharing.result import Sharing
from inspector.text import shape_text


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
