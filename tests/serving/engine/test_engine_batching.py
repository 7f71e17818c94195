"""Jobs that wait for the same analysis of the same checkpoint are answered at once."""

from __future__ import annotations

import random
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from inspector.errors import CancelledError, CheckpointError, RequestError, WorkerError
from inspector.results.checkpoint import Opened
from inspector.serving.encoding import DecodeError
from inspector.serving.engine.jobs import LocalJob
from inspector.serving.engine.local import LocalEngine
from inspector.serving.engine.waiting import MAX_BATCH, Waiting
from inspector.serving.engine.wire import Answers, Failure, OpenRequest, RunRequest, read_outcomes
from inspector.store.reference import CheckpointRef
from tests.families import random_model, save_checkpoint
from tests.serving.engine.engine_harness import WAIT, A, B, C, answer, eventually, held, running, start_step
from tests.serving.engine.engine_stand_ins import REFUSED


@pytest.fixture(scope="module")
def engine():
    with running() as made:
        yield made


class Queue:
    """Holds a checkpoint's worker at a first job while others come to wait for it."""

    def __init__(self, engine, folder: Path, fingerprint: str = A) -> None:
        self.engine, self.fingerprint = engine, fingerprint
        self.marker = folder / f"{fingerprint} may go"
        self.jobs: list[LocalJob] = []
        self.first = start_step(engine, fingerprint, self.marker)

    def ask(self, value: Any, **parameters: Any) -> LocalJob:
        job = self.engine.run(self.fingerprint, "note", value=value, **parameters)
        assert job.status == "waiting"
        self.jobs.append(job)
        return job

    def go(self) -> None:
        self.marker.touch()

    def results(self) -> list[Any]:
        self.go()
        return [job.result(WAIT) for job in self.jobs]


def test_a_request_that_finds_the_worker_idle_is_alone_at_once(engine, tmp_path):
    answer(engine, A, "echo", value="alone: warm up")
    first = engine.run(A, "note", value="alone", marker=str(tmp_path / "go"))

    assert first.status == "running"
    others = [engine.run(A, "note", value=["alone", i]) for i in range(3)]
    assert [job.status for job in others] == ["waiting"] * 3
    (tmp_path / "go").touch()
    assert first.result(WAIT)["batch"] == 1
    assert [job.result(WAIT)["batch"] for job in others] == [3, 3, 3]


def test_those_that_wait_are_answered_at_once_each_by_its_own_in_order(engine, tmp_path):
    queue = Queue(engine, tmp_path)
    values = [1, True, "1", [1], {"text": "a [MASK]", "k": 5}, None]
    for value in values:
        queue.ask(value, marker=str(tmp_path / "noted"))
    queue.go()
    eventually(lambda: {job.progress.text for job in queue.jobs} == {"noting"})

    assert {job.status for job in queue.jobs} == {"running"}
    (tmp_path / "noted").touch()
    found = queue.results()
    assert [(each["value"], each["place"]) for each in found] == list(zip(values, range(6), strict=True))
    assert [type(each["value"]) for each in found] == [type(value) for value in values]
    assert {(each["batch"], each["name"]) for each in found} == {(6, "demo-a")}
    assert len({each["uses"] for each in found}) == 1
    assert len({job.nbytes for job in queue.jobs}) == 1


def test_a_batch_has_its_largest_size(engine, tmp_path):
    queue = Queue(engine, tmp_path)
    for value in range(MAX_BATCH + 6):
        queue.ask(["many", value])

    assert [each["batch"] for each in queue.results()] == [MAX_BATCH] * MAX_BATCH + [6] * 6


def test_other_analyses_and_other_checkpoints_are_not_mixed_in(tmp_path):
    with running(workers=1) as engine:
        queue = Queue(engine, tmp_path)
        jobs = []
        for value in range(4):
            queue.ask(value)
            jobs.append(engine.run(A, "echo", value=value))
            jobs.append(engine.run(B, "note", value=value))

        assert [(each["batch"], each["name"]) for each in queue.results()] == [(4, "demo-a")] * 4
        found = [job.result(WAIT) for job in jobs]
        assert [each["name"] for each in found] == ["demo-a", "demo-b"] * 4
        assert [each["value"] for each in found] == [0, 0, 1, 1, 2, 2, 3, 3]
        assert [each.get("batch") for each in found] == [None, 4] * 4
        assert len({each["uses"] for each in found[::2]}) == 4


