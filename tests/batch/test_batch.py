"""Many checkpoints at once: none ends the others, nothing is lost, numbers over steps."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from contextvars import copy_context
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from inspector.analyses.checks.result import Check, Checks
from inspector.analyses.embeddings.result import RowNorms
from inspector.analyses.sharing.result import SharedGroup, Sharing
from inspector.analyses.snapshots.frames import QUANTITIES, check_frame, follow, kept_shares, tie_frame
from inspector.analyses.snapshots.result import Vitals
from inspector.batch.asking import BatchEntry
from inspector.batch.records import Records
from inspector.errors import CancelledError, CheckpointError, RequestError, WorkerError
from inspector.results.checkpoint import Opened
from inspector.serving.engine.batch import Batch
from inspector.serving.engine.batch_job import BatchJob
from inspector.serving.engine.protocol import Progress
from inspector.serving.engine.shares import SessionTab, ask_as
from inspector.store.origins.snapshots import Snapshot
from inspector.store.reference import CheckpointRef

SECONDS = 60  # until a test gives up


class StandInJob:
    """A job that settles when it is told to."""

    def __init__(self, outcome: Any = None, *, settled: bool = True) -> None:
        self.id = "job"
        self.status = "running"
        self.progress = Progress(None, "")
        self._outcome = outcome
        self._settled = threading.Event()
        if settled:
            self._settled.set()

    @property
    def runs(self) -> bool:
        return not self._settled.is_set()

    def settle(self, outcome: Any = None) -> None:
        self._outcome = outcome
        self._settled.set()

    def result(self, timeout: float | None = None) -> Any:
        if not self._settled.wait(SECONDS if timeout is None else timeout):
            raise TimeoutError
        if isinstance(self._outcome, Exception):
            raise self._outcome
        return self._outcome

    def cancel(self) -> None:
        if not self._settled.is_set():
            self.settle(CancelledError("stopped"))


class StandInEngine:
    """Opens at once; runs what `jobs` holds for a name, else answers the name."""

    def __init__(self, **jobs: StandInJob) -> None:
        self.jobs = jobs
        self.released: list[str] = []
        self.asked: list[str] = []
        self.most = 0  # that were asked at once
        self.ran = threading.Semaphore(0)

    def open(self, reference: CheckpointRef, *, whole: bool) -> StandInJob:
        name = reference.value
        if name.startswith("bad"):
            return StandInJob(CheckpointError(f"{name} is broken."))
        return StandInJob(Opened(name.ljust(64, "0"), f"path:{name}", name, ()))

    def run(self, fingerprint: str, verb: str, **parameters: Any) -> StandInJob:
        name = fingerprint.rstrip("0")
        self.asked.append(name)
        self.most = max(self.most, sum(each in self.jobs and self.jobs[each].runs for each in self.asked))
        self.ran.release()
        return self.jobs.get(name) or StandInJob(f"{verb} of {name}")

    def release(self, fingerprint: str) -> bool:
        self.released.append(fingerprint.rstrip("0"))
        return True


def snapshots(*names: str) -> tuple[Snapshot, ...]:
    return tuple(
        Snapshot(name, CheckpointRef("path", name), step, f"identity {name}")
        for step, name in enumerate(names, start=1)
    )


def batch(engine: Any, *names: str, workers: int = 2, **options: Any) -> Batch:
    def ask(_: Snapshot, opened: Opened, wait: Any) -> Any:
        return wait(engine.run(opened.fingerprint, "echo"))

    return Batch(engine, snapshots(*names), ask, workers=workers, **options)


def test_one_failure_does_not_end_the_rest() -> None:
    engine = StandInEngine(b=StandInJob(WorkerError("b's worker died.")), c=StandInJob(RequestError("c cannot.")))
    entries = {e.snapshot.name: e for e in batch(engine, "a", "b", "bad", "c", "d").answers()}
    assert {name: (e.status, e.result, e.error) for name, e in entries.items()} == {
        "a": ("done", "echo of a", None),
        "b": ("failed", None, "b's worker died."),
        "bad": ("refused", None, "bad is broken."),
        "c": ("refused", None, "c cannot."),
        "d": ("done", "echo of d", None),
    }
    assert entries["bad"].opened is None
    assert entries["c"].opened is not None


def test_as_many_are_asked_at_once_as_there_are_workers() -> None:
    jobs = {name: StandInJob(settled=False) for name in "abcd"}
    engine = StandInEngine(**jobs)
    asked = batch(engine, *jobs, workers=3, release=True)
    found: list[BatchEntry] = []
    thread = threading.Thread(target=lambda: found.extend(asked.answers()))
    thread.start()
    for _ in range(3):
        assert engine.ran.acquire(timeout=SECONDS)
    assert sorted(asked.busy) == ["a", "b", "c"]
    jobs["b"].settle("first")
    assert engine.ran.acquire(timeout=SECONDS)  # the fourth waited for one of them
    assert engine.most == 3
    for job in jobs.values():
        job.settle("then")
    thread.join(SECONDS)
    assert sorted(entry.snapshot.name for entry in found) == list("abcd")
    assert sorted(engine.released) == list("abcd")


def test_canceling_stops_what_runs_and_starts_nothing_more() -> None:
    running = StandInJob(settled=False)
    engine = StandInEngine(b=running)
    job = BatchJob(batch(engine, "a", "b", "c", workers=1), 3)
    assert engine.ran.acquire(timeout=SECONDS)
    assert engine.ran.acquire(timeout=SECONDS)
    assert job.progress.text == "1 of 3 snapshots; reading b"
    assert job.progress.fraction == pytest.approx(1 / 3)
    with pytest.raises(TimeoutError):
        job.result(timeout=0)
    job.cancel()
    with pytest.raises(CancelledError):
        job.result(timeout=SECONDS)
    with pytest.raises(CancelledError):
        running.result(timeout=SECONDS)
    assert [entry.result for entry in job.partial] == ["echo of a"]
    assert engine.asked == ["a", "b"]


def test_a_batch_ends_when_the_last_tab_that_waits_for_it_cancels() -> None:
    running = StandInJob(settled=False)
    job = BatchJob(batch(StandInEngine(b=running), "b", workers=1), 1)
    copy_context().run(_in_tab, "second", job.join)
    job.cancel()
    assert job.status == "running"
    copy_context().run(_in_tab, "second", job.cancel)
    assert job.status == "cancelled"


def _in_tab(name: str, do: Callable[[], None]) -> None:
    ask_as("", SessionTab(name))
    do()


def test_work_that_somebody_else_stopped_is_a_failure_of_that_one_alone() -> None:
    engine = StandInEngine(b=StandInJob(CancelledError("stopped elsewhere")))
    job = BatchJob(batch(engine, "a", "b", "c"), 3)
    statuses = {entry.snapshot.name: entry.status for entry in job.result(timeout=SECONDS)}
    assert statuses == {"a": "done", "b": "failed", "c": "done"}
    assert job.status == "done"


def entry(name: str, result: Any = None, **changes: Any) -> BatchEntry:
    (snapshot,) = snapshots(name)
    opened = Opened(name.ljust(64, "0"), f"path:{name}", name, ())
    return BatchEntry(snapshot, **({"status": "done", "result": result, "opened": opened} | changes))


def test_what_is_known_is_not_asked_and_counts() -> None:
    engine = StandInEngine()
    job = BatchJob(batch(engine, "b", "c", workers=1), 3, known=[entry("a", "known")])
    assert [each.result for each in job.result(timeout=SECONDS)] == ["known", "echo of b", "echo of c"]
    assert engine.asked == ["b", "c"]
    assert job.progress.text == "3 of 3 snapshots"


def test_records_go_on_where_they_were_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    question = {"verb": "check", "tokens": ("a",)}
    with Records(path, question) as records:
        records.add(entry("a", {"n": 1}))
        records.add(entry("b", status="refused", error="no"))
        records.add(entry("c", {"n": 3}))
    whole = path.read_bytes()
    path.write_bytes(whole[:-20])  # the disk was full, or the power went
    with Records(path, question) as records:
        assert records.known("identity a") is not None
        assert records.known("identity b") is None  # asked again
        assert records.known("identity c") is None  # cut off
        assert records.known(None) is None
        assert records.known_by("a".ljust(64, "0"), "a") == records.known("identity a")
        assert records.known_by("a".ljust(64, "0"), "another name") is None
        records.add(entry("c", {"n": 3}))
    assert path.read_bytes() == whole
    with Records(path, question | {"tokens": ("b",)}) as records:  # another question
        assert records.known("identity a") is None
        records.add(entry("a", {"n": 2}))
    with Records(path, question) as records:
        known = records.known("identity a")
        assert known
        assert known["result"] == {"n": 1}
    for line in path.read_text().splitlines():
        assert set(json.loads(line)) >= {"checkpoint", "name", "step", "status", "identity"}


@pytest.mark.parametrize("cut", [1, 5, 40, 100])
def test_a_torn_first_line_is_asked_again_like_a_later_one(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "results.jsonl"
    with Records(path, {}) as records:
        records.add(entry("a", {"n": 1}))
        records.add(entry("b", {"n": 2}))
    first, second = path.read_bytes().splitlines(keepends=True)
    for torn in (first[:cut], first[:cut] + b"\n" + second):  # cut off, or lost when the power went
        path.write_bytes(torn)
        with Records(path, {}) as records:
            assert records.known("identity a") is None
            assert (records.known("identity b") is not None) == torn.endswith(second)
            records.add(entry("a", {"n": 1}))
        assert path.read_bytes().endswith(first)


def test_a_results_file_of_another_kind_or_in_use_is_left_alone(tmp_path: Path) -> None:
    for number, content in enumerate((b"mine\n", b"mine", b'{"a": 1}\n', b"[]\n")):
        path = tmp_path / f"{number}.txt"
        path.write_bytes(content)
        with pytest.raises(RequestError, match="does not contain results"):
            Records(path, {"verb": "check"})
        assert path.read_bytes() == content
    path = tmp_path / "results.jsonl"
    with Records(path, {}), pytest.raises(RequestError, match="Another run is writing"):
        Records(path, {})
    Records(path, {}).__exit__(None, None, None)
    with pytest.raises(RequestError, match="cannot be written"):
        Records(tmp_path / "no folder" / "results.jsonl", {})


def numbers(name: str, vectors: Any, neighbors: Any, **changes: Any) -> tuple[Snapshot, Vitals]:
    vectors = np.array(vectors, dtype=np.float32)
    neighbors = np.array(neighbors, dtype=np.int64)
    values = {
        "name": name, "fingerprint": name, "tensor": "e", "rows": 9, "columns": 2,
        "vocabulary": "v", "norms": RowNorms(1.0, 2.0, 3.0), "pad_token": "[PAD]", "pad_id": 0,
        "pad_norm": 0.5, "vectors": vectors, "k": 2, "probes": np.arange(len(neighbors)),
        "tokens": pd.DataFrame({"token": ["x"], "token_id": [4],
                                "norm": [float(np.linalg.norm(vectors[0]))]}),
        "neighbours": neighbors, "warnings": (),
    }  # fmt: skip
    return Snapshot(name, CheckpointRef("path", name), None), Vitals(**(values | changes))


def test_drift_and_lost_neighbors_by_hand() -> None:
    answers = [
        numbers("first", [[1, 0]], [[1, 2], [3, 4], [5, 6]]),
        numbers("turned", [[3, 4]], [[2, 8], [4, 3], [7, 8]]),
        numbers("other", [[0, 1]], [[1, 2], [3, 4], [5, 6]], vocabulary="w"),
        numbers("none", [[0, 0]], [[1, 2], [-1, -1], [5, 8]], pad_norm=None),
    ]
    series = follow(answers)
    assert series.reference == "first"
    np.testing.assert_allclose(series.drift["cosine"], [1, 0.6, np.nan, np.nan], rtol=1e-6)
    np.testing.assert_allclose(series.drift["norm"], [1, 5, 1, 0])
    kept = series.neighbours.pivot(index="place", columns="of", values="kept")
    np.testing.assert_allclose(kept["x"], [1, 0.5, np.nan, 1])
    # Two rows drawn: (1, 0) of the second; the last has one left, of which half is kept.
    np.testing.assert_allclose(kept["rows drawn at random"], [1, 0.5, np.nan, 0.5])
    assert "of other are left out" in series.warnings[0]
    last = follow(answers, against="last")
    assert last.reference == "none"
    assert np.isnan(last.drift["cosine"].to_numpy()).all()  # a zero row has no direction
    padding = series.lines("padding")
    assert list(padding.columns) == ["place", "snapshot", "step", "line", "value"]
    own = padding.loc[padding["line"] == "padding row", "value"].tolist()
    np.testing.assert_allclose(own, [0.5, 0.5, 0.5, np.nan])
    for quantity in QUANTITIES:
        lines = series.lines(quantity)
        assert lines["snapshot"].drop_duplicates().tolist() == ["first", "turned", "other", "none"]
        assert "place" not in series.table(quantity)
    with pytest.raises(RequestError, match="No snapshot has a result"):
        follow([])


def test_kept_shares_count_what_was_there() -> None:
    before = np.array([[1, 2, 3], [1, -1, -1], [-1, -1, -1], [4, 5, 6]])
    after = np.array([[3, 2, 9], [7, 1, 8], [1, 2, 3], [-1, -1, -1]])
    np.testing.assert_allclose(kept_shares(before, after), [2 / 3, 1, np.nan, np.nan])


def test_ties_and_checks_keep_their_words_and_places() -> None:
    places = snapshots("a", "b")
    group = SharedGroup(("out", "in"), "tied", (2, 2), 16, True, ("in",), True, "why", "one copy",
                        (), 8, 4, 32, 16, ())  # fmt: skip
    nothing = pd.DataFrame()
    audits = [
        Sharing(8, 4, 32, 16, (group,), (), (), nothing, nothing),
        Sharing(8, 8, 32, 32, (), (), (), nothing, nothing),
    ]
    ties = tie_frame(list(zip(places, audits, strict=True)))
    assert ties.to_dict("records") == [
        {"place": 0, "snapshot": "a", "step": 1, "group": "out = in", "verdict": "tied",
         "reason": "why"}
    ]  # fmt: skip
    check = Check("NaN", "fail", "critical", "found", "mend", True, 1, ())
    unseen = Check("ties", "ok", "none", "no model", "", False, 0, ())
    answers = [Checks("a", "a", {}, (check, unseen)), Checks("b", "b", {}, (unseen,))]
    frame = check_frame(list(zip(places, answers, strict=True)))
    assert frame[["place", "check", "status"]].to_numpy().tolist() == [
        [0, "NaN", "fail"], [0, "ties", "not checked"], [1, "ties", "not checked"],
    ]  # fmt: skip
