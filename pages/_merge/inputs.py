"""The adapter and the merged model of the merge proof; the open checkpoint is the base."""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st

from inspector.analyses.merge_proof.request import VerifyMergeRequest
from inspector.results.checkpoint import Opened
from inspector.text import literal
from pages._ui import beside, options, session

TEACHES = """
**What this page proves**

- **Was the adapter merged?** The merge is replayed from the base and the adapter, in the ways in which PEFT and other
  tools round it, and compared with the merged model bit by bit.
- **What went wrong?** Not merged, merged twice, another alpha, layers left out, another base, a head that was lost.

Nothing is written, and no model is run.
"""


@dataclass(frozen=True, slots=True)
class Chosen:
    """What the open checkpoint is asked about."""

    request: VerifyMergeRequest
    adapter: Opened
    merged: Opened


def choose(base: Opened) -> Chosen:
    """Ask for the adapter and for the merged model; without both the page ends here, and says what it is for."""
    names = beside.references(base)
    with st.container(key="controls", horizontal=True, vertical_alignment="bottom"):
        picked = [beside.pick(names, key, label) for key, label in (("adapter", "Adapter"), ("merged", "Merged model"))]
        rows = options.ask(VerifyMergeRequest, "rows", segmented=True)
    if not all(picked):
        st.info(
            f"{literal(base.name)} is the base. Choose the adapter and the merged model: uploads are listed, and "
            "hub:NAME or path:FOLDER can be typed.",
            icon=":material/merge:",
        )
        st.markdown(TEACHES)
        st.stop()
    found = [session.open_beside(names.get(name, name)) for name in picked if name]
    adapter, merged = found
    if adapter is None or merged is None:
        st.stop()
    request = options.make(VerifyMergeRequest, adapter=adapter.fingerprint, merged=merged.fingerprint, rows=rows)
    return Chosen(request, adapter, merged)
