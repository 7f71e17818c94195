"""The adapter and the merged model of the merge proof; the open checkpoint is the base."""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from inspector.analyses.merge_proof.request import VerifyMergeRequest
from inspector.demo import ADAPTERS
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


def both(base: Opened, line: DeltaGenerator) -> tuple[Opened, ...] | None:
    """Ask for the adapter and the merged model.

    Args:
        base: The open checkpoint.
        line: Where the fields are drawn.

    Returns:
        Both; None before both are named; none where one is not open. The page says why.
    """
    if base.base and base.adapter:
        name = literal(base.base.name)
        st.info(f"{literal(base.adapter.name)} is on {name} already: open {name} alone.", icon=":material/merge:")
        return None
    names = beside.references(base)
    with line:
        picked = [beside.pick([*ADAPTERS, *names], "adapter", "Adapter"), beside.pick(names, "merged", "Merged model")]
    if not all(picked):
        st.info(
            f"{literal(base.name)} is the base. Choose the adapter and the merged model: uploads are listed, and "
            "hub:NAME or path:FOLDER can be typed.",
            icon=":material/merge:",
        )
        return None
    found = [session.open_beside(names.get(name, name)) for name in picked if name]
    return tuple(each for each in found if each) if all(found) else ()


def choose(base: Opened) -> Chosen:
    """Ask for the adapter and for the merged model; without both the page ends here, and says what it is for."""
    line = st.container(key="controls", horizontal=True, vertical_alignment="bottom")
    found = both(base, line)
    with line:
        rows = options.ask(VerifyMergeRequest, "rows", segmented=True)
    if not found:
        if found is None:
            st.markdown(TEACHES)
        st.stop()
    adapter, merged = found
    request = options.make(VerifyMergeRequest, adapter=adapter.fingerprint, merged=merged.fingerprint, rows=rows)
    return Chosen(request, adapter, merged)
