"""Keep an upload whatever room is needed."""

from __future__ import annotations

import streamlit as st

from inspector.errors import InspectorError
from inspector.serving.storing import registry
from inspector.settings import settings
from inspector.store.stored import list_checkpoints

HELP = "A pinned upload is never removed to make room in the store. You can still delete it."


def draw(fingerprint: str, *, place: str) -> None:
    """Draw the switch of one upload; nothing if it is gone.

    Args:
        place: Tells this switch from another one of the same upload.
    """
    stored = {each.fingerprint: each for each in list_checkpoints(settings())}
    if fingerprint not in stored:
        return
    key = f"pin {fingerprint} {place}"
    st.session_state[key] = stored[fingerprint].pinned  # another session may have changed it
    st.toggle("Pin: never remove it to make room", key=key, on_change=_pin, args=(fingerprint, key), help=HELP)


def _pin(fingerprint: str, key: str) -> None:
    pinned = bool(st.session_state[key])
    try:
        registry.pin_checkpoint(fingerprint, pinned=pinned, settings=settings())
    except InspectorError as error:
        st.session_state["refusal"] = str(error)
