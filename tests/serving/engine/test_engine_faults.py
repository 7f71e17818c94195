"""Workers that die, grow or take too long; the server goes on."""

from __future__ import annotations

import errno
import io
import mmap
import os
import signal
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import psutil
import pytest

from inspector.errors import InspectorError, WorkerError
from inspector.sandbox import limits
from inspector.serving.engine.jobs import LocalJob
from inspector.serving.engine.wire import OpenRequest, RunRequest
from inspector.serving.engine.workers import logs
from inspector.serving.engine.workers.forking import fork_servers
from inspector.serving.engine.workers.process import longest_answer
from tests.serving.engine.engine_harness import WAIT, A, B, answer, demo, eventually, held, running, start_step

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def engine():
    with running() as made:
        yield made


@pytest.mark.parametrize(
    ("verb", "parameters", "words"),
    [
        ("die", {"number": 0 + signal.SIGKILL}, r"was killed \(SIGKILL\), perhaps .* lack of memory"),
        ("die", {"number": 0 + signal.SIGSEGV}, r"crashed \(SIGSEGV\)"),
        ("leave", {}, r"ended unexpectedly \(exit status 3\)"),
        ("panic", {}, r"failed unexpectedly\. Try again"),
        ("ask_too_much", {}, r"more memory than the 12,000 MB .* INSPECTOR_WORKER_MB"),
        ("smuggle", {}, r"sent an invalid reply"),
        ("flood", {}, r"sent an invalid reply"),
    ],
)
def test_a_dead_worker_fails_its_job_and_the_next_request_works(engine, verb, parameters, words):
    pid = answer(engine, A, "echo", value=[verb, parameters, "before"])["pid"]
    with pytest.raises(WorkerError, match=words):
        answer(engine, A, verb, **parameters)
    assert answer(engine, A, "echo", value=[verb, parameters, "after"])["pid"] != pid


def test_a_worker_that_prints_without_end_does_not_fill_the_log(caplog):
    lines = [b"line %d\n" % number for number in range(5 * logs.MOST_LINES)]
    logs.copy_log(io.BytesIO(b"".join(lines)), "worker", 7)
    copied = [text for text in caplog.messages if text.startswith("worker 7: ")]  # others' threads log meanwhile
    assert logs.MOST_LINES <= len(copied) < 2 * logs.MOST_LINES
    assert copied[0] == "worker 7: line 0"
    left = len(lines) - len(copied) + 1
    assert copied[-1] == f"worker 7: {left} more lines were left out"


def test_what_waits_for_a_dying_worker_is_done_by_the_next(engine, tmp_path):
    marker = tmp_path / "go"
    dying = engine.run(A, "die", number=signal.SIGKILL, marker=str(marker))
    eventually(lambda: dying.progress.text == "about to die")
    queued = [engine.run(A, "echo", value=f"queued {i}") for i in range(3)]
    assert {job.status for job in queued} == {"waiting"}
    marker.touch()

    assert [job.result(WAIT)["value"] for job in queued] == ["queued 0", "queued 1", "queued 2"]
    assert dying.status == "failed"


def test_an_idle_worker_that_is_killed_is_replaced(engine):
    pid = answer(engine, A, "echo", value="before the kill")["pid"]
    os.kill(pid, signal.SIGKILL)
    eventually(lambda: A not in held(engine))
    assert answer(engine, A, "echo", value="after the kill")["pid"] != pid


def test_another_checkpoint_does_not_notice(engine, tmp_path):
    job = start_step(engine, B, tmp_path / "go")
    with pytest.raises(WorkerError):
        answer(engine, A, "die", number=signal.SIGKILL)
    (tmp_path / "go").touch()
    assert job.result(WAIT) == "went on"


def test_a_worker_over_its_memory_is_ended():
    with running(worker_mb=300) as engine:
        pid = answer(engine, A, "echo")["pid"]
        with pytest.raises(WorkerError, match=r"more memory than the 300 MB .* INSPECTOR_WORKER_MB higher"):
            answer(engine, A, "grow", nbytes=4_000_000_000)
        assert answer(engine, A, "echo", value="again")["pid"] != pid


@pytest.mark.parametrize(("device", "named"), [("cpu", True), ("spread", True), ("auto", False), ("stream", False)])
def test_a_model_that_was_put_into_memory_by_hand_is_told_of_the_way_that_fits(device, named):
    with running(worker_mb=300) as engine, pytest.raises(WorkerError, match=r"more memory than the 300 MB") as caught:
        answer(engine, A, "grow", nbytes=4_000_000_000, device=device)
    assert ("choose the device auto or stream, which reads a model" in str(caught.value)) is named


def test_the_tables_of_a_processs_pages_are_its_own_memory():
    """A process reads a little of very much that it maps: the kernel then holds no page of it, but all the tables."""
    nbytes, step = 8 << 30, 2 << 20  # a table has 4,096 bytes for each step
    before = limits.own_memory(psutil.Process())
    with mmap.mmap(-1, nbytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, prot=mmap.PROT_READ) as mapped:
        mapped.madvise(mmap.MADV_NOHUGEPAGE)
        assert not any(mapped[place] for place in range(0, nbytes, step))
        assert limits.own_memory(psutil.Process()) - before > nbytes // step * 3_000


