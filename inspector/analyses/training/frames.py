"""Tables of a training plan."""

from __future__ import annotations

import pandas as pd

from inspector.analyses.training.result import DecayExample


def after_frame(example: DecayExample) -> pd.DataFrame:
    """What decay alone leaves of the norm, by schedule, with digits enough for small changes."""
    after = example.after
    return pd.DataFrame(
        {
            "schedule": after["schedule"].str.replace("_", " "),
            "factor": after["factor"].map("{:.8f}".format),
            "norm after": after["norm"].map("{:.4f}".format),
            "shrinks by": (100 * (1 - after["factor"])).map("{:.4g} %".format),
        }
    )
