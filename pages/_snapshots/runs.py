"""Which run the Snapshots page shows: a bundled one, uploaded ones, a folder of this server."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from inspector.demo import RUNS
from inspector.errors import InspectorError
from inspector.results.checkpoint import Opened
from inspector.serving.place import paths_are_open, served_settings
from inspector.serving.storing.uploads import list_uploads
from inspector.settings import settings
from inspector.store.origins.on_disk import OnDisk
from inspector.store.origins.snapshots import UPLOADS, Snapshot, find_run, uploaded_runs
from inspector.store.reference import origin_of
from inspector.text import literal
from pages._ui import parts, sign_in
from pages._ui.opening import agreeing, arrivals, uploading

EXAMPLE = next(iter(RUNS))
ARCHIVE = (
    "One .zip, .tar or .tar.gz that contains a folder for each snapshot, such as checkpoint-500 and checkpoint-1000, "
    "each with its weights, config.json and tokenizer. Each snapshot becomes a separate upload, which every page can "
    "open."
)


@dataclass(frozen=True, slots=True)
class TrainingRun:
    """A training run: its snapshots in order."""

    reference: str  # as the link has it
    name: str
    snapshots: tuple[Snapshot, ...]


def choose(checkpoint: Opened, line: DeltaGenerator) -> TrainingRun:
    """Ask for the run: by default the one that the open checkpoint is of, or the bundled one.

    Args:
        checkpoint: The open one.
        line: Where the fields are drawn.
    """
    state = st.session_state
    if "run arrived" in state:
        state["run"], state["run warnings"] = state["run arrived"]
    uploads = uploaded_runs(list_uploads(settings(), sign_in.asker()))
    known = [*RUNS, *(f"{UPLOADS}:{name}" for name in uploads), *_beside(checkpoint)]
    reference = line.selectbox(
        "Run",
        known,
        key="run",
        bind="query-params",
        index=_usual(checkpoint, known),
        accept_new_options=True,
        placeholder="Choose one, or type path:FOLDER",
        help="A bundled run, uploaded snapshots, or path: with a folder on this server that contains the snapshot "
        "folders",
        on_change=agreeing.agree_to,
        args=("run",),
        width=180,
    )
    state.pop("run arrived", None)  # only now: a run that ends before loses what a program set
    _offer_upload(line)
    if "run arrived" in state:
        st.rerun()
    if agreeing.must_ask(reference):
        agreeing.ask(reference)
        st.stop()
    try:
        name, snapshots = find_run(reference, roots=served_settings().roots, uploads=uploads)
    except InspectorError as error:
        st.error(literal(error), icon=":material/error:")
        st.button(f"Show {EXAMPLE}", on_click=_take, args=(EXAMPLE,), type="primary")
        st.stop()
    parts.warnings(state.get("run warnings", ()) if reference.startswith(f"{UPLOADS}:") else ())
    return TrainingRun(reference, name, snapshots)


def _beside(checkpoint: Opened) -> list[str]:
    """The folder that holds the open checkpoint, if it was opened by its path."""
    path = origin_of(checkpoint.reference).path
    return [str(OnDisk(str(path.parent)))] if path and paths_are_open() else []


def _usual(checkpoint: Opened, known: Sequence[str]) -> int:
    """Place of the run that is shown unless another one is chosen."""
    own = f"{UPLOADS}:{checkpoint.name.rpartition('/')[0]}"
    return known.index(own) if own in known else 0


def _offer_upload(place: DeltaGenerator) -> None:
    with place.expander("Upload snapshots", icon=":material/upload_file:", width=200):
        st.caption(ARCHIVE)
        uploading.draw("snapshots", "Archive")
    arrivals.open_all("snapshots", _show)
    uploading.show_refusal("snapshots")


def _show(opened: Opened) -> None:
    """Have the page show a run that was uploaded."""
    run = opened.name.rpartition("/")[0]
    left_out = [said for said in opened.warnings if " was left out: " in said]
    st.session_state["run arrived"] = f"{UPLOADS}:{run}", left_out


def _take(reference: str) -> None:
    st.session_state["run"] = reference
