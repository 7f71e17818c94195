"""Start an engine on the stand-ins, and wait for what it does."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from inspector.serving.engine.local import LocalEngine
from inspector.serving.engine.protocol import WorkerStatus
from inspector.serving.engine.waiting import PATIENCE_SECONDS
from inspector.settings import read_settings
from inspector.store.reference import CheckpointRef
from tests.serving.engine.engine_stand_ins import CATALOG, FUNCTIONS, fingerprint_of

A, B, C = (fingerprint_of(name) for name in ("demo-a", "demo-b", "demo-c"))
WAIT = 300.0  # seconds until a test gives up: it ends what hangs, and nothing is measured by it


@contextmanager
def running(
    *,
    spare: bool = False,
    functions: Any = FUNCTIONS,
    restrict_paths: bool = True,
    patience: float = PATIENCE_SECONDS,
    **limits: Any,
) -> Iterator[LocalEngine]:
    """An engine on the stand-ins; `limits` are environment variables without their prefix."""
    environ = {f"INSPECTOR_{name.upper()}": str(value) for name, value in limits.items()}
    engine = LocalEngine(
        read_settings(environ),
        spare=spare,
        restrict_paths=restrict_paths,
        catalog=CATALOG,
        functions=functions,
        patience=patience,
    )
    try:
        yield engine
    finally:
        engine.close()


def answer(engine: LocalEngine, fingerprint: str, verb: str, **parameters: Any) -> Any:
    """Ask and wait."""
    return engine.run(fingerprint, verb, **parameters).result(WAIT)


def start_step(engine: LocalEngine, fingerprint: str, marker: Path) -> Any:
    """Start a job that runs until the marker exists, and wait until it is at it."""
    job = engine.run(fingerprint, "step", marker=str(marker))
    eventually(lambda: job.progress.text == "half way")
    return job


def demo(name: str) -> CheckpointRef:
    """The reference of a demo."""
    return CheckpointRef("demo", name)


def held(engine: LocalEngine) -> dict[str | None, WorkerStatus]:
    """The workers by fingerprint; None is the spare's."""
    return {worker.fingerprint: worker for worker in engine.workers()}


def eventually(condition: Callable[[], Any]) -> None:
    """Wait until something is true."""
    end = time.monotonic() + WAIT
    while not condition():
        assert time.monotonic() < end, "it never happened"
        time.sleep(0.005)
