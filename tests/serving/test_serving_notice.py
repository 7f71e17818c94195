"""A server that takes no new work before it is restarted, and what it tells everybody."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

from inspector.errors import WorkerError
from inspector.serving import notice
from inspector.serving.engine import local
from inspector.serving.engine.batch import Batch
from inspector.serving.engine.local import LocalEngine
from inspector.serving.notice import DRAINING, MOST_CHARACTERS, drain, show
from inspector.serving.readiness import faults
from inspector.settings import read_settings
from inspector.store.origins.snapshots import Snapshot
from inspector.store.reference import CheckpointRef
from tests.serving.engine.engine_harness import demo, held, running, start_step


@pytest.fixture(autouse=True)
def nothing_told_afterwards() -> Iterator[None]:
    yield
    notice._shown[:] = [notice.Notice()]


def test_what_is_known_is_answered_and_what_runs_goes_on_but_nothing_new_begins(tmp_path):
    settings = read_settings({"INSPECTOR_HOME": str(tmp_path)})
    engine = LocalEngine(settings, spare=False)
    try:
        opened = engine.open(CheckpointRef.parse("demo-bert")).result(120)
        known = engine.run(opened.fingerprint, "overview").result(120)
        runs = engine.run(opened.fingerprint, "tokenize", texts=["a cat"])
        drain(True, "ada")
        assert faults(settings) == (DRAINING,)
        runs.result(120)
        assert runs.status == "done"
        assert engine.run(opened.fingerprint, "overview").result(120) is known
        for ask in (
            lambda: engine.run(opened.fingerprint, "tokenize", texts=["a dog"]),
            lambda: engine.open(CheckpointRef.parse("demo-gpt2")),
        ):
            with pytest.raises(WorkerError, match="takes no new work"):
                ask()
        drain(False, "ada")
        assert faults(settings) == ()
        engine.run(opened.fingerprint, "tokenize", texts=["a dog"]).result(120)
    finally:
        engine.close()


def test_a_message_is_bounded_and_an_empty_one_ends_it():
    show("  " + "x" * 9_999, "ada")
    assert notice.notice().message == "x" * MOST_CHARACTERS
    show(" ", "ada")
    assert notice.notice() == notice.Notice()


def test_a_series_that_has_begun_is_asked_to_its_end_and_no_other_one_begins(tmp_path):
    engine = LocalEngine(read_settings({"INSPECTOR_HOME": str(tmp_path)}), spare=False)
    snapshots = [Snapshot(name, CheckpointRef.parse(name), None) for name in ("demo-bert", "demo-gpt2")]
    asked = []

    def ask(snapshot, opened, wait):
        drain(True, "ada")  # after the series has begun, before its questions are asked
        asked.append(snapshot.name)
        return wait(engine.run(opened.fingerprint, "tokenize", texts=["a cat"]))

    try:
        entries = list(Batch(engine, snapshots, ask, workers=1).answers())
        assert [entry.status for entry in entries] == ["done", "done"], entries
        assert asked == ["demo-bert", "demo-gpt2"]
        with pytest.raises(WorkerError, match="takes no new work"):
            Batch(engine, snapshots, ask, workers=1)
    finally:
        engine.close()


def test_what_a_worker_was_asked_is_told_when_it_ends(tmp_path, monkeypatch):
    told = []
    monkeypatch.setattr(local, "record", lambda action, **facts: told.append((action, facts)))
    with running(home=tmp_path / "home") as engine:
        opened = engine.open(demo("demo-a")).result(120)
        job = start_step(engine, opened.fingerprint, tmp_path / "never")
        os.kill(held(engine)[opened.fingerprint].pid, signal.SIGKILL)
        with pytest.raises(WorkerError):
            job.result(120)
    (found,) = [facts for action, facts in told if action == "worker ended"]
    assert (found["question"], found["cause"]) == ("step", "crash")


def test_an_upload_opened_whole_is_the_one_that_was_opened(tmp_path):
    with running(home=tmp_path / "home") as engine:
        opened = engine.open(demo("demo-a")).result(120)
        assert engine.open(demo("demo-a"), whole=True).result(120) is opened
