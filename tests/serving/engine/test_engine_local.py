"""The local engine at work: results, progress, sharing of workers, cancelling."""

from __future__ import annotations

import shutil
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from inspector.errors import CancelledError, CheckpointError, InspectorError, RequestError, WorkerError
from inspector.results.checkpoint import Opened
from inspector.serving.engine.wire import WorkerFunctions
from inspector.settings import read_settings
from inspector.store.manifests.entries import OPENED
from inspector.store.reference import CheckpointRef
from tests.serving.engine.engine_harness import WAIT, A, B, C, answer, demo, eventually, held, running, start_step
from tests.serving.engine.engine_stand_ins import REFUSED, fingerprint_of


@pytest.fixture(scope="module")
def engine():
    with running() as made:
        made.open(demo("demo-a")).result(WAIT)
        yield made


def test_opening_names_the_checkpoint_and_its_worker_answers(engine):
    job = engine.open(demo("demo-a"))

    assert job.result(WAIT) == Opened(A, "demo-a", "demo-a", ("restricted: True", "1"))
    assert (job.status, job.progress.fraction) == ("done", 1.0)
    pid = held(engine)[A].pid
    assert answer(engine, A, "echo", value=[1, "x"]) == {"pid": pid, "name": "demo-a", "uses": 1, "value": [1, "x"]}


def test_the_checkpoint_stays_loaded_between_requests(engine):
    first, second = (answer(engine, A, "echo", value=f"again {i}") for i in range(2))
    assert second["uses"] == first["uses"] + 1
    assert second["pid"] == first["pid"]


def test_each_is_answered_under_the_name_that_it_has_for_who_asks(engine):
    ours, theirs, stored = (
        engine.run(A, "echo", called=called, value="named") for called in (["ours"], ["theirs"], ())
    )
    assert [job.result(WAIT)["name"] for job in (ours, theirs, stored)] == [
        "ours", "theirs", "demo-a",
    ]  # fmt: skip
    assert {job.result()["pid"] for job in (ours, theirs, stored)} == {held(engine)[A].pid}
    assert sorted(job.result()["uses"] for job in (ours, theirs, stored))[-1] >= 3  # loaded once

    assert engine.run(A, "echo", called=["ours"], value="named") is ours
    # A name that the analysis has no use for makes no other question of it.
    assert engine.run(A, "echo", called=["ours", "a second"], value="named") is ours


def test_a_large_frame_comes_through(engine):
    predictions = answer(engine, A, "frame", rows=250_000).predictions

    assert list(predictions["token"].iloc[[0, -1]]) == ["␣0", "␣249999"]
    np.testing.assert_array_equal(predictions["token_id"], np.arange(250_000))
    assert predictions["probability"].dtype == np.float32


def test_progress_is_seen_while_the_job_runs(engine, tmp_path):
    job = start_step(engine, A, tmp_path / "go")

    assert (job.status, job.progress.fraction) == ("running", 0.5)
    assert held(engine)[A].busy
    with pytest.raises(TimeoutError):
        job.result(0)
    (tmp_path / "go").touch()
    assert job.result(WAIT) == "went on"
    assert not held(engine)[A].busy


def test_progress_of_quick_requests_in_a_row_is_not_swallowed(engine, tmp_path):
    (tmp_path / "go").touch()
    answer(engine, A, "step", marker=str(tmp_path / "go"))
    job = start_step(engine, A, tmp_path / "later")
    (tmp_path / "later").touch()
    assert job.result(WAIT) == "went on"


def test_progress_may_come_from_several_threads(engine):
    """As the hub's downloads report it; messages must not run into each other."""
    assert answer(engine, A, "report_from_threads", threads=8, times=50) == "all told"


def test_asking_for_the_same_gives_the_same_job(engine, tmp_path):
    marker = tmp_path / "go"
    job = start_step(engine, A, marker)

    assert engine.run(A, "step", marker=str(marker)) is job
    other = engine.run(A, "step", marker=str(marker), text="other")
    assert other is not job
    assert engine.job(job.id) is job
    marker.touch()
    job.result(WAIT)
    other.result(WAIT)  # the marker goes with the test
    assert engine.run(A, "step", marker=str(marker)) is job
    assert engine.job("unknown") is None