def test_those_who_call_it_by_other_names_are_not_mixed_in(engine, tmp_path):
    queue = Queue(engine, tmp_path)
    names = ("ours", "theirs") * 3
    jobs = [engine.run(A, "note", called=[name], value=i) for i, name in enumerate(names)]
    queue.ask("last")
    queue.results()

    found = [job.result(WAIT) for job in jobs]
    assert [(each["name"], each["value"]) for each in found] == list(zip(names, range(6), strict=True))
    assert {each["batch"] for each in found} == {3}


def test_a_refusal_of_one_is_its_own(engine, tmp_path):
    queue = Queue(engine, tmp_path)
    before, refused, after = (
        queue.ask(["refusal", i], trouble=trouble) for i, trouble in enumerate([None, "refused", None])
    )
    queue.go()

    with pytest.raises(RequestError) as caught:
        refused.result(WAIT)
    assert str(caught.value) == REFUSED
    assert [job.result(WAIT)["batch"] for job in (before, after)] == [3, 3]


def test_a_refusal_that_is_raised_is_for_all(engine, tmp_path):
    queue = Queue(engine, tmp_path)
    jobs = [queue.ask(["no head", i], trouble="no head") for i in range(3)]
    before = answer_after(queue, "before")

    for job in jobs:
        with pytest.raises(RequestError, match="shorten it"):
            job.result(WAIT)
    assert answer(engine, A, "echo", value="no head, after")["uses"] == before["uses"] + 1


def answer_after(queue: Queue, value: str) -> Any:
    """Let the queue go and ask what comes after it."""
    job = queue.engine.run(queue.fingerprint, "echo", value=[str(queue.marker), value])
    queue.go()
    return job.result(WAIT)


@pytest.mark.parametrize(
    ("trouble", "words"),
    [
        ("killed", r"was killed \(SIGKILL\)"),
        ("broken", r"failed unexpectedly"),
        ("panic", r"failed unexpectedly"),
        ("too much", r"more memory than the 12,000 MB"),
        ("too little memory", r"too little memory left"),
        ("smuggled", r"sent an invalid reply"),
        ("of another class", r"sent an invalid reply"),
        ("forged", r"sent an invalid reply"),
        ("cannot be sent", r"failed unexpectedly"),
        ("short", r"sent an unexpected reply"),
    ],
)
def test_only_the_one_that_brings_the_worker_down_has_failed(engine, tmp_path, trouble, words):
    queue = Queue(engine, tmp_path)
    first = queue.ask([trouble, 0])
    guilty = queue.ask([trouble, 1], trouble=trouble)
    last = queue.ask([trouble, 2])
    queue.go()

    with pytest.raises(Exception, match=words):
        guilty.result(WAIT)
    assert guilty.status == "failed"
    found = [job.result(WAIT) for job in (first, last)]
    assert [each["value"] for each in found] == [[trouble, 0], [trouble, 2]]
    together = 3 if trouble == "too little memory" else 1  # told of one request, not of the batch
    assert [each["batch"] for each in found] == [together] * 2


def test_a_batch_over_its_time_is_run_one_by_one(tmp_path):
    with running(seconds=4) as engine:
        queue = Queue(engine, tmp_path)
        first, guilty, last = (queue.ask(i, trouble=trouble) for i, trouble in enumerate([None, "endless", None]))
        queue.go()

        assert [job.result(WAIT)["value"] for job in (first, last)] == [0, 2]
        with pytest.raises(WorkerError, match="longer than the limit of 4 seconds"):
            guilty.result(WAIT)


def test_canceling_one_of_a_batch_leaves_the_others_at_work(engine, tmp_path):
    queue = Queue(engine, tmp_path)
    stopped, other = (queue.ask(["cancel", i], marker=str(tmp_path / "noted")) for i in range(2))
    queue.go()
    eventually(lambda: other.progress.text == "noting")
    pid = held(engine)[A].pid
    stopped.cancel()

    assert (stopped.status, other.status) == ("cancelled", "running")
    with pytest.raises(CancelledError):
        stopped.result(WAIT)
    (tmp_path / "noted").touch()
    found = other.result(WAIT)
    assert (found["pid"], found["batch"]) == (pid, 2)
    assert stopped.status == "cancelled"
    assert held(engine)[A].pid == pid
    assert answer(engine, A, "note", value=["cancel", 0])["batch"] == 1


