"""The Ray engine on a real cluster of two nodes: the same answers, whatever dies.

The tests run in the order of the file: the second node is killed on the way, and those after that
have one replica.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import psutil
import pytest

from inspector.catalog import CATALOG
from inspector.errors import CancelledError, NotInCheckpointError, RequestError
from inspector.serving.engine.local import LocalEngine
from inspector.serving.engine.ray.cluster import NO_TOKEN
from inspector.serving.engine.ray.engine import RayEngine
from inspector.settings import Settings, read_settings
from tests.models import alike
from tests.serving.engine.engine_harness import demo
from tests.serving.engine.ray_cluster import (
    QUESTIONS,
    ROOT,
    TEXT,
    WAIT,
    Nodes,
    ask,
    busy_with,
    cluster_of,
    holder,
    patiently,
    stopped,
    warm,
)
from tests.store.store_builders import small_checkpoint, upload_of

pytestmark = pytest.mark.cluster

PASSING = {"seconds", "milliseconds", "memory_nbytes", "batch", "kept", "note"}  # run by run


@pytest.fixture(scope="module")
def nodes(tmp_path_factory) -> Iterator[Nodes]:
    wanted = {
        "INSPECTOR_RAY_MIN": "2", "INSPECTOR_RAY_MAX": "2", "INSPECTOR_RAY_REQUESTS": "2",
        "INSPECTOR_RAY_QUEUE": "1",
    }  # fmt: skip
    with cluster_of(tmp_path_factory.mktemp("ray"), wanted, "--second") as (made, report):
        assert (report["nodes"], report["replicas"], report["token"]) == (2, 2, True)
        yield made


@pytest.fixture(scope="module")
def engine(nodes) -> Iterator[RayEngine]:
    made = RayEngine(read_settings(os.environ))
    try:
        yield made
    finally:
        made.close()


@pytest.fixture(scope="module")
def own(tmp_path_factory) -> Settings:
    """Settings of the local engine, which shares nothing with the cluster."""
    home = tmp_path_factory.mktemp("home of the local engine")
    return read_settings({"INSPECTOR_HOME": str(home)})


@pytest.fixture(scope="module")
def local(own) -> Iterator[LocalEngine]:
    made = LocalEngine(own, spare=False)
    try:
        yield made
    finally:
        made.close()


@pytest.fixture(scope="module")
def bert(engine, local) -> str:
    return opened(engine, local, "demo-bert")


@pytest.fixture(scope="module")
def gpt2(engine, local) -> str:
    return opened(engine, local, "demo-gpt2")


def opened(engine, local, name: str) -> str:
    mine, theirs = (each.open(demo(name)).result(WAIT) for each in (engine, local))
    assert mine == theirs
    return mine.fingerprint


def same(one: Any, other: Any) -> None:
    """Two results are equal to the last digit, but for what differs in every run."""
    alike.same(one, other, leaving=PASSING)


@pytest.mark.parametrize("verb", sorted(CATALOG.keys() - {"adapter", "verify-merge", "experts"}))  # of no demo
def test_every_analysis_answers_as_on_one_machine(engine, local, bert, gpt2, verb):
    asked = QUESTIONS.get(verb, {})
    parameters = {k: gpt2 if v == "demo-gpt2" else v for k, v in asked.items()}
    there, here = (each.run(bert, verb, **parameters) for each in (engine, local))

    same(there.result(WAIT), here.result(WAIT))


def test_errors_cross_the_cluster_as_they_are(engine, local, bert, gpt2):
    for fingerprint, verb, parameters, kind in (
        (bert, "predict", {"text": "no mask here"}, RequestError),
        (bert, "embeddings", {"token": "no such token"}, RequestError),
        (gpt2, "predict", {"text": TEXT}, NotInCheckpointError),
        (bert, "verify-merge", {"adapter": gpt2, "merged": gpt2}, NotInCheckpointError),
    ):
        said = []
        for each in (engine, local):
            with pytest.raises(kind) as raised:
                ask(each, fingerprint, verb, **parameters)
            said.append(str(raised.value))
        assert said[0] == said[1]


def test_progress_of_the_worker_is_seen(engine, bert):
    worker = warm(engine, bert, "progress")
    said: list[str] = []
    with stopped(worker):
        job = engine.run(bert, "whatif", change="clone")
        job.watch(lambda: said.append(job.progress.text))
        patiently(lambda: job.status == "running")
    job.result(WAIT)

    ours = {"Starting", "Waiting", "Waiting for a replica of the cluster", "Done"}
    assert set(said) - ours, said
    assert said[-1] == "Done"


def test_workers_are_confined_and_tell_their_node(engine, nodes, bert):
    worker = warm(engine, bert, "where")

    assert worker.name == "demo-bert"
    assert worker.node in {nodes.first, nodes.second}
    assert worker.confinement
    environment = psutil.Process(worker.pid).environ()
    assert not [name for name in environment if name.startswith("RAY_")]


def test_an_upload_reaches_the_other_node_through_the_store(engine, local, nodes, own, tmp_path):
    ours = read_settings(os.environ)
    for seed in range(12):  # until one is asked over there
        folder = small_checkpoint(tmp_path / f"mini {seed}", seed=seed)
        mine, theirs = (
            each.open(upload_of(settings, folder, prefix="mini/")).result(WAIT)
            for each, settings in ((engine, ours), (local, own))
        )
        assert mine == theirs
        there, here = (each.run(mine.fingerprint, "sharing") for each in (engine, local))
        same(there.result(WAIT), here.result(WAIT))
        if patiently(lambda: holder(engine, mine.fingerprint)).node == nodes.second:  # noqa: B023
            break
    else:
        raise AssertionError("the second node was never asked")
    assert (nodes.second_home / "checkpoints" / mine.fingerprint).is_dir()


@pytest.mark.parametrize("token", ["fedcba9876543210" * 2, ""])
def test_a_wrong_token_is_refused_in_its_own_sentence(engine, nodes, token):
    environ = {**os.environ, "RAY_AUTH_TOKEN": token, "HOME": "/nonexistent"}
    asked = subprocess.run(
        [sys.executable, "-m", "inspector", "cluster"],
        cwd=ROOT, env=environ, capture_output=True, text=True, check=False, timeout=WAIT,
    )  # fmt: skip
    assert asked.returncode == 2, asked.stderr
    assert asked.stderr.splitlines()[-1] == NO_TOKEN


def test_canceling_reaches_the_worker(engine, local, bert):
    worker = warm(engine, bert, "cancel")
    with stopped(worker):
        _, job = busy_with(engine, worker, "predict", bert)
        job.cancel()
        with pytest.raises(CancelledError):
            job.result(WAIT)
        patiently(lambda: not psutil.pid_exists(worker.pid))

    same(ask(engine, bert, text=TEXT), ask(local, bert, text=TEXT))


def test_a_replica_that_dies_at_work_is_replaced_and_the_question_answered(engine, local, bert):
    worker = warm(engine, bert, "replica")
    _, replica, *_ = (parent.pid for parent in psutil.Process(worker.pid).parents())  # beyond the fork server
    with stopped(worker):
        text, job = busy_with(engine, worker, "predict", bert)
        os.kill(replica, signal.SIGKILL)
        answer = job.result(WAIT)

    same(answer, ask(local, bert, text=text))
    assert holder(engine, bert) != worker


def test_a_node_that_dies_at_work_is_done_without(engine, local, nodes, bert, gpt2):
    patiently(lambda: {nodes.first, nodes.second} <= {w.node for w in engine.workers()})
    there, held = None, {}
    for number in range(20):  # until one of them is there
        held = {each: warm(engine, each, f"node {number}") for each in (bert, gpt2)}
        # Where both went to the same replica, the second has taken the first one's place.
        alive = [each for each, worker in held.items() if psutil.pid_exists(worker.pid)]
        there = next((each for each in alive if held[each].node == nodes.second), None)
        if there:
            break
    assert there
    with stopped(held[there]):
        text, job = busy_with(engine, held[there], "lens", there)
        nodes.kill_second()
        answer = job.result(WAIT)

    same(answer, ask(local, there, "lens", text=text))


@pytest.fixture
def lone(nodes) -> None:
    """One node is left, and one replica."""
    nodes.kill_second()


def test_two_checkpoints_share_the_one_worker_of_a_replica(engine, local, lone, bert, gpt2):
    worker = warm(engine, bert, "contend")
    with stopped(worker):
        first = engine.run(bert, "lens", text="the cat")
        patiently(lambda: first.status == "running")
        second = engine.run(gpt2, "lens", text="the cat")
        patiently(lambda: second.progress.text == "Waiting for a free worker: 1 are busy")
    for fingerprint, job in ((bert, first), (gpt2, second)):
        same(job.result(WAIT), ask(local, fingerprint, "lens", text="the cat"))


def test_a_full_queue_says_how_many_wait_and_tries_again(engine, local, lone, bert):
    worker = warm(engine, bert, "queue")
    texts = [f"the {animal} is an [MASK] ." for animal in ("cat", "cow", "bird", "fish", "horse")]
    with stopped(worker):
        jobs = [engine.run(bert, "predict", text=text) for text in texts]
        full = patiently(lambda: [j for j in jobs if j.progress.text.startswith("The queue is")])
        assert full[0].progress.text.startswith("The queue is full; waiting here: ")
        patiently(lambda: sum(job.status == "running" for job in jobs) == 2)
        patiently(lambda: {"The queue is full; waiting here: 3 requests. Retrying"}
                  <= {job.progress.text for job in jobs})  # fmt: skip
        assert sum(job.status == "waiting" for job in jobs) == 3
    for text, job in zip(texts, jobs, strict=True):
        same(job.result(WAIT), ask(local, bert, text=text))


def test_memory_is_given_back_on_the_cluster(engine, lone, bert):
    worker = warm(engine, bert, "release")

    assert engine.release(bert)
    patiently(lambda: not psutil.pid_exists(worker.pid))
    assert not engine.release(bert)