def test_job_ids_cannot_be_guessed(engine):
    ids = {engine.run(A, "echo", value=f"id {i}").id for i in range(5)}
    assert len(ids) == 5
    assert all(len(job_id) >= 22 for job_id in ids)  # 128 bits in base 64


def test_a_refusal_comes_through_word_for_word(engine):
    with pytest.raises(RequestError) as caught:
        answer(engine, A, "refuse")
    assert str(caught.value) == REFUSED


def test_a_failure_is_run_again_when_it_is_asked_again(engine):
    first = engine.run(A, "refuse")
    eventually(lambda: first.status == "failed")
    assert engine.run(A, "refuse") is not first
    assert engine.job(first.id) is first


def test_an_answer_of_another_class_than_annotated_is_named_by_its_function(engine):
    expected = (
        r"^tests\.serving\.engine\.engine_stand_ins:mistake returned str, but .*:mistake is annotated with Mask\.$"
    )
    with pytest.raises(InspectorError, match=expected):
        answer(engine, A, "mistake")
    assert answer(engine, A, "echo", value=1)["value"] == 1


def test_an_unexpected_exception_is_one_sentence_and_a_traceback_in_the_log(engine, caplog):
    pid = answer(engine, A, "echo", value="before")["pid"]
    with pytest.raises(Exception, match="unexpectedly") as caught:
        answer(engine, A, "break_down")

    assert str(caught.value) == (
        "The work failed unexpectedly. Try again; if it fails again, report it with the lines in the server's log."
    )
    eventually(lambda: "KeyError: '/secret/path'" in caplog.text)
    assert "Traceback" in caplog.text
    assert answer(engine, A, "echo", value="after")["pid"] == pid


def test_what_a_worker_prints_goes_to_the_log_without_control_codes(engine, caplog):
    pid = answer(engine, A, "echo", value="printing")["pid"]
    answer(engine, A, "chatter")

    eventually(lambda: f"worker {pid}: to stderr \\x1b[31mred" in caplog.text)


def test_an_unknown_analysis_is_refused_at_once(engine):
    with pytest.raises(RequestError, match="no analysis 'nothing': choose one of echo, frame"):
        engine.run(A, "nothing")


def test_the_worker_has_no_secrets_and_no_network(engine, monkeypatch):
    monkeypatch.setenv("HF_TOKEN", "secret")
    monkeypatch.setenv("DATABASE_PASSWORD", "secret")
    fingerprint = fingerprint_of("demo-environment")  # a new worker, started now
    seen = answer(engine, fingerprint, "environment")

    assert "secret" not in seen.values()
    assert seen["HF_HUB_OFFLINE"] == "1"


def test_a_refused_checkpoint_leaves_no_worker_and_the_others_open(engine):
    with pytest.raises(CheckpointError, match="demo-refused is empty: upload it again"):
        engine.open(demo("demo-refused")).result(WAIT)
    assert len(engine.workers()) == len([w for w in engine.workers() if w.fingerprint])
    assert A in held(engine)


def test_threads_get_their_own_answers(engine):
    answers = {}

    def ask(number):
        for i in range(20):
            value = f"{number}/{i}"
            answers[value] = answer(engine, (A, B)[number % 2], "echo", value=value)

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(answers) == 160
    assert all(got["value"] == value for value, got in answers.items())
    names = {int(value[0]) % 2: got["name"] for value, got in answers.items()}
    assert names == {0: "demo-a", 1: "demo-b"}


def test_an_upload_is_known_by_its_content_afterwards(engine):
    arrived = CheckpointRef("incoming", "0" * 32)
    opened = engine.open(arrived).result(WAIT)

    assert opened.reference == f"upload:{opened.fingerprint}"
    assert engine.open(arrived) is engine.open(CheckpointRef.parse(opened.reference))


