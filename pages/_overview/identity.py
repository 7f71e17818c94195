"""By what a checkpoint is known: the fingerprint that it was opened by, and the SHA-256 of its content on demand."""

from __future__ import annotations

import streamlit as st

from inspector.analyses.overview.request import OverviewRequest
from inspector.analyses.overview.result import Overview
from inspector.errors import InspectorError
from inspector.report.provenance import content_fingerprint
from inspector.results.checkpoint import Opened
from inspector.text import bytes_text, literal
from pages._ui import session

POLL_SECONDS = 1.0
CONTENT = "Fingerprint: the SHA-256 of the files' names and contents."
QUICK = """\
Quick fingerprint: it covers headers, sizes, small files, samples of the weights and file times.
It is not a hash of the content."""
LATER = "The fingerprint follows when all weights are here."
REQUEST = OverviewRequest(hash_files=True)


def draw(checkpoint: Opened, overview: Overview) -> None:
    """Show a fingerprint, say which of the two it is, and offer to compute the other."""
    if session.is_preview(checkpoint):  # what it is known by meanwhile is nobody's
        st.caption(LATER)
        return
    st.caption(CONTENT if overview.identity == "content" else QUICK)
    st.code(overview.fingerprint, language=None, wrap_lines=True)
    if overview.identity == "content":
        return
    if not st.session_state.get(_key(checkpoint)):
        st.button(
            "Compute the SHA-256",
            icon=":material/fingerprint:",
            on_click=_want,
            args=(checkpoint,),
            help=f"Reads all {bytes_text(overview.nbytes_on_disk)}; the page stays usable meanwhile",
        )
        return
    settled = session.begin(REQUEST).status in {"done", "failed", "cancelled"}
    st.fragment(_follow, run_every=None if settled else POLL_SECONDS)(checkpoint, waiting=not settled)


def _follow(checkpoint: Opened, *, waiting: bool) -> None:
    """Show how far the hash has come, and then the hash."""
    job = session.begin(REQUEST)
    try:
        hashed: Overview = job.result(0)
    except TimeoutError:
        st.progress(min(max(job.progress.fraction or 0.0, 0.0), 1.0), text=literal(job.progress.text))
        st.button("Cancel", key="stop hashing", on_click=_stop, args=(checkpoint,))
        return
    except InspectorError as error:
        st.error(literal(error), icon=":material/error:")
        st.button("Try again", key="hash again", on_click=_want, args=(checkpoint,))
        return
    if waiting:  # the page no longer needs to be drawn every second
        st.rerun()
    st.caption(CONTENT)
    st.code(content_fingerprint(hashed), language=None, wrap_lines=True)
    st.caption("Each file, as `sha256sum` prints it:")
    st.code("\n".join(f"{file.sha256}  {file.name}" for file in hashed.files), language=None, height=160)


def _key(checkpoint: Opened) -> str:
    return f"hash {checkpoint.fingerprint}"


def _want(checkpoint: Opened) -> None:
    st.session_state[_key(checkpoint)] = True


def _stop(checkpoint: Opened) -> None:
    session.begin(REQUEST).cancel()
    del st.session_state[_key(checkpoint)]
