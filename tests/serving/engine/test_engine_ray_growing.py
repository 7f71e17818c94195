"""The Ray engine on a cluster that grows with what is asked, as far as its GPUs allow."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from inspector.serving.engine.local import LocalEngine
from inspector.serving.engine.ray.cluster import APPLICATION, REPLICA
from inspector.serving.engine.ray.engine import RayEngine
from inspector.settings import read_settings
from tests.serving.engine.engine_harness import demo
from tests.serving.engine.ray_cluster import ROOT, TEXT, WAIT, ask, cluster_of, patiently, stopped, warm

pytestmark = pytest.mark.cluster

FRACTION = "0.4"  # of the cluster's one GPU: two replicas fit, and a third does not


@pytest.fixture(scope="module")
def engine(tmp_path_factory) -> Iterator[RayEngine]:
    wanted = {
        "INSPECTOR_RAY_MIN": "1", "INSPECTOR_RAY_MAX": "3", "INSPECTOR_RAY_CPUS": "0.5",
        "INSPECTOR_RAY_GPUS": FRACTION, "INSPECTOR_RAY_REQUESTS": "2",
    }  # fmt: skip
    with cluster_of(tmp_path_factory.mktemp("ray"), wanted) as (_, report):
        assert (report["nodes"], report["replicas"], report["gpus"]) == (1, 1, 1)
        made = RayEngine(read_settings(os.environ))
        try:
            yield made
        finally:
            made.close()


COUNT = f"""
import json, sys
from inspector.serving.engine.ray.cluster import connected
with connected():
    from ray import serve
    for _ in sys.stdin:
        status = serve.status().applications[{APPLICATION!r}].deployments[{REPLICA!r}]
        print(json.dumps({{str(state): n for state, n in status.replica_states.items() if n}}), flush=True)
"""


@pytest.fixture
def replicas(engine) -> Iterator[Callable[[], dict[str, int]]]:
    """How many there are, by what they are doing; another process asks, for Ray ends who loses its cluster."""
    asker = subprocess.Popen(
        [sys.executable, "-c", COUNT], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert asker.stdin
    assert asker.stdout
    asked, said = asker.stdin, asker.stdout

    def count() -> dict[str, int]:
        asked.write("\n")
        asked.flush()
        return json.loads(said.readline())

    yield count
    asked.close()
    asker.wait(WAIT)
    said.close()


def test_replicas_come_as_more_is_asked_and_share_a_gpu(engine, replicas, tmp_path):
    bert = engine.open(demo("demo-bert")).result(WAIT).fingerprint
    worker = warm(engine, bert, "first")
    assert replicas() == {"RUNNING": 1}
    told = Path(f"/proc/{worker.pid}/environ").read_bytes().split(b"\0")
    assert b"CUDA_VISIBLE_DEVICES=0" in told  # the GPU that Ray gave the replica, and no other
    texts = [f"{TEXT} {number}" for number in range(6)]
    with stopped(worker):
        jobs = [engine.run(bert, "predict", text=text) for text in texts]
        patiently(lambda: replicas().get("RUNNING") == 2)
        # The first replica keeps the two that it has taken; the second answers all the others.
        patiently(lambda: sum(job.settled for job in jobs) == len(jobs) - 2)
        patiently(lambda: replicas() == {"RUNNING": 2, "STARTING": 1})
    local = LocalEngine(read_settings({"INSPECTOR_HOME": str(tmp_path)}), spare=False)
    try:
        local.open(demo("demo-bert")).result(WAIT)
        for text, job in zip(texts, jobs, strict=True):
            mine, theirs = job.result(WAIT), ask(local, bert, text=text)
            assert mine.masks[0].predictions.equals(theirs.masks[0].predictions)
    finally:
        local.close()


def test_many_checkpoints_are_checked_on_the_cluster(engine):
    told = []
    for kind in ("ray", "local"):
        done = subprocess.run(
            [sys.executable, "-m", "inspector", "check", "demo-bert", "demo-gpt2", "--json"],
            cwd=ROOT, env={**os.environ, "INSPECTOR_ENGINE": kind},
            capture_output=True, text=True, check=False, timeout=WAIT,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        told.append(json.loads(done.stdout))
    assert told[0] == told[1]
    assert told[0]["counts"] == {"done": 2, "refused": 0, "failed": 0}