def test_a_folder_is_read_again_each_time_by_the_same_worker(engine, tmp_path):
    reference = CheckpointRef("path", str(tmp_path / "folder"))
    first = engine.open(reference)
    opened = first.result(WAIT)
    pid = held(engine)[opened.fingerprint].pid
    second = engine.open(reference)

    assert second is not first
    assert second.result(WAIT) == opened
    assert held(engine)[opened.fingerprint].pid == pid


def test_the_command_line_may_open_any_folder():
    with running(restrict_paths=False) as engine:
        assert engine.open(demo("demo-a")).result(WAIT).warnings[0] == "restricted: False"


def test_a_hub_checkpoint_is_downloaded_online_and_analysed_offline(monkeypatch):
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    with running() as engine:
        opened = engine.open(CheckpointRef("hub", "org/name")).result(WAIT)

        assert opened.warnings[1] == "1"  # HF_HUB_OFFLINE of the worker that read it
        eventually(lambda: list(held(engine)) == [opened.fingerprint])
        assert answer(engine, opened.fingerprint, "environment")["HF_HUB_OFFLINE"] == "1"


def test_the_least_recently_used_worker_makes_room():
    with running(workers=2) as engine:
        answer(engine, A, "echo")
        answer(engine, B, "echo")
        answer(engine, A, "echo", value="again")
        answer(engine, C, "echo")

        assert set(held(engine)) == {A, C}
        answer(engine, B, "echo", value="again")
        assert set(held(engine)) == {B, C}


def test_a_busy_worker_is_waited_for(tmp_path):
    with running(workers=1) as engine:
        busy = start_step(engine, A, tmp_path / "go")
        pid = held(engine)[A].pid
        other = engine.run(B, "echo")
        same = engine.run(A, "echo", value="later")

        assert (other.status, same.status) == ("waiting", "waiting")
        assert other.progress.text == "Waiting for a free worker: 1 are busy"
        assert same.progress.text == "Waiting for an earlier request to this checkpoint"
        assert held(engine)[A].pid == pid
        (tmp_path / "go").touch()
        assert busy.result(WAIT) == "went on"
        assert other.result(WAIT)["name"] == "demo-b"
        assert same.result(WAIT)["name"] == "demo-a"


@pytest.mark.parametrize(("patience", "stays"), [(60.0, True), (0.0, False)])
def test_a_loaded_model_serves_those_who_wait_for_it_within_reason(tmp_path, patience, stays):
    with running(workers=1, patience=patience) as engine:
        start_step(engine, A, tmp_path / "go")
        pid = held(engine)[A].pid
        other = engine.run(B, "echo")
        same = [engine.run(A, "echo", value=i) for i in range(3)]
        (tmp_path / "go").touch()

        assert [job.result(WAIT)["pid"] == pid for job in same] == [stays] * 3
        assert other.result(WAIT)["name"] == "demo-b"


def test_a_waiting_job_can_be_dropped(tmp_path):
    with running(workers=1) as engine:
        busy = start_step(engine, A, tmp_path / "go")
        waiting = engine.run(A, "echo", value="waiting")
        waiting.cancel()

        assert waiting.status == "cancelled"
        with pytest.raises(CancelledError):
            waiting.result(WAIT)
        (tmp_path / "go").touch()
        assert busy.result(WAIT) == "went on"
        assert answer(engine, A, "echo", value="waiting")["uses"] == 1


def test_canceling_ends_the_work_and_the_next_request_works(tmp_path):
    with running() as engine:
        job = start_step(engine, A, tmp_path / "never")
        pid = held(engine)[A].pid
        waiting = engine.run(A, "echo", value="waiting")
        job.cancel()

        assert job.status == "cancelled"
        with pytest.raises(CancelledError):
            job.result(WAIT)
        assert waiting.result(WAIT)["pid"] != pid
        eventually(lambda: not Path(f"/proc/{pid}").exists())
        (tmp_path / "never").touch()
        assert answer(engine, A, "step", marker=str(tmp_path / "never")) == "went on"


