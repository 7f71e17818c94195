"""Tables of the Compare page."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import streamlit as st

from inspector.analyses.compare import words
from inspector.analyses.compare.result import STATUSES, Comparison
from inspector.names import find_rows
from inspector.text import bytes_text, literal, shape_text
from pages._ui import finding, parts, table_files, tables

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
    st.caption("What the headers decide, while the numbers of both are being read:")
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


def draw_tensors(result: Comparison) -> None:
    """List the tensors of both."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        find = finding.field("Find tensors by name, status, layer or dtype", placeholder="such as layer 3 or LayerNorm")
        statuses = st.multiselect("Status", STATUSES, key="status", bind="query-params", placeholder="all")
    finding.listed(
        shown_tensors(result.tensors, find=find, statuses=statuses),
        "tensor",
        of=f"{len(result.tensors):,}, most changed first.",
        name=f"{result.name}-{result.other_name}-tensors",
        alt="Every tensor of both with its status and distance",
        height=280,
        columns=tables.PRECISE,
    )


def draw_ties(result: Comparison) -> None:
    """Say which names are tied in one of the two alone."""
    if result.ties_compared:
        st.markdown(literal(words.describe_ties(result.ties_changed, (result.name, result.other_name))))
    else:
        st.info("Ties could not be compared: see the warning above.", icon=":material/info:")
    if result.ties_changed:
        parts.table(tie_rows(result), alt="Names that are tied in only one of the two")


def draw_tokens(result: Comparison) -> None:
    """List the tokens whose embeddings moved furthest."""
    match = result.vocabulary
    if match is None:
        st.info("Tokens could not be compared: see the warning above.", icon=":material/info:")
        return
    matched, *_ = words.describe_rows(  # the rest is in the summary above
        match, (result.name, result.other_name), result.tokens_moved
    )
    st.markdown(literal(matched))
    if len(result.tokens_moved):
        parts.table(
            result.tokens_moved, columns=tables.PRECISE, height=360, alt="Tokens whose embedding moved furthest"
        )
        table_files.offer(result.tokens, name=f"{result.name}-{result.other_name}-tokens", label="Every matched row")


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
