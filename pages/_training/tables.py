"""Tables of the Training page."""

from __future__ import annotations

import pandas as pd

from inspector.analyses.training.result import DecayExample
from inspector.names import find_rows
from inspector.text import bytes_text


def readable(rates: pd.DataFrame) -> pd.DataFrame:
    """Learning rates as text of six digits: tables would round small ones to nothing."""
    names = [name for name in rates.columns if name != "update"]
    shown = {name.replace("_", " "): rates[name].map("{:.6g}".format) for name in names}
    return pd.DataFrame({"update": rates["update"], **shown})


def found(frame: pd.DataFrame, text: str) -> pd.DataFrame:
    """Rows whose names, module, group or reason hold a text."""
    if text in set(frame["group"]):  # "decayed" is a part of "not decayed": a group's whole name means that group
        return pd.DataFrame(frame[frame["group"] == text])
    return find_rows(frame, text, ("name", "other_names", "module", "group", "reason"))


def after_frame(example: DecayExample) -> pd.DataFrame:
    """What is left of the norm, by schedule."""
    after = example.after
    return pd.DataFrame(
        {
            "schedule": after["schedule"].str.replace("_", " "),
            "factor": after["factor"].map("{:.8f}".format),
            "norm after": after["norm"].map("{:.4f}".format),
            "shrinks by": (100 * (1 - after["factor"])).map("{:.4g} %".format),
        }
    )


def memory_frame(memory: pd.DataFrame) -> pd.DataFrame:
    """Bytes in human units."""
    names = [name for name in memory.columns if name != "setup"]
    shown = {name.replace("_", " "): memory[name].map(bytes_text) for name in names}
    return pd.DataFrame({"precision": memory["setup"], **shown})
