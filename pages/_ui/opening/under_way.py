"""What can be said of an upload while its bytes come: how much has arrived, and what its headers tell.

The browser ticks while it sends files, and each tick draws this part of the sidebar alone. As soon as
the headers of the weights are here, they are opened as a checkpoint that has names and no numbers.
"""

from __future__ import annotations

import weakref
from collections.abc import Collection, Mapping
from contextlib import suppress
from pathlib import Path

import streamlit as st
from streamlit.components.v2 import component
from streamlit.runtime.scriptrunner import get_script_run_ctx

from inspector.analyses.overview.request import OverviewRequest
from inspector.analyses.overview.words import in_short
from inspector.errors import InspectorError
from inspector.results.checkpoint import Opened
from inspector.serving.bodies import ReceivedUpload
from inspector.serving.engine.protocol import Job
from inspector.serving.fragment_reruns import TICK
from inspector.serving.storing import arriving, registry
from inspector.serving.storing.arriving import Arriving, Received
from inspector.serving.storing.origins.outline import Outline
from inspector.serving.uploads import PENDING
from inspector.settings import settings
from inspector.store.reference import CheckpointRef
from inspector.text import literal
from pages._ui import running, session

TICKED = "ticked"  # whether this part is drawn alone
_mount = component("under_way", js=(Path(__file__).parent / "under_way.js").read_text(encoding="utf-8"))


class Preview:
    """What there is of an upload, as a checkpoint; it goes with the session.

    Args:
        upload: From `arriving.outline`.
        files: That it was made of.
    """

    def __init__(self, upload: str, files: frozenset[str]) -> None:
        self.reference = str(Outline(upload))
        self.files = files
        self.before = running.first()  # what was open before this is
        self._discard = weakref.finalize(self, registry.discard_upload, upload, settings=settings())
        self._opening: Job[Opened] = session.engine().open(CheckpointRef(Outline.word, upload))

    def opened(self) -> Opened | None:
        """The checkpoint; None: it is being opened, or is none yet, as where a shard is missing."""
        with suppress(TimeoutError, InspectorError):
            return self._opening.result(0)
        return None

    def release(self) -> None:
        """Remove it: its files have come, or never will."""
        self._discard()
        if checkpoint := self.opened():
            session.engine().forget(checkpoint.fingerprint)
            registry.discard_opened(checkpoint.fingerprint, settings=settings())


def settle() -> None:
    """Leave a preview whose files were opened, removed or cut off; what was open before is open again."""
    preview: Preview | None = st.session_state.get(session.PREVIEW)
    if preview is None or preview.files <= _files().keys():
        return
    del st.session_state[session.PREVIEW]
    checkpoint: Opened | None = st.session_state.get("opened")
    if checkpoint and checkpoint.reference == preview.reference:
        session.want(preview.before)
    preview.release()


def is_shown(files: Collection[str]) -> bool:
    """Whether the page shows what is known of these files, and of no others."""
    preview: Preview | None = st.session_state.get(session.PREVIEW)
    now: Opened | None = st.session_state.get("opened")
    return bool(preview and now and now.reference == preview.reference and preview.files == set(files))


@st.fragment
def draw() -> None:
    """Draw what arrives, as long as anything does."""
    files = _files()
    coming = [file for file in files.values() if isinstance(file, Arriving)]
    # the browser has ended a transfer before the server knows of it, and ticks until it does
    _mount(key=TICK, data={"arriving": bool(coming)}, on_sends_change=_note_tick)
    shown: Preview | None = st.session_state.get(session.PREVIEW)
    if st.session_state.pop(TICKED, False) and shown and not shown.files <= files.keys():
        st.rerun()  # a file was canceled, which changes nothing else on the page; `settle` leaves the preview
    if not coming:
        return
    share, text = arriving.how_far(coming)
    st.progress(share, text=f"Arriving: {text}")
    preview = _preview(files)
    checkpoint = preview.opened() if preview else None
    if not preview or not checkpoint:
        return
    overview = session.ask_if_ready(OverviewRequest(), of=checkpoint)
    if overview:
        st.markdown(literal(in_short(overview)))
    now: Opened | None = st.session_state.get("opened")
    if is_shown(files):
        st.caption("This page shows what is known already.")
    elif st.button("See what is known already", icon=":material/visibility:", width="stretch"):
        preview.before = now.reference if now else preview.before
        session.want(preview.reference)
        st.rerun()


def _note_tick() -> None:
    st.session_state[TICKED] = True


def _files() -> dict[str, bytes | Received | Arriving]:
    """The files that this session has sent and nobody has opened, by name, as far as they have arrived."""
    context = get_script_run_ctx()
    if context is None:
        return {}
    under_way = PENDING.under_way(context.session_id)
    files: dict[str, bytes | Received | Arriving] = {
        file.name: file for file in under_way.values() if isinstance(file, Arriving)
    }
    for record in context.uploaded_file_mgr.get_files(context.session_id, list(under_way)):
        received = record.data.received if isinstance(record.data, ReceivedUpload) else record.data
        if isinstance(received, bytes | Received):
            files[record.name] = received
    return files


def _preview(files: Mapping[str, bytes | Received | Arriving]) -> Preview | None:
    """The checkpoint that files make as far as they have arrived; None: their headers are not here yet."""
    state = st.session_state
    old: Preview | None = state.get(session.PREVIEW)
    if (old and old.files == files.keys()) or settings().engine != "local":  # replicas elsewhere do not have the files
        return old
    with suppress(InspectorError, OSError):  # whoever opens them says what is wrong
        if upload := arriving.outline(files, settings()):
            new = state[session.PREVIEW] = Preview(upload, frozenset(files))
            if old:
                new.before = old.before
                old.release()
                if (now := state.get("opened")) and now.reference == old.reference:
                    session.want(new.reference)
                    st.rerun()
            return new
    return None
