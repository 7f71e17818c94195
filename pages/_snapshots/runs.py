"""Which run the Snapshots page shows: a bundled one, uploaded ones, a folder of this server."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import streamlit as st

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
TEACHES = """\
A training run leaves snapshots: folders such as `checkpoint-500`, `step_1000` or `global_step2000`.
The app analyzes every snapshot in the same way, several at once, and plots the results over the steps in
the names, or in the order of the names if a name has no step. You can follow:

- **Padding**: the length of the `[PAD]` row compared with the median row. In a tied model it grows
  although its look-up gets no gradient: the softmax pushes on every row at every position.
- **Norms**: the longest, the median and the shortest row of the embedding matrix.
- **Drift**: the cosine between a token's row and the same token's row in the first or the last snapshot.
- **Neighbors**: how many of a row's nearest rows in the first (or last) snapshot are still near
  it, for your tokens and for random rows. When neighbors are no longer lost, the space has
  settled.
- **Ties**: which names share memory, snapshot by snapshot: a tie that breaks in the middle of a run
  turns one matrix into two.
- **Checks**: all checks of the *Checks* page, which show the step at which the first NaN appears.

Norms, drift and neighbors need only the embedding matrix, so only that is read from each file."""


@dataclass(frozen=True, slots=True)
class Run:
    """A training run: its snapshots in order."""

    reference: str  # as the link has it
    name: str
    snapshots: tuple[Snapshot, ...]


def choose(checkpoint: Opened) -> Run:
    """Ask for the run; without one the page ends here, and says what it is for."""
    state = st.session_state
    if "run arrived" in state:
        state["run"], state["run warnings"] = state["run arrived"]
    uploads = uploaded_runs(list_uploads(settings(), sign_in.asker()))
    known = [*RUNS, *(f"{UPLOADS}:{name}" for name in uploads), *_beside(checkpoint)]
    line = st.container(horizontal=True, vertical_alignment="bottom")
    reference = line.selectbox(
        "Run",
        known,
        key="run",
        bind="query-params",
        index=None,
        accept_new_options=True,
        placeholder="Choose one, or type path:FOLDER",
        help="A bundled run, uploaded snapshots, or path: with a folder on this server that contains the snapshot "
        "folders",
        on_change=agreeing.agree_to,
        args=("run",),
    )
    state.pop("run arrived", None)  # only now: a run that ends before loses what a program set
    _offer_upload(line if reference else st, expanded=reference is None)
    if "run arrived" in state:
        st.rerun()
    if reference is None:
        _teach()
        st.stop()
    if agreeing.must_ask(reference):
        agreeing.ask(reference)
        st.stop()
    try:
        name, snapshots = find_run(reference, roots=served_settings().roots, uploads=uploads)
    except InspectorError as error:
        st.error(literal(error), icon=":material/error:")
        _offer_example()
        st.stop()
    parts.warnings(state.get("run warnings", ()) if reference.startswith(f"{UPLOADS}:") else ())
    return Run(reference, name, snapshots)


def _beside(checkpoint: Opened) -> list[str]:
    """The folder that holds the open checkpoint, if it was opened by its path."""
    path = origin_of(checkpoint.reference).path
    return [str(OnDisk(str(path.parent)))] if path and paths_are_open() else []


def _offer_upload(place: Any, *, expanded: bool) -> None:
    width = "stretch" if expanded else 230
    with place.expander("Upload snapshots", icon=":material/upload_file:", expanded=expanded, width=width):
        st.caption(ARCHIVE)
        uploading.draw("snapshots", "Archive")
    arrivals.open_all("snapshots", _show)
    uploading.show_refusal("snapshots")


def _show(opened: Opened) -> None:
    """Have the page show a run that was uploaded."""
    run = opened.name.rpartition("/")[0]
    left_out = [said for said in opened.warnings if " was left out: " in said]
    st.session_state["run arrived"] = f"{UPLOADS}:{run}", left_out


def _teach() -> None:
    """What an empty page says."""
    st.info(
        "Choose a run: a bundled one, snapshots that you upload, or a folder on this server.",
        icon=":material/timeline:",
    )
    _offer_example()
    st.markdown(TEACHES)


def _offer_example() -> None:
    st.button(f"Show {EXAMPLE}", on_click=_take, args=(EXAMPLE,), type="primary")


def _take(reference: str) -> None:
    st.session_state["run"] = reference
