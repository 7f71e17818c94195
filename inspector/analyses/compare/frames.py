"""Tables of a comparison."""

from __future__ import annotations

import pandas as pd

from inspector.analyses.compare.result import Comparison
from inspector.text import bytes_text, shape_text


def tie_rows(result: Comparison) -> pd.DataFrame:
    """The ties that changed, one row each."""
    names = {"first": result.name, "second": result.other_name}
    return pd.DataFrame(
        {
            "names": ", ".join(tie.names),
            "tied in": names[tie.tied_in],
            "elsewhere": tie.other_verdict,
            "shape": shape_text(tie.shape),
            "size": bytes_text(tie.nbytes),
            "why": tie.reason,
        }
        for tie in result.ties_changed
    )
