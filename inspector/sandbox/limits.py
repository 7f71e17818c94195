"""Limits of a worker process, and the sentences that say why one ended."""

from __future__ import annotations

import os
import resource
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from inspector.errors import InspectorError, WorkerError
from inspector.settings import MB, Settings
from inspector.store.disk import disk_sentence

# A GPU's driver reserves far more address space than it uses, so that limit is for CPUs alone.
GPU_NODES = ("/dev/nvidiactl", "/dev/kfd", "/dev/dxg")
ADDRESS_SLACK = 8_000 * MB  # torch with UMAP maps 5 GB before it holds anything
SIGNALS = {
    signal.SIGKILL: "was killed (SIGKILL), perhaps by the system for lack of memory",
    signal.SIGSEGV: "crashed (SIGSEGV), perhaps on a damaged file",
    signal.SIGBUS: "crashed (SIGBUS), perhaps because a file was cut short or the disk is full",
    signal.SIGABRT: "aborted (SIGABRT), perhaps for lack of memory",
    signal.SIGILL: "crashed (SIGILL): a library was built for another processor",
    signal.SIGSYS: "was killed because it made a forbidden system call (SIGSYS)",
    signal.SIGTERM: "was terminated (SIGTERM)",
}
SERVER_FILES = 65_536  # and connections
TOKENIZER_SECONDS = 20  # of processor time that one call of a checkpoint's tokenizer may take
TEMPLATE_SECONDS = 5  # the same of its chat template, which Python stops after 2 unless native code is at work
ENDED = {
    signal.SIGPROF: f"The checkpoint's tokenizer took more than {TOKENIZER_SECONDS} seconds of processor time: shorten "
    "the text, or compare the tokenizer's files with their source.",
    signal.SIGVTALRM: f"The checkpoint's chat template took more than {TEMPLATE_SECONDS} seconds of processor time: "
    "compare it with its source.",
}
# What torch's allocator for the CPU says; it raises no error of a kind of its own.
NO_MEMORY = ("DefaultCPUAllocator: ", "std::bad_alloc")
NO_THREAD = "can't start new thread"
FORBIDDEN = (
    "The request tried something that the worker sandbox forbids: using the network, starting a process, or opening a "
    "file outside the store. Report it with the lines in the server's log; for a checkpoint that you trust, "
    "INSPECTOR_CONFINEMENT=off allows it."
)


@dataclass(frozen=True, slots=True)
class Usage:
    """What a worker uses."""

    memory_nbytes: int  # its own: pages of files that it maps can be dropped at any time
    cpu_seconds: float  # processor time of the request, in all threads
    threads: int
    seconds: float  # since the request was begun


@dataclass(frozen=True, slots=True)
class Limit:
    """One limit that the server watches; a worker that exceeds it is ended."""

    title: str
    setting: str
    unit: str
    allowed: Callable[[Settings], float]  # in the unit
    used: Callable[[Usage], float]  # in the unit
    passed: str  # the sentence's start; {} is what is allowed
    instead: str  # what a person can do who may not change the setting


