"""Look for the likeliest base of the open checkpoint among the demos and one's uploads: only when asked to."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import streamlit as st

from inspector.analyses.base.request import BaseRequest
from inspector.analyses.base.result import RELATED, Relation
from inspector.analyses.base.words import headline
from inspector.errors import CancelledError, InspectorError
from inspector.results.checkpoint import Opened
from inspector.text import literal, plural
from pages._ui import beside, session

MOST = 20  # checkpoints that are sampled
SOUGHT = "base sought"  # key of the fingerprint whose base is looked for
HELP = "Samples some rows of each demo and of your newest uploads, and compares them with this checkpoint's"


def offer(checkpoint: Opened) -> None:
    """Offer to look for the base; nothing is read before that."""
    if not (checkpoint.adapter or session.is_preview(checkpoint)):
        st.button("Find its base", icon=":material/search:", help=HELP, on_click=_seek, args=(checkpoint.fingerprint,))


def show(checkpoint: Opened, take: Callable[[str], None]) -> None:
    """Show the likeliest base, if it was asked for, and offer to compare with it.

    Args:
        checkpoint: The open one.
        take: Has the page compare with a name of the list.
    """
    if st.session_state.get(SOUGHT) != checkpoint.fingerprint:
        return
    found = dict(_related(checkpoint))
    related = {name: each for name, each in found.items() if each.verdict in RELATED}
    if not related:
        count = plural(len(found), "checkpoint was", "checkpoints were")
        st.info(f"{count} sampled, and none is related to {literal(checkpoint.name)}.", icon=":material/search_off:")
        return
    name = min(related, key=lambda each: _distance(related[each]))
    st.success(literal(headline(related[name])), icon=":material/family_history:")
    st.button(f"Compare with {literal(name)}", key="compare with base", type="primary", on_click=take, args=(name,))


def _seek(fingerprint: str) -> None:
    st.session_state[SOUGHT] = fingerprint


def _related(checkpoint: Opened) -> Iterator[tuple[str, Relation]]:
    """What each checkpoint of the list is to the open one; those that cannot be judged are left out."""
    for name, reference in list(beside.references(checkpoint).items())[:MOST]:
        try:
            other = session.reach(reference)
        except CancelledError:
            return
        except InspectorError:
            continue
        asked = BaseRequest(other=other.fingerprint)
        if not other.adapter and (found := session.ask_optional(asked, beside=other)):
            yield name, found


def _distance(found: Relation) -> tuple[int, float]:
    """The likeliest first: by verdict, then by how much was changed."""
    return RELATED.index(found.verdict), found.relative_change or 0.0