def test_canceling_the_last_of_a_batch_ends_the_work(engine, tmp_path):
    queue = Queue(engine, tmp_path)
    jobs = [queue.ask(["cancel all", i], trouble="endless") for i in range(2)]
    queue.go()
    eventually(lambda: jobs[0].progress.text == "noting")
    pid = held(engine)[A].pid
    for job in jobs:
        assert Path(f"/proc/{pid}").exists()
        job.cancel()

    eventually(lambda: not Path(f"/proc/{pid}").exists())
    assert [job.status for job in jobs] == ["cancelled"] * 2


def test_what_was_cancelled_is_not_run_again_with_the_others(engine, tmp_path):
    queue = Queue(engine, tmp_path)
    marker = str(tmp_path / "noted")
    stopped = queue.ask(["once", 0], trouble="killed", marker=marker)
    other = queue.ask(["once", 1])
    queue.go()
    eventually(lambda: other.progress.text == "noting")
    stopped.cancel()
    Path(marker).touch()

    assert other.result(WAIT)["batch"] == 1
    assert stopped.status == "cancelled"


def test_deleting_a_checkpoint_cancels_the_whole_batch(tmp_path):
    with running() as engine:
        queue = Queue(engine, tmp_path)
        jobs = [queue.ask(i, trouble="endless") for i in range(3)]
        queue.go()
        eventually(lambda: jobs[0].progress.text == "noting")
        engine.forget(A)

        assert [job.status for job in jobs] == ["cancelled"] * 3
        assert not held(engine)


def test_fifty_threads_get_what_each_would_get_alone(tmp_path):
    """Whatever the order, the batches and the dying workers: each answer is the oracle's."""
    found: dict[tuple[int, int], tuple[Any, Any, LocalJob]] = {}
    with running(workers=3) as engine:
        queues = [Queue(engine, tmp_path, fingerprint) for fingerprint in (A, B)]

        def ask(thread: int) -> None:
            chance = random.Random(thread)
            for i in range(6):
                trouble = chance.choices([None, "refused", "killed"], [90, 8, 2])[0]
                parameters: dict[str, Any] = {"value": [chance.randrange(10), chance.randrange(30)]}
                if trouble:
                    parameters["trouble"] = trouble
                fingerprint = chance.choice([A, B, C])
                job = engine.run(fingerprint, "note", **parameters)
                if chance.random() < 0.05:
                    job.cancel()
                found[thread, i] = (told(job), expected(fingerprint, parameters), job)

        threads = [threading.Thread(target=ask, args=(thread,)) for thread in range(50)]
        for thread in threads:
            thread.start()
        for queue in queues:
            queue.go()
        for thread in threads:
            thread.join()

    assert len(found) == 300
    wrong = {key: pair for key, (*pair, _) in found.items() if pair[0] not in (pair[1], "stopped")}
    assert wrong == {}
    told_of = Counter(type(got).__name__ if isinstance(got, tuple) else got
                      for got, _, _ in found.values())  # fmt: skip
    assert {"tuple", REFUSED} <= set(told_of)
    assert told_of["tuple"] > 200
    sizes = [job.result(0)["batch"] for _, _, job in found.values() if job.status == "done"]
    assert 1 < max(sizes) <= MAX_BATCH


def test_predictions_answered_together_are_the_models_own(tmp_path, settings):
    """Whole: processes, pipe and model; the truth is transformers, one text at a time."""
    model = random_model("BertForMaskedLM")
    folder = save_checkpoint(model, tmp_path / "model")
    texts = [" ".join(["w3", "w5", "w7"][i % 3 :]) + f" [MASK] w{i}" for i in range(9)]
    engine = LocalEngine(settings, restrict_paths=False, spare=False)
    try:
        opened = engine.open(CheckpointRef("path", str(folder))).result(WAIT)
        jobs = [engine.run(opened.fingerprint, "predict", text=text, k=1 + i)
                for i, text in enumerate(texts)]  # fmt: skip
        refused = engine.run(opened.fingerprint, "predict", text="no mask")
        found = [job.result(WAIT) for job in jobs]
        with pytest.raises(RequestError, match=r"no \[MASK\]"):
            refused.result(WAIT)
    finally:
        engine.close()

    assert found[0].batch == 1
    assert {each.batch for each in found[1:]} == {8}
    for k, each in enumerate(found, start=1):
        ids = torch.tensor([each.token_ids])
        (mask,) = each.masks
        with torch.inference_mode():
            truth = model(ids).logits[0, mask.position].softmax(dim=0)
        best = truth.topk(k)
        assert mask.predictions["token_id"].tolist() == best.indices.tolist()
        np.testing.assert_allclose(mask.predictions["probability"], best.values, rtol=1e-4)


