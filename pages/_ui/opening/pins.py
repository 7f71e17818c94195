"""Keep an upload whatever room is needed."""

from __future__ import annotations

import streamlit as st

from inspector.errors import InspectorError
from inspector.serving.storing import uploads
from inspector.serving.storing.owners import is_owner
from inspector.settings import settings
from pages._ui import sign_in

HELP = "A pinned upload is never removed to make room in the store. You can still delete it."


def draw(fingerprint: str, *, place: str) -> None:
    """Draw the switch of one upload; nothing if it is gone, or somebody else's.

    Args:
        place: Tells this switch from another one of the same upload.
    """
    stored = {each.fingerprint: each for each in uploads.list_uploads(settings(), sign_in.asker())}
    if fingerprint not in stored or not is_owner(uploads.owners_of(fingerprint, settings()), sign_in.asker()):
        return
    key = f"pin {fingerprint} {place}"
    st.session_state[key] = stored[fingerprint].pinned  # another session may have changed it
    st.toggle("Pin: never remove it to make room", key=key, on_change=_pin, args=(fingerprint, key), help=HELP)


def _pin(fingerprint: str, key: str) -> None:
    pinned = bool(st.session_state[key])
    try:
        uploads.pin_upload(fingerprint, pinned=pinned, settings=settings(), asker=sign_in.asker())
    except InspectorError as error:
        st.session_state["refusal"] = str(error)