def test_pages_of_mapped_files_are_not_a_workers_own_memory(tmp_path, monkeypatch):
    looked, judge = [], limits.exceeded

    def exceeded(*given, **named):
        looked.append(given)
        return judge(*given, **named)

    monkeypatch.setattr(limits, "exceeded", exceeded)
    # On a disk, where the virtual environment is: what is mapped of a folder in memory is memory.
    with tempfile.TemporaryDirectory(dir=sys.prefix) as folder, running(worker_mb=300, confinement="off") as engine:
        large = Path(folder) / "large"
        with large.open("wb") as file:
            file.truncate(600_000_000)
        pid = answer(engine, A, "echo")["pid"]
        job = engine.run(A, "look_through", path=str(large), watched=str(tmp_path / "watched"))
        eventually(lambda: job.progress.text == "mapped")
        assert psutil.Process(pid).memory_info().rss > 600_000_000
        before = len(looked)
        eventually(lambda: len(looked) > before + 1)  # the server has looked at the worker since
        (own,) = (worker.memory_nbytes for worker in engine.workers())
        assert own < 300_000_000
        (tmp_path / "watched").touch()
        assert job.result(WAIT) == -(-600_000_000 // 4096)


def test_a_request_over_its_time_is_ended(tmp_path):
    with running(seconds=3) as engine:
        job = engine.run(A, "step", marker=str(tmp_path / "never"))
        with pytest.raises(WorkerError, match=r"longer than the limit of 3 seconds: .* INSPECTOR_SECONDS"):
            job.result(WAIT)
        assert answer(engine, A, "echo")["name"] == "demo-a"


def test_time_spent_waiting_does_not_count(tmp_path):
    with running(seconds=3, workers=1) as engine:
        busy = engine.run(A, "step", marker=str(tmp_path / "never"))
        waiting = engine.run(B, "echo")
        with pytest.raises(WorkerError):
            busy.result(WAIT)
        assert waiting.result(WAIT)["name"] == "demo-b"


def test_a_dead_spare_does_not_matter():
    with running(spare=True) as engine:
        eventually(lambda: engine.workers()[0].pid)
        (spare,) = (worker.pid for worker in engine.workers())
        os.kill(spare, signal.SIGKILL)
        eventually(lambda: not engine.workers())
        assert engine.open(demo("demo-a")).result(WAIT).fingerprint == A


def test_a_spare_that_cannot_be_started_does_not_matter(monkeypatch):
    """Whoever watches the limits, and starts spares, goes on."""
    tried = threading.Event()

    def refuse(*_: object) -> None:
        tried.set()
        raise OSError(errno.ENOMEM, "no memory")

    with running(spare=True) as engine:
        with monkeypatch.context() as context:
            context.setattr(fork_servers, "fork", refuse)
            answer(engine, A, "echo")  # by the spare
            assert tried.wait(WAIT)
        assert answer(engine, B, "echo")["name"] == "demo-b"
        eventually(lambda: None in held(engine))


def test_a_worker_that_cannot_be_started_is_one_sentence(monkeypatch):
    with running() as engine:
        monkeypatch.setattr(sys, "executable", "/nowhere/python")
        with pytest.raises(WorkerError, match=r"No worker process could be started \(No such"):
            answer(engine, A, "echo")
        monkeypatch.undo()
        assert answer(engine, A, "echo")["name"] == "demo-a"


def test_an_answer_that_would_be_too_long_is_not_read(engine):
    with pytest.raises(WorkerError, match="exceeded the limit of 500 MB"):
        answer(engine, A, "announce", nbytes=500_000_001)
    assert answer(engine, A, "echo")["name"] == "demo-a"


def test_a_worker_that_nobody_asks_has_little_to_say(engine):
    assert answer(engine, A, "announce", nbytes=1_000_001, asked=False) == "later"
    eventually(lambda: any("exceeded the limit of 1 MB" in each.reason for each in engine.endings()))
    assert answer(engine, A, "echo")["name"] == "demo-a"


@pytest.mark.parametrize(("needs", "longest"), [("names", 100), ("rows", 200), ("model", 500)])
def test_how_long_an_answer_may_be_follows_from_what_its_question_needs(needs, longest):
    asked = LocalJob("key", RunRequest(A, "f", {}, needs=needs), keep=False, stop=lambda job: None)
    opening = LocalJob("key", OpenRequest(demo("demo-a")), keep=False, stop=lambda job: None)
    found = longest_answer((asked,)), longest_answer((opening,)), longest_answer(())
    assert found == (longest * 1_000_000, 20_000_000, 1_000_000)


def test_a_killed_server_leaves_no_workers(tmp_path):
    program = (
        "import pathlib, sys\n"
        "from tests.serving.engine.engine_harness import *\n"
        "with running(spare=True) as engine:\n"
        "    start_step(engine, A, pathlib.Path(sys.argv[1]))\n"
        "    eventually(lambda: len(engine.workers()) == 1 and held(engine)[A].busy)\n"
        "    engine.run(B, 'echo').result(60)\n"
        "    print(*(worker.pid for worker in engine.workers()), flush=True)\n"
        "    eventually(lambda: False)\n"
    )
    server = subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path / "never")], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    with server:
        assert server.stdout is not None
        pids = [int(pid) for pid in server.stdout.readline().split()]
        assert len(pids) == 2
        server.kill()
    eventually(lambda: not any(map(psutil.pid_exists, pids)))


def test_no_error_names_a_path_of_the_server(engine):
    for verb in ("break_down", "panic", "leave", "smuggle"):
        with pytest.raises(InspectorError) as caught:
            answer(engine, A, verb)
        assert "/" not in str(caught.value)
        assert "\n" not in str(caught.value)