def told(job: LocalJob) -> Any:
    """What a job gives, in short."""
    try:
        result = job.result(WAIT)
    except CancelledError:
        return "stopped"
    except RequestError as error:
        return str(error)
    except WorkerError as error:
        return "killed" if "SIGKILL" in str(error) else str(error)
    return result["name"], result["value"]


def expected(fingerprint: str, parameters: dict[str, Any]) -> Any:
    """What it should give."""
    name = {A: "demo-a", B: "demo-b", C: "demo-c"}[fingerprint]
    answers = {None: (name, parameters["value"]), "refused": REFUSED, "killed": "killed"}
    return answers[parameters.get("trouble")]


def job_of(key: Any, *, fingerprint: str = "ab", batch: str | None = "m:many") -> LocalJob:
    request = RunRequest(fingerprint, "m:one", {"key": key}, batch)
    return LocalJob(key, request, keep=True, stop=lambda job: None)


def test_the_queue_takes_those_that_go_together_in_order_of_arrival():
    waiting = Waiting()
    jobs = [
        job_of(0),
        job_of(1, batch=None),
        job_of(2),
        job_of(3, fingerprint="cd"),
        job_of(4, batch=None),
        job_of(5, batch="m:other"),
        job_of(6),
    ]
    for job in jobs:
        waiting.add(job)

    assert [job.key for job in waiting.take(jobs[0])] == [0, 2, 6]
    assert [job.key for job in waiting] == [1, 3, 4, 5]
    assert [job.key for job in waiting.take(jobs[1])] == [1]


def test_what_is_put_back_waits_in_its_old_place_and_runs_alone():
    waiting = Waiting()
    jobs = [job_of(key) for key in range(4)]
    for job in jobs:
        waiting.add(job)
    for job in waiting.take(jobs[0]):
        job.start(4)
    late = job_of("late")
    for job in (late, jobs[2], jobs[0]):
        waiting.add(job)
    for job in (jobs[0], jobs[2]):
        job.put_back()

    assert [job.key for job in waiting] == [0, 2, "late"]
    assert [job.key for job in waiting.take(jobs[0])] == [0]
    assert [job.key for job in waiting.take(late)] == ["late"]


RUN, OPEN = RunRequest("ab", "m:f", {}), OpenRequest(CheckpointRef("demo", "demo-a"))
OPENED = Opened("ab" * 32, "demo-a", "demo-a", ())


@pytest.mark.parametrize(
    ("message", "requests"),
    [
        (Answers.of((1,)), [RUN, RUN]),
        (Answers.of((1, 2, 3)), [RUN, RUN]),
        (Answers.of(()), [RUN]),
        (OPENED, [OPEN]),
        (RUN, [RUN]),
        ("text", [RUN]),
    ],
)
def test_an_answer_that_does_not_fit_is_nobodys(message, requests):
    outcomes = read_outcomes(message, requests)

    assert [type(each) for each in outcomes] == [WorkerError] * len(requests)
    assert "sent an unexpected reply" in str(outcomes[0])


def test_each_request_has_its_value_or_its_error():
    one, other = read_outcomes(Answers.of((1, Failure("CheckpointError", "It has gone."))), [RUN, RUN])
    assert one == 1
    assert (type(other), str(other)) == (CheckpointError, "It has gone.")
    assert read_outcomes(Answers.of((OPENED,)), [OPEN]) == [OPENED]
    for answers, requests in ((Answers.of((1, OPENED)), [RUN, RUN]), (Answers.of((1,)), [OPEN])):
        with pytest.raises(DecodeError):
            read_outcomes(answers, requests)
    whole = read_outcomes(Failure("RequestError", "No."), [RUN, RUN])
    assert [(type(each), str(each)) for each in whole] == [(RequestError, "No.")] * 2
