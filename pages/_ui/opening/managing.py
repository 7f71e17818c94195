"""What the owner of an upload can do with it: rename, share, pin and delete it."""

from __future__ import annotations

import streamlit as st

from inspector.errors import InspectorError
from inspector.results.checkpoint import Opened
from inspector.serving.storing import uploads
from inspector.serving.storing.owners import is_owner
from inspector.settings import settings
from pages._ui import running, session, sign_in
from pages._ui.opening import pins

SHARE = "Share with everybody here"
HELP = "Everyone who may use this server sees it in their list. Only its owners can rename and delete it."


def draw(checkpoint: Opened) -> None:
    """Offer what this person may do with an upload; nothing if it is somebody else's."""
    asker, fingerprint = sign_in.asker(), checkpoint.fingerprint
    owners = uploads.owners_of(fingerprint, settings())
    owns = is_owner(owners, asker)
    if not owns and not asker.is_admin:
        return
    with st.popover("Rename or delete" if owns else "Delete", icon=":material/edit:", width="stretch"):
        if owns:
            _offer_name(fingerprint, checkpoint.name)
            if mine := (owners or {}).get(asker.owner):
                _offer_sharing(fingerprint, is_shared=mine.shared)
            pins.draw(fingerprint, place="sidebar")
            st.divider()
        if settings().store:
            st.caption("Other servers share the store: what you delete is gone from all of them.")
        sure = st.checkbox("Yes, delete it from the store permanently", key=f"sure {fingerprint}")
        st.button("Delete", on_click=_delete, args=(fingerprint,), disabled=not sure, icon=":material/delete:")


def _offer_name(fingerprint: str, name: str) -> None:
    new = st.text_input("Name", value=name, key=f"name {fingerprint}", max_chars=80)
    st.button("Rename", on_click=_rename, args=(fingerprint, new), disabled=new == name)


def _offer_sharing(fingerprint: str, *, is_shared: bool) -> None:
    key = f"share {fingerprint}"
    st.session_state[key] = is_shared  # another session may have changed it
    st.toggle(SHARE, key=key, on_change=_share, args=(fingerprint, key), help=HELP)


def _rename(fingerprint: str, name: str) -> None:
    try:
        uploads.rename_upload(fingerprint, name, settings=settings(), asker=sign_in.asker())
    except InspectorError as error:
        st.session_state["refusal"] = str(error)
        return
    session.engine().forget(fingerprint)
    session.want(f"upload:{fingerprint}")


def _share(fingerprint: str, key: str) -> None:
    shared = bool(st.session_state[key])
    try:
        uploads.share_upload(fingerprint, shared=shared, settings=settings(), asker=sign_in.asker())
    except InspectorError as error:
        st.session_state["refusal"] = str(error)


def _delete(fingerprint: str) -> None:
    session.want(running.FIRST)
    try:
        uploads.delete_upload(fingerprint, settings=settings(), asker=sign_in.asker())
    except InspectorError as error:
        st.session_state["refusal"] = str(error)
    session.engine().forget(fingerprint)
