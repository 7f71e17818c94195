"""A Ray cluster of the tests' own: its nodes, and how its engine is asked."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from inspector.serving.engine.jobs import LocalJob
from inspector.serving.engine.protocol import WorkerStatus
from inspector.serving.engine.ray.engine import RayEngine
from tests.serving.engine.engine_harness import WAIT, eventually

ROOT = Path(__file__).parents[3]
STARTS = 3
TEXT = "the dog is an [MASK] ."
QUESTIONS: dict[str, dict[str, Any]] = {  # those without parameters are not listed
    "whatif": {"change": "untie"},
    "classes": {"text": "the dog"},
    "embeddings": {"token": "dog"},
    "project": {"method": "pca"},
    "padding": {"text": "the dog"},
    "lens": {"text": "the dog is"},
    "ladder": {"text": "the dog is"},
    "predict": {"text": TEXT},
    "plausibility": {"text": "the dog is"},
    "contrast": {"first": TEXT, "second": "the cat is an [MASK] ."},
    "similarity": {"texts": ["the dog", "the cat"], "pooling": "mean"},
    "heads": {"text": "the dog", "pair": "the cat"},
    "pretrain": {"text": "the dog is an animal", "pair": "the cat is an animal"},
    "tokenize": {"texts": ["the dog", "cat"]},
    "compare": {"other": "demo-gpt2"},
    "base": {"other": "demo-gpt2"},
}


@contextmanager
def cluster_of(folder: Path, wanted: Mapping[str, str], *options: str) -> Iterator[tuple[Nodes, dict[str, Any]]]:
    """A cluster with the inspector on it, and what `inspector cluster` says of it.

    Args:
        folder: For all that it keeps.
        wanted: Settings of whoever starts the cluster, the replicas and the server.
        options: Of `ray_nodes`.
    """
    common = {
        "INSPECTOR_ENGINE": "ray",
        "INSPECTOR_HOME": str(folder / "home"),
        "INSPECTOR_STORE": f"file://{folder / 'shared'}",
        "INSPECTOR_WORKERS": "1",
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN": "0123456789abcdef" * 2,
        "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0",
        # How often Serve counts requests and tells its controller: each 3 and 10 s otherwise.
        "RAY_SERVE_AUTOSCALING_METRIC_RECORD_INTERVAL_FACTOR": "0.01",
        "RAY_SERVE_HANDLE_AUTOSCALING_METRIC_PUSH_INTERVAL_S": "0.2",
        # As many as Ray allows a replica of one processor: sums then add up in the same order.
        "OMP_NUM_THREADS": "1",
    }
    with pytest.MonkeyPatch.context() as patch:
        for name, value in (common | dict(wanted)).items():
            patch.setenv(name, value)
        (folder / "shared").mkdir()
        made = Nodes(folder / "home of the second node", *options)
        try:
            patch.setenv("RAY_ADDRESS", made.address)
            deployed = subprocess.run(
                [sys.executable, "-m", "inspector", "cluster", "--json"],
                cwd=ROOT, capture_output=True, text=True, check=False, timeout=WAIT,
            )  # fmt: skip
            assert deployed.returncode == 0, deployed.stderr
            yield made, json.loads(deployed.stdout)
        finally:
            made.close()


class Nodes:
    """The cluster's processes, and where it is."""

    def __init__(self, second_home: Path, *options: str) -> None:
        self.second_home = second_home
        found = {}
        for _ in range(STARTS):  # Ray's own processes wait for each other, but not for long
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.serving.engine.ray_nodes", *options, str(second_home)],
                cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            )  # fmt: skip
            assert self._process.stdin
            assert self._process.stdout
            self._asked, self._said = self._process.stdin, self._process.stdout
            if line := self._said.readline():
                found = json.loads(line)
                break
        self.address: str = found["address"]
        self.first, self.second = (*(node[:8] for node in found["nodes"]), "")[:2]

    def kill_second(self) -> None:
        if self.second:
            self._asked.write(f"{self.second}\n")
            self._asked.flush()
            assert self._said.readline().strip() == self.second
            self.second = ""

    def close(self) -> None:
        self._asked.close()
        self._process.wait()


def ask(engine: Any, fingerprint: str, verb: str = "predict", **parameters: Any) -> Any:
    return engine.run(fingerprint, verb, **(parameters or QUESTIONS[verb])).result(WAIT)


def patiently(condition: Callable[[], Any]) -> Any:
    """Wait until something is true, and return what is."""
    found: list[Any] = []

    def met() -> bool:
        found[:] = [condition()]
        return bool(found[0])

    eventually(met)
    return found[0]


def holder(engine: RayEngine, fingerprint: str) -> WorkerStatus | None:
    """The worker of a replica that holds a checkpoint, and is still there."""
    held = (w for w in engine.workers() if w.fingerprint == fingerprint and w.node)
    return next((worker for worker in held if psutil.pid_exists(worker.pid)), None)


@contextmanager
def stopped(worker: WorkerStatus) -> Iterator[None]:
    """Have a worker do nothing for a while: whatever it is asked stays under way."""
    os.kill(worker.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        if psutil.pid_exists(worker.pid):
            os.kill(worker.pid, signal.SIGCONT)


def warm(engine: RayEngine, fingerprint: str, text: str) -> WorkerStatus:
    """Ask something, so that a replica holds the checkpoint; returns the worker that does."""
    ask(engine, fingerprint, "tokenize", texts=[text])
    return patiently(lambda: holder(engine, fingerprint))


def busy_with(engine: RayEngine, worker: WorkerStatus, verb: str, fingerprint: str) -> tuple[str, LocalJob]:
    """A question that a stopped worker is asked, and its text; another may answer some before."""
    for number in range(20):
        text = f"{TEXT} {number}"
        job = engine.run(fingerprint, verb, text=text)
        patiently(lambda: job.settled or at_work(engine, worker))  # noqa: B023 - called at once
        if not job.settled:
            return text, job
    raise AssertionError(f"worker {worker.pid} was never asked")


def at_work(engine: RayEngine, worker: WorkerStatus) -> bool:
    return any(each.pid == worker.pid and each.busy for each in engine.workers())
