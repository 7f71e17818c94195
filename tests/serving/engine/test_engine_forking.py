"""Workers are copies of a process that imported the slow libraries: what they share, and what not."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import psutil
import pytest

from inspector.errors import WorkerError
from inspector.sandbox.environment import worker_environment
from inspector.serving.engine.wire import NOW, WARM
from inspector.serving.engine.workers.forking import ForkServerHandle, fork_servers
from inspector.settings import read_settings
from tests.serving.engine.engine_harness import A, B, C, answer, eventually, held, running, start_step

SETTINGS = read_settings({})


@pytest.fixture(autouse=True)
def own_fork_server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Another environment, so that no other test has used its fork server, which imports when it is asked to."""
    monkeypatch.setenv("LC_ALL", f"C.{tmp_path.name}")
    monkeypatch.delattr(fork_servers, "fork")  # of tests/conftest.py, before the class's own


@pytest.fixture
def server():
    made = ForkServerHandle(worker_environment(os.environ, settings=SETTINGS), ["colorsys"])
    yield made
    made.close()


def parent_of(pid: int) -> psutil.Process:
    found = psutil.Process(pid).parent()
    assert found is not None
    return found


def begun(forked):
    forked.begin()
    return forked


def test_the_third_worker_begins_with_what_the_first_two_import_themselves():
    with running() as engine:
        first, second, third = (set(answer(engine, checkpoint, "modules")) for checkpoint in (A, B, C))
        parents = {parent_of(worker.pid).pid for worker in engine.workers()}
    assert len(parents) == 1
    assert os.getpid() not in parents
    assert "chunk" not in first
    assert "chunk" not in second
    assert "chunk" in third


def test_a_worker_holds_its_own_pipe_and_log_alone(tmp_path):
    with running() as engine:
        start_step(engine, A, tmp_path / "never")
        found = answer(engine, B, "descriptors")
    others = [target for name, target in found.items() if int(name) > 2]
    assert sum(target.startswith("socket:") for target in others) == 1, found
    assert {target for target in others if target.startswith("pipe:")} <= {found["2"]}
    assert found["1"] == found["2"]


def test_workers_of_another_environment_have_another_parent(monkeypatch):
    with running() as engine:
        first = parent_of(answer(engine, A, "echo")["pid"])
        monkeypatch.setenv("LC_TIME", "C")
        second = parent_of(answer(engine, B, "echo")["pid"])
        assert answer(engine, B, "environment")["LC_TIME"] == "C"
        assert "LC_TIME" not in answer(engine, A, "environment")
    assert first.pid != second.pid


def test_work_goes_on_without_the_fork_server_and_the_next_worker_gets_another(tmp_path):
    with running() as engine:
        job = start_step(engine, A, tmp_path / "go")
        gone = parent_of(held(engine)[A].pid)
        gone.kill()
        eventually(lambda: not gone.is_running() or gone.status() == psutil.STATUS_ZOMBIE)
        (tmp_path / "go").touch()
        assert job.result(60) == "went on"
        assert answer(engine, B, "echo")["name"] == "demo-b"
        with pytest.raises(WorkerError, match=r"process ended unexpectedly\. Try again"):
            answer(engine, A, "leave")  # nobody is left who knows its exit status


def test_a_process_that_is_killed_before_it_is_there_ends(server):
    parent = parent_of(begun(server.fork(NOW)).pid)
    parent.suspend()
    forked = server.fork(NOW)
    forked.kill()
    parent.resume()
    assert begun(forked).wait() == -signal.SIGKILL
    assert not psutil.pid_exists(forked.pid)


def test_how_a_process_ends_is_known(server):
    forked = begun(server.fork(NOW))
    os.kill(forked.pid, signal.SIGTERM)
    assert forked.wait() == -signal.SIGTERM
    forked.kill()  # nobody else's, whoever has its number now


def test_a_fork_server_ends_with_its_last_child(server):
    forked = begun(server.fork(WARM))
    server.close()
    assert server.alive
    forked.kill()
    assert forked.wait() == -signal.SIGKILL
    eventually(lambda: not server.alive)


def test_a_fork_server_that_cannot_be_started_is_an_error(monkeypatch):
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    with pytest.raises(FileNotFoundError):
        fork_servers.fork(worker_environment(os.environ, settings=SETTINGS), (), NOW)
