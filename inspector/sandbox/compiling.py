"""Have the code compiled that workers run, in a process that reads no checkpoint."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import threading
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

from inspector.catalog import Analysis
from inspector.sandbox.environment import worker_environment
from inspector.settings import Settings
from inspector.store.files import UNFINISHED, acquire, below, remove_folder
from inspector.store.keeping.compiled import CHECKED, compiled_folder, is_made

COMPILERS = ("numba", "llvmlite")


class Compiler:
    """Starts the modules that compile what analyses run, each when it is first needed."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._lock = threading.Lock()
        self._asked: set[str] = set()
        self._running: list[subprocess.Popen[bytes]] = []

    def start(self, analysis: Analysis) -> None:
        """Compile what an analysis runs, unless that was done; does not wait.

        A worker that needs the code waits for the lock that the process holds while it works. Where
        the store cannot be written, each worker compiles for itself.
        """
        module = analysis.compiled_by
        with self._lock:
            if not module or module in self._asked:
                return
            self._asked.add(module)
            with suppress(OSError):
                self._start(module)

    def close(self) -> None:
        """End what is under way."""
        with self._lock:
            for process in self._running:
                process.kill()
                process.wait()
            self._running.clear()

    def _start(self, module: str) -> None:
        folder, versions = compiled_folder(self._settings.home), versions_of(module)
        if is_made(folder, versions):
            return
        folder.mkdir(parents=True, exist_ok=True)
        lock = acquire(folder)
        if lock is None:  # another server is at it
            return
        try:
            for cut_off in below(folder):
                if UNFINISHED.fullmatch(cut_off.name):
                    remove_folder(cut_off)
            process = subprocess.Popen(
                [sys.executable, "-P", "-m", module, str(folder), versions],
                env=_environment(self._settings),
                pass_fds=(lock,),  # until it ends
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        finally:
            os.close(lock)
        self._running.append(process)


def _environment(settings: Settings) -> dict[str, str]:
    """A worker's, without the server's secrets; but it believes no code that lies there."""
    built = worker_environment(os.environ, settings=settings)
    del built[CHECKED]
    return built


def versions_of(module: str) -> str:
    """What code depends on that a module compiles: the compiler, Python and the sources beside it."""
    digest = hashlib.sha256(sys.version.encode())
    for package in COMPILERS:
        with suppress(PackageNotFoundError):
            digest.update(f"{package} {version(package)}\n".encode())
    spec = find_spec(module)
    for source in sorted(Path(spec.origin).parent.glob("*.py")) if spec and spec.origin else ():
        digest.update(source.read_bytes())
    return digest.hexdigest()