def test_finished_work_stays_finished(engine):
    job = engine.run(A, "echo", value="to be cancelled")
    value = job.result(WAIT)
    job.cancel()

    assert (job.status, job.result(0)) == ("done", value)


def test_a_spare_takes_the_next_checkpoint_and_is_replaced():
    with running(spare=True) as engine:
        eventually(lambda: engine.workers()[0].pid)
        (spare,) = (worker.pid for worker in engine.workers())
        assert answer(engine, A, "echo")["pid"] == spare
        eventually(lambda: None in held(engine) and held(engine)[None].pid)
        second = held(engine)[None].pid
        assert answer(engine, B, "echo")["pid"] == second != spare


def test_a_spare_imports_the_slow_modules_while_it_waits_and_survives_a_broken_one(caplog):
    with running(spare=True) as engine:
        eventually(lambda: "No module named 'inspector.no_last_module'" in caplog.text)
        assert "No module named 'inspector.no_such_module'" in caplog.text
        seen = answer(engine, A, "modules")
        assert {"colorsys", "chunk"} <= set(seen)


def test_deleting_a_checkpoint_ends_its_worker_and_forgets_its_results():
    with running() as engine:
        opening = engine.open(demo("demo-a"))
        opening.result(WAIT)
        before = answer(engine, A, "echo")
        answer(engine, B, "echo")
        engine.forget(A)

        assert set(held(engine)) == {B}
        assert engine.open(demo("demo-a")) is not opening
        assert answer(engine, A, "echo")["pid"] != before["pid"]


def test_what_somebody_else_deleted_from_the_store_is_opened_again():
    with running() as engine:
        opening = engine.open(demo("demo-a"))
        opening.result(WAIT)
        assert engine.open(demo("demo-a")) is opening
        shutil.rmtree(read_settings({}).home / OPENED / A)

        again = engine.open(demo("demo-a"))
        assert again is not opening
        again.result(WAIT)
        assert engine.open(demo("demo-a")) is again


def test_releasing_gives_the_memory_back_and_keeps_what_is_known(tmp_path):
    with running() as engine:
        opening = engine.open(demo("demo-a"))
        opening.result(WAIT)
        asked = engine.run(A, "echo")
        before = asked.result(WAIT)
        answer(engine, B, "echo")

        assert engine.release(A)
        eventually(lambda: not Path(f"/proc/{before['pid']}").exists())
        assert set(held(engine)) == {B}
        assert engine.open(demo("demo-a")) is opening
        assert engine.run(A, "echo") is asked
        assert not engine.release(A)
        assert answer(engine, A, "echo", value="anew")["pid"] != before["pid"]


def test_a_checkpoint_at_work_is_not_released(engine, tmp_path):
    job = start_step(engine, A, tmp_path / "go")
    assert not engine.release(A)
    (tmp_path / "go").touch()
    assert job.result(WAIT) == "went on"


def test_closing_ends_everything(tmp_path):
    with running(workers=1, spare=True) as engine:
        busy = start_step(engine, A, tmp_path / "never")
        waiting = engine.run(B, "echo")
        eventually(lambda: all(worker.pid for worker in engine.workers()))
        pids = [worker.pid for worker in engine.workers()]
        engine.close()

        assert (busy.status, waiting.status) == ("cancelled", "cancelled")
        assert engine.workers() == ()
        eventually(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids))
        with pytest.raises(WorkerError, match="shutting down"):
            engine.run(A, "echo")


def test_the_web_side_imports_no_heavy_library():
    program = (
        "import sys, inspector.serving.engine.local\n"
        "heavy = {'torch', 'transformers', 'umap', 'numba', 'sklearn', 'scipy', 'streamlit'}\n"
        "print(sorted(heavy & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("name", ["open", "load_manifest", "checkpoint"])
def test_what_a_worker_imports_exists_and_needs_no_torch(name):
    module, _, function = getattr(WorkerFunctions(), name).partition(":")
    program = (
        f"import sys, {module}\n"
        f"print(callable({module}.{function}), 'torch' in sys.modules, "
        "'transformers' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "False", "False"]