WATCHED = (
    Limit(
        "Worker memory",
        "INSPECTOR_WORKER_MB",
        "MB",
        lambda settings: settings.worker_nbytes / MB,
        lambda usage: usage.memory_nbytes / MB,
        "The request needed more memory than the {} MB that a worker may use",
        "choose a smaller checkpoint or input",
    ),
    Limit(
        "Request time",
        "INSPECTOR_SECONDS",
        "s",
        lambda settings: settings.request_seconds,
        lambda usage: usage.seconds,
        "The request took longer than the limit of {} seconds",
        "ask for less",
    ),
    Limit(
        "Processor time of a request",
        "INSPECTOR_CPU_SECONDS",
        "s",
        lambda settings: settings.cpu_seconds,
        lambda usage: usage.cpu_seconds,
        "The request took more processor time than the limit of {} seconds",
        "ask for less",
    ),
    Limit(
        "Worker threads",
        "INSPECTOR_WORKER_THREADS",
        "threads",
        lambda settings: settings.worker_threads,
        lambda usage: usage.threads,
        "The request started more threads than the limit of {}",
        "set OMP_NUM_THREADS lower",
    ),
)
MEMORY, TIME, CPU, THREADS = WATCHED
STREAMING = ("", "auto", "stream")  # devices with which a model that does not fit is streamed, or none runs
STREAM = "choose the device auto or stream, which reads a model that does not fit a block at a time, "
KEPT = Limit(
    "Worker files",
    "INSPECTOR_WORKER_DISK_MB",
    "MB",
    lambda settings: settings.worker_disk_nbytes / MB,
    lambda usage: 0.0,
    "The worker's files exceeded the limit of {} MB",
    "choose a smaller checkpoint",
)  # looked at on its own: it takes longer
GB_SECONDS = 10.0  # of processor time to unpack and hash a gigabyte
OPENING = Limit(
    "Processor time to open a checkpoint",
    "INSPECTOR_OPEN_SECONDS",
    "s",
    lambda settings: settings.open_seconds,
    lambda usage: usage.cpu_seconds,
    "Opening the checkpoint took more processor time than the limit of {} seconds",
    "check that it is a model's checkpoint",
)


def apply_limits(settings: Settings) -> None:
    """Limit the calling process; called once, at the start of a worker."""
    _limit(resource.RLIMIT_CORE, 0)
    _limit(resource.RLIMIT_FSIZE, settings.file_nbytes)
    _limit(resource.RLIMIT_NOFILE, settings.worker_files)
    if sys.platform == "linux":
        if not any(Path(node).exists() for node in GPU_NODES):
            # Files are mapped as well, so this only stops what resident memory cannot show in time.
            # The files of a large checkpoint come on top once they are known (`admit_files`).
            _limit(resource.RLIMIT_AS, 2 * settings.worker_nbytes + ADDRESS_SLACK, final=False)
        with suppress(OSError):  # the system should end a worker before it ends the server
            Path("/proc/self/oom_score_adj").write_text("800", encoding="ascii")


def raise_open_files() -> None:
    """Let a server have as many files and connections open as the system allows it, within reason."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = SERVER_FILES if hard == resource.RLIM_INFINITY else min(hard, SERVER_FILES)
    if soft != resource.RLIM_INFINITY and soft < most:
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def open_files() -> int:
    """How many files and connections the calling process may have open."""
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def admit_files(nbytes: int) -> None:
    """Raise the address-space limit by the size of files that will be mapped.

    The kernel reads and drops their pages as needed, and resident memory stays watched. A system
    without such a limit needs nothing.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    if soft != resource.RLIM_INFINITY:
        most = soft + nbytes if hard == resource.RLIM_INFINITY else min(soft + nbytes, hard)
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_AS, (most, hard))


def usage_of(pid: int, *, since: float, cpu_before: float) -> Usage:
    """What a process uses for a request; nothing once it is gone.

    Args:
        since: time.monotonic() when the request was begun.
        cpu_before: Processor seconds of the process then.
    """
    try:
        process = psutil.Process(pid)
        return Usage(
            memory_nbytes=own_memory(process),
            cpu_seconds=cpu_seconds_of(pid) - cpu_before,
            threads=process.num_threads(),
            seconds=time.monotonic() - since,
        )
    except psutil.Error:
        return Usage(0, 0.0, 0, 0.0)


def cpu_seconds_of(pid: int) -> float:
    """Processor time of a process since it was started; 0 when it is gone."""
    try:
        times = psutil.Process(pid).cpu_times()
    except psutil.Error:
        return 0.0
    return times.user + times.system


