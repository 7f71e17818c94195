"""Ask every snapshot of a run; the work is found again when the script runs anew."""

from __future__ import annotations

from typing import Any

import pandas as pd
import streamlit as st

from inspector.analyses.snapshots import words
from inspector.batch.asking import BatchEntry, without_answer
from inspector.errors import CancelledError, InspectorError, RequestError
from inspector.request import Request
from inspector.results.checkpoint import Opened
from inspector.serving.engine.batch import Batch, Wait
from inspector.serving.engine.batch_job import BatchJob
from inspector.settings import settings
from inspector.store.origins.snapshots import Snapshot
from inspector.text import literal
from pages._snapshots.runs import TrainingRun
from pages._ui import parts, session

KEPT = 8  # runs with one question each


def ask_all(run: TrainingRun, request: Request) -> list[tuple[Snapshot, Any]]:
    """Ask every snapshot the same; the page ends here where none has answered.

    The first is asked alone: what is wrong with the question itself is then said once.

    Returns:
        Snapshots with their answers, in the order of the run; those without one are named below.
    """
    first = _ask_first(run.snapshots[0], request)
    key = (run.snapshots, request.verb, request)  # Streamlit hashes the fields of a request, and not its class
    job = _job(key, first)
    entries = _wait(job, key)
    order = {snapshot: place for place, snapshot in enumerate(run.snapshots)}
    entries = sorted(entries, key=lambda entry: order[entry.snapshot])
    _name_missing([entry for entry in entries if entry.status != "done"], key)
    answered = [(entry.snapshot, entry.result) for entry in entries if entry.status == "done"]
    if not answered:
        st.stop()
    return answered


def _ask_first(snapshot: Snapshot, request: Request) -> BatchEntry:
    opened: Opened | None = None
    try:
        opened = session.reach(str(snapshot.reference))
        return BatchEntry(
            snapshot, "done", session.wait(session.begin(request, of=opened), stopped_key=None), opened=opened
        )
    except RequestError as error:
        st.error(literal(error), icon=":material/error:")
        st.stop()
    except CancelledError:
        st.info("Stopped.", icon=":material/stop_circle:")
        st.button("Continue", icon=":material/play_arrow:")
        st.stop()
    except InspectorError as error:  # of this snapshot alone: it is named with the others
        return without_answer(snapshot, error, opened)


@st.cache_resource(max_entries=KEPT, show_spinner=False)
def _job(key: tuple[tuple[Snapshot, ...], str, Request], _first: BatchEntry) -> BatchJob:
    engine, (snapshots, verb, request) = session.engine(), key

    def ask(_: Snapshot, opened: Opened, wait: Wait) -> Any:
        return wait(engine.run(opened.fingerprint, verb, called=(opened.name,), **request.parameters()))

    if _first.opened:
        engine.release(_first.opened.fingerprint)
    workers = max(1, settings().workers - 1)  # one is left to those who ask for little
    batch = Batch(engine, snapshots[1:], ask, workers=workers, release=True)
    return BatchJob(batch, len(snapshots), known=[_first])


def _wait(job: BatchJob, key: tuple[Any, ...]) -> tuple[BatchEntry, ...]:
    if job.status != "cancelled" and st.session_state.get("stopped") != key:
        job.join()
        try:
            return session.wait(job, stopped_key=key)
        except InspectorError as error:
            st.error(literal(error), icon=":material/error:")
    st.info(words.stopped(len(job.partial)), icon=":material/stop_circle:")
    st.button("Continue", on_click=_continue, args=(job, key), icon=":material/play_arrow:")
    return job.partial


def _continue(job: BatchJob, key: tuple[Any, ...]) -> None:
    st.session_state.pop("stopped", None)
    if job.status == "cancelled":  # else others wait for it
        _job.clear(key)


def _name_missing(entries: list[BatchEntry], key: tuple[Any, ...]) -> None:
    if not entries:
        return
    st.warning(words.gap(len(entries)), icon=":material/warning:")
    rows = [(entry.snapshot.name, entry.error) for entry in entries]
    parts.table(pd.DataFrame(rows, columns=["snapshot", "why"]), alt="Snapshots without a result")
    if any(entry.status == "failed" for entry in entries):
        st.button("Retry", on_click=_job.clear, args=(key,), icon=":material/refresh:")
