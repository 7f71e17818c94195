"""Limits of a worker process, and the words for what ended one."""

from __future__ import annotations

import os
import resource
import signal
import sys
from contextlib import suppress
from pathlib import Path

from inspector.errors import WorkerError
from inspector.settings import MB, Settings

# A GPU's driver reserves far more address space than it uses, so that limit is for CPUs alone.
GPU_NODES = ("/dev/nvidiactl", "/dev/kfd", "/dev/dxg")
ADDRESS_SLACK = 8_000 * MB  # torch with UMAP maps 5 GB before it holds anything
FILE_SLACK = 64 * MB
SIGNALS = {
    signal.SIGKILL: "was killed (SIGKILL), perhaps by the system for lack of memory",
    signal.SIGSEGV: "crashed (SIGSEGV), perhaps on a damaged file",
    signal.SIGBUS: "crashed (SIGBUS), perhaps because a file was cut short or the disk is full",
    signal.SIGABRT: "gave up (SIGABRT), perhaps for lack of memory",
    signal.SIGILL: "crashed (SIGILL): a library was built for another processor",
    signal.SIGTERM: "was told to end (SIGTERM)",
}


def apply_limits(settings: Settings) -> None:
    """Limit the calling process; called once, at the start of a worker."""
    _limit(resource.RLIMIT_CORE, 0)
    _limit(resource.RLIMIT_FSIZE, settings.upload_nbytes + FILE_SLACK)
    if sys.platform == "linux":
        if not any(Path(node).exists() for node in GPU_NODES):
            # Files are mapped as well, so this only stops what resident memory cannot show in time.
            _limit(resource.RLIMIT_AS, 2 * settings.worker_nbytes + ADDRESS_SLACK)
        with suppress(OSError):  # the system should end a worker before it ends the server
            Path("/proc/self/oom_score_adj").write_text("800", encoding="ascii")


def memory_error(settings: Settings) -> WorkerError:
    """The sentence for a worker over its memory."""
    return WorkerError(
        f"The work needed more than the {settings.worker_nbytes / MB:,.0f} MB that a worker may "
        "use: set INSPECTOR_WORKER_MB higher, or choose a smaller checkpoint or input."
    )


def time_error(settings: Settings) -> WorkerError:
    """The sentence for a request over its time."""
    return WorkerError(
        f"The work took longer than the {settings.request_seconds:,.0f} seconds that a request "
        "may take: set INSPECTOR_SECONDS higher, or ask for less."
    )


def start_error(error: OSError) -> WorkerError:
    """The sentence for a worker that could not be started."""
    return WorkerError(
        f"No worker process could be started ({os.strerror(error.errno or 0)}): close other "
        "programs, then ask again."
    )


def death_error(exit_code: int) -> WorkerError:
    """The sentence for a worker that ended by itself.

    Args:
        exit_code: As subprocess gives it, a signal's number negated.
    """
    try:
        number = signal.Signals(-exit_code)
        how = SIGNALS.get(number, f"was ended by {number.name}")
    except ValueError:
        how = f"ended unexpectedly (exit status {exit_code})"
    return WorkerError(f"The worker process {how}. Ask again: a new worker takes over.")


def _limit(kind: int, value: int) -> None:
    _, hard = resource.getrlimit(kind)
    if hard != resource.RLIM_INFINITY:
        value = min(value, hard)
    with suppress(OSError, ValueError):  # macOS refuses some of them
        resource.setrlimit(kind, (value, value))
