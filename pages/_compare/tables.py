"""What only the Compare page shows of tables: what headers decide meanwhile, a choice of statuses, every row."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import streamlit as st

from inspector.analyses.compare import words
from inspector.analyses.compare.result import STATUSES, Comparison
from inspector.names import find_rows
from inspector.text import literal
from inspector.view.blocks import Table
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
    """Draw what headers decide, while the numbers of both are being read, or still on the hub."""
    st.caption("What the headers decide:")
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


def draw_tensors(result: Comparison, _: Table) -> None:
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


def draw_tokens(result: Comparison, table: Table) -> None:
    """List the tokens whose embeddings moved furthest; the files hold every matched row."""
    parts.table(table.frame, columns=tables.PRECISE, height=360, alt=table.title)
    table_files.offer(result.tokens, name=f"{result.name}-{result.other_name}-tokens", label="Every matched row")


def shown_tensors(tensors: pd.DataFrame, *, find: str, statuses: Sequence[str]) -> pd.DataFrame:
    """Rows of the table that match, those that changed most first."""
    kept = tensors
    if statuses:
        kept = pd.DataFrame(kept[kept["status"].isin(list(statuses))])
    kept = find_rows(kept, find, ("name", "other_name", "status", "layer", "dtype", "note"))
    return kept.sort_values("relative_change", ascending=False, kind="stable")
