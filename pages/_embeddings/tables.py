"""The tables beside and below the map: what was found, who is near, what was chosen."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import streamlit as st

from inspector.analyses.embeddings import words
from inspector.analyses.embeddings.request import EmbeddingsRequest
from inspector.analyses.embeddings.result import Embeddings
from inspector.analyses.vocabulary_map.component import SearchResult
from inspector.catalog import request_of
from inspector.results.checkpoint import Opened
from inspector.text import literal, plural
from pages._embeddings import inputs
from pages._ui import parts, session, table_files
from pages._ui.answer.rendering import PageView


def found(hits: SearchResult, *, checkpoint: Opened, selected: int | None) -> None:
    """List what the search found, and name what it did not find."""
    if hits.missing:
        st.warning(literal(words.not_found(checkpoint.name, hits.missing[:20])), icon=":material/search_off:")
    if len(hits.tokens) < 2:
        return
    st.caption(f"{plural(len(hits.tokens), 'token')} found and ringed on the map. Neighbors of:")
    ids = hits.tokens["token_id"].tolist()[:12]
    names = dict(zip(ids, hits.tokens["token"], strict=False))
    st.session_state["found token"] = selected if selected in names else None
    st.pills(
        "Neighbors of",
        ids,
        format_func=lambda row: literal(names[row]),
        key="found token",
        label_visibility="collapsed",
        on_change=_pin,
        wrap=True,
    )
    if len(hits.tokens) > len(ids):
        with st.expander(f"All {len(hits.tokens):,}"):
            parts.table(hits.tokens, alt="Tokens found", height=220)
    table_files.offer(hits.tokens, name=f"{checkpoint.name}-found")


def _pin() -> None:
    inputs.pin(st.session_state["found token"])


HINT = (
    ":material/ads_click: Click a point or find a token to list its nearest rows here, measured exactly in the "
    "original space."
)
WAITING = ":material/hourglass: Measuring …"
BUSY = ":material/hourglass: The neighbors appear when the map is done."


def neighbors(answer: Embeddings | None, *, waits: bool, busy: bool, checkpoint: Opened) -> None:
    """List the exact nearest rows of the selected token.

    Args:
        answer: None: there is none yet.
        busy: A map is computed first.
    """
    if answer is None:
        st.caption((BUSY if busy else WAITING) if waits else HINT)
        return
    PageView.of(answer, EmbeddingsRequest(), name=checkpoint.name).named("neighbors")
    st.caption("Lines on the map point to them.")


def chosen(points: pd.DataFrame, ids: Sequence[int], *, checkpoint: Opened) -> None:
    """List what the lasso holds, as files too."""
    if not ids:
        return
    rows = points[points["token_id"].isin(ids)]
    st.header(f"{plural(len(ids), 'chosen token')}", anchor=False)
    parts.table(pd.DataFrame(rows), alt="Tokens inside the lasso", height=260)
    table_files.offer(pd.DataFrame(rows), name=f"{checkpoint.name}-chosen", label="Chosen")


def special(checkpoint: Opened) -> None:
    """List special tokens with their norms, and say where a text ends."""
    request = request_of("tokens")()
    listed = session.ask(request)
    if listed is not None:
        PageView.of(listed, request, name=checkpoint.name).flat()