def own_memory(process: psutil.Process) -> int:
    """Bytes of a process that are in memory and in no file: those it shares with others too.

    Pages of mapped files are left out where the system tells them apart: it drops them as needed. The tables by which
    a process finds its pages count.
    """
    try:
        lines = Path(f"/proc/{process.pid}/status").read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:  # not Linux, or gone
        return process.memory_info().rss
    counted = [line.split()[1] for line in lines if line.startswith(("RssAnon:", "RssShmem:", "VmPTE:"))]
    return 1024 * sum(map(int, counted)) if counted else process.memory_info().rss


def exceeded(usage: Usage, settings: Settings, *, opening: int | None = None, device: str = "") -> WorkerError | None:
    """The sentence for a worker that takes more than it may; None: it does not.

    Args:
        usage: Of its request.
        settings: The limits.
        opening: Bytes that it may have to unpack, fetch or hash, while it opens a checkpoint.
        device: That a model was asked to run on; "" where none runs.
    """
    if opening is not None and usage.cpu_seconds > settings.open_seconds + GB_SECONDS * opening / 1e9:
        return limit_error(OPENING, settings)
    for limit in WATCHED:
        if limit.used(usage) > limit.allowed(settings):
            return limit_error(limit, settings, device=device)
    return None


def limit_error(limit: Limit, settings: Settings, *, device: str = "") -> WorkerError:
    """The sentence for a limit that was passed: which one, how to raise it, and what would do without.

    Args:
        device: That a model was asked to run on; "" where none runs.
    """
    passed = limit.passed.format(f"{limit.allowed(settings):,.0f}")
    whole = limit is MEMORY and device not in STREAMING
    return WorkerError(f"{passed}: {STREAM if whole else ''}set {limit.setting} higher, or {limit.instead}.")


def cause_of(error: WorkerError) -> str:
    """The setting of the limit that a sentence of `limit_error` tells of; "crash" where another sentence does."""
    told = str(error)
    limits = (*WATCHED, KEPT, OPENING)
    return next((each.setting for each in limits if told.startswith(each.passed.partition("{}")[0])), "crash")


def explain(error: BaseException, settings: Settings, *, device: str = "") -> InspectorError | None:
    """The sentence for an error that a limit or the confinement caused; None: neither did."""
    text = str(error)
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
        return limit_error(MEMORY, settings, device=device)
    if isinstance(error, RuntimeError) and any(words in text for words in NO_MEMORY):
        return limit_error(MEMORY, settings, device=device)
    if isinstance(error, RuntimeError) and NO_THREAD in text:
        return limit_error(THREADS, settings)
    if isinstance(error, PermissionError) and settings.confinement != "off":
        return WorkerError(FORBIDDEN)
    sentence = disk_sentence(error, settings) if isinstance(error, OSError) else None
    return WorkerError(sentence) if sentence else None


def start_error(error: OSError) -> WorkerError:
    """The sentence for a worker that could not be started."""
    return WorkerError(
        f"No worker process could be started ({os.strerror(error.errno or 0)}): close other programs, then try again."
    )


def death_error(exit_code: int | None) -> WorkerError:
    """The sentence for a worker that ended by itself.

    Args:
        exit_code: As subprocess gives it, a signal's number negated; None: nobody knows it.
    """
    try:
        number = signal.Signals(-(exit_code or 0))
        if number in ENDED:
            return WorkerError(ENDED[number])
        how = SIGNALS.get(number, f"was ended by {number.name}")
    except ValueError:
        how = "ended unexpectedly" + (f" (exit status {exit_code})" if exit_code is not None else "")
    return WorkerError(f"The worker process {how}. Try again: a new worker takes over.")


def _limit(kind: int, value: int, *, final: bool = True) -> None:
    _, hard = resource.getrlimit(kind)
    if hard != resource.RLIM_INFINITY:
        value = min(value, hard)
    with suppress(OSError, ValueError):  # macOS refuses some of them
        resource.setrlimit(kind, (value, value if final else hard))
