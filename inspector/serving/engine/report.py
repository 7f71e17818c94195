"""Say which limits are in force, and what the workers of this machine are kept from."""

from __future__ import annotations

import time

from inspector.results.limits import LimitInForce, Restriction, ServerLimits
from inspector.sandbox import limits
from inspector.sandbox.confinement import Confinement
from inspector.sandbox.limits import WATCHED
from inspector.serving.engine.protocol import Engine
from inspector.settings import MB, Settings

POLL_SECONDS = 0.05
WAIT_SECONDS = 60.0  # for a worker to come up
WATCHER = "the server, which checks every 0.1 s"
KERNEL = "the kernel"
STORE = "the store"


def server_limits(settings: Settings, found: Confinement | None) -> ServerLimits:
    """The limits in force.

    Args:
        settings: Of this server.
        found: What a worker said; None: none has yet.
    """
    watched = [_limit(limit.title, limit.allowed(settings), limit.unit, limit.setting, WATCHER) for limit in WATCHED]
    others = (
        (limits.OPENING.title, settings.open_seconds, "s", limits.OPENING.setting, WATCHER),
        (limits.KEPT.title, settings.worker_disk_nbytes / MB, "MB", limits.KEPT.setting, WATCHER),
        ("Concurrent workers", settings.workers, "workers", "INSPECTOR_WORKERS", "the server"),
        ("Open files and connections of the server", limits.open_files(), "files", "ulimit -n", KERNEL),
        ("Open files per worker", settings.worker_files, "files", "INSPECTOR_WORKER_FILES", KERNEL),
        ("Largest file that a worker may write", settings.file_nbytes / MB, "MB", "INSPECTOR_UPLOAD_MB", KERNEL),
        ("Largest upload, unpacked", settings.upload_nbytes / MB, "MB", "INSPECTOR_UPLOAD_MB", STORE),
        ("Store size", settings.store_nbytes / MB, "MB", "INSPECTOR_STORE_MB", STORE),
        ("Uploads of one person", settings.person_nbytes / MB, "MB", "INSPECTOR_PERSON_MB", STORE),
        *(
            [("Uploads in the shared store", settings.shared_nbytes / MB, "MB", "INSPECTOR_SHARED_MB", STORE)]
            if settings.store and settings.shared_nbytes is not None
            else []
        ),
    )
    return ServerLimits(
        limits=(*watched, *(_limit(*each) for each in others)),
        confinement=settings.confinement,
        restrictions=_restrictions(found) if found else (),
        missing=found.missing if found else (),
    )


def confinement_of(engine: Engine, *, wait: bool = False) -> Confinement | None:
    """What the workers of an engine said of themselves; None: none is up.

    Args:
        engine: Has a worker, or a spare.
        wait: True: wait until one is up.
    """
    deadline = time.monotonic() + (WAIT_SECONDS if wait else 0.0)
    while True:
        for worker in engine.workers():
            if worker.confinement:
                return worker.confinement
        if time.monotonic() >= deadline:
            return None
        time.sleep(POLL_SECONDS)


def _restrictions(found: Confinement) -> tuple[Restriction, ...]:
    return (
        Restriction(
            "No network",
            found.network_off,
            "A worker cannot connect to anything, including this machine. A worker that downloads from the hub has "
            "network access until the files have arrived.",
        ),
        Restriction(
            "No other process", found.processes_off, "A worker cannot start a process, or signal or read another one."
        ),
        Restriction(
            "No other file",
            found.files_off,
            "A worker can write only to its own folder. It can read only libraries and the files of the checkpoints "
            "in its requests.",
        ),
    )


def _limit(name: str, value: float, unit: str, setting: str, enforced_by: str) -> LimitInForce:
    whole = int(value) if value == int(value) else value
    return LimitInForce(name, whole, unit, setting, enforced_by)
