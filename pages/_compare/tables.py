"""Tables of the Compare page."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import streamlit as st

from inspector.analyses.compare import words
from inspector.analyses.compare.result import Comparison
from inspector.names import find_rows
from inspector.text import bytes_text, literal, shape_text
from pages._ui import parts

STATUS = {
    "changed": "orange",
    "dtype changed": "blue",
    "quantised": "blue",
    "reshaped": "violet",
    "added": "green",
    "removed": "red",
    "not compared": "gray",
    "equal in sample": "gray",
    "equal": "gray",
}


def draw_early(headers: Comparison) -> None:
    """Draw what headers decide, while the numbers of both are being read."""
    st.subheader("Header comparison", anchor=False)
    for sentence in headers.summary:
        st.markdown(literal(sentence))
    tensors = headers.tensors
    decided = tensors[(tensors["note"] != words.UNREAD) | (tensors["dtype"] != tensors["other_dtype"])]
    if len(decided):
        parts.table(
            pd.DataFrame(decided[["name", "status", "shape", "other_shape", "dtype", "other_dtype", "note"]]),
            height=min(360, 38 * (len(decided) + 1)),
            alt="Tensors whose headers differ",
        )


def counts(result: Comparison) -> str:
    """How many tensors have which status, as badges."""
    return " ".join(
        f":{STATUS[status]}-badge[{literal(f'{number:,} {status}')}]" for status, number in result.counts.items()
    )


def shown_tensors(tensors: pd.DataFrame, *, find: str, statuses: Sequence[str]) -> pd.DataFrame:
    """Rows of the table that match, those that changed most first."""
    kept = tensors
    if statuses:
        kept = pd.DataFrame(kept[kept["status"].isin(list(statuses))])
    kept = find_rows(kept, find, ("name", "other_name", "status", "layer", "dtype", "note"))
    return kept.sort_values("relative_change", ascending=False, kind="stable")


def tie_rows(result: Comparison) -> pd.DataFrame:
    """The ties that changed, for a table."""
    names = {"first": result.name, "second": result.other_name}
    return pd.DataFrame(
        [
            {
                "names": ", ".join(tie.names),
                "tied in": names[tie.tied_in],
                "elsewhere": tie.other_verdict,
                "shape": shape_text(tie.shape),
                "size": bytes_text(tie.nbytes),
                "why": tie.reason,
            }
            for tie in result.ties_changed
        ]
    )
