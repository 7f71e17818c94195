"""Nobody keeps all workers busy where several users ask."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import copy_context
from functools import partial
from pathlib import Path

import pytest

from inspector.errors import CancelledError
from inspector.serving.engine.shares import SessionTab, ask_as, asker
from tests.serving.engine.engine_harness import WAIT, A, B, C, answer, demo, eventually, running, start_step
from tests.serving.engine.engine_stand_ins import fingerprint_of

D = fingerprint_of("demo-d")


@contextmanager
def asking_as(name: str, tab: SessionTab | None = None) -> Iterator[None]:
    before = asker()
    ask_as(name, tab)
    yield
    ask_as(before)


def test_one_users_work_leaves_a_worker_to_others(tmp_path: Path):
    with running(workers=3) as engine:
        with asking_as("mallory"):
            busy = [start_step(engine, each, tmp_path / "go") for each in (A, B)]
            more = engine.run(C, "echo", value="third")
            assert more.status == "waiting"
            assert more.progress.text == "Waiting for your earlier requests to finish"
        with asking_as("ada"):
            assert answer(engine, D, "echo")["name"] == "demo-d"
        assert [job.status for job in (*busy, more)] == ["running", "running", "waiting"]
        (tmp_path / "go").touch()
        assert [job.result(WAIT) for job in busy] == ["went on"] * 2
        assert more.result(WAIT)["value"] == "third"


def test_checkpoints_that_never_open_hold_up_their_user_alone():
    with running(workers=2, open_seconds=600) as engine:
        with asking_as("mallory"):
            endless = engine.open(demo("demo-endless"))
            eventually(lambda: endless.progress.text == "reading demo-endless")
            others = [engine.open(demo(f"demo-more{n}")) for n in range(3)]
        with asking_as("ada"):
            assert engine.open(demo("demo-a")).result(WAIT).fingerprint == A
            assert answer(engine, A, "echo")["name"] == "demo-a"
        assert {job.status for job in others} == {"waiting"}
        endless.cancel()
        assert {job.result(WAIT).name for job in others} == {f"demo-more{n}" for n in range(3)}


def test_what_another_user_asks_for_as_well_does_not_wait(tmp_path: Path):
    with running(workers=2) as engine:
        with asking_as("mallory"):
            start_step(engine, A, tmp_path / "go")
            job = engine.run(B, "echo")
            assert job.status == "waiting"
        with asking_as("ada"):
            assert engine.run(B, "echo") is job
        assert job.result(WAIT)["name"] == "demo-b"
        (tmp_path / "go").touch()


def test_the_user_with_the_fewest_busy_workers_comes_first(tmp_path: Path):
    with running(workers=4) as engine:
        with asking_as("mallory"):
            for name in ("demo-a", "demo-b"):
                start_step(engine, fingerprint_of(name), tmp_path / "never")
            third = start_step(engine, C, tmp_path / "go")
        with asking_as("ada"):
            start_step(engine, D, tmp_path / "never")
        with asking_as("mallory"):
            greedy = engine.run(fingerprint_of("demo-e"), "step", marker=str(tmp_path / "never"))
        with asking_as("eve"):
            modest = engine.run(fingerprint_of("demo-f"), "echo")
        (tmp_path / "go").touch()
        assert third.result(WAIT) == "went on"
        assert modest.result(WAIT)["name"] == "demo-f"
        eventually(lambda: greedy.progress.text == "half way")


def test_who_is_alone_may_use_every_worker(tmp_path: Path):
    with running(workers=2) as engine:
        jobs = [start_step(engine, each, tmp_path / "go") for each in (A, B)]
        (tmp_path / "go").touch()
        assert [job.result(WAIT) for job in jobs] == ["went on"] * 2


def test_threads_ask_in_the_name_of_who_started_them():
    found = []
    with asking_as("ada"):
        thread = threading.Thread(target=copy_context().run, args=(lambda: found.append(asker()),))
    thread.start()
    thread.join()
    assert found == ["ada"]
    assert asker() == ""


def test_work_goes_on_until_the_last_tab_that_waits_for_it_cancels(tmp_path: Path):
    first, second = SessionTab("1"), SessionTab("2")
    with running() as engine:
        with asking_as("ada", first):
            job = start_step(engine, A, tmp_path / "go")
        with asking_as("ada", second):
            assert engine.job(job.id) is job
        with asking_as("ada", first):
            job.cancel()
            assert job.status == "running"
        with asking_as("eve", SessionTab("3")):  # of whom nobody asked it
            job.cancel()
            assert job.status == "running"
        with asking_as("ada", second):
            job.cancel()
            assert job.status == "cancelled"
            with pytest.raises(CancelledError):
                job.result(WAIT)


def test_what_one_user_cancels_another_still_gets(tmp_path: Path):
    with running() as engine:
        with asking_as("mallory", SessionTab("1")):
            shared = start_step(engine, A, tmp_path / "go")
        with asking_as("ada", SessionTab("2")):
            assert engine.run(A, "step", marker=str(tmp_path / "go")) is shared
        with asking_as("mallory", SessionTab("1")):
            shared.cancel()
        (tmp_path / "go").touch()
        assert shared.result(WAIT) == "went on"


def test_a_tab_that_was_closed_waits_for_nothing(tmp_path: Path):
    open_tabs = {"1", "2"}
    first, second = (SessionTab(name, partial(open_tabs.__contains__, name)) for name in ("1", "2"))
    with running() as engine:
        with asking_as("ada", first):
            job = start_step(engine, A, tmp_path / "never")
        with asking_as("eve", second):
            engine.run(A, "step", marker=str(tmp_path / "never"))
            open_tabs.remove("1")
            job.cancel()
            assert job.status == "cancelled"
