"""Start the app as a user does, on a free port, with a store of its own, for every browser of this machine."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread

import psutil

ROOT = Path(__file__).parents[2]
WORKER = "inspector.serving.engine.workers.forkserver"  # in the command line of a worker, and of what it is forked from
START_SECONDS = 120
BAD_LOG = re.compile(
    r"^.*Traceback.*\n(?:[ \t].*\n)*.*|^.*(?:\bERROR\b|\bCRITICAL\b|Uncaught|Exception|Warning:).*", re.MULTILINE
)


@dataclass(frozen=True)
class Server:
    """A running app."""

    url: str
    process: subprocess.Popen[bytes]
    log: Path
    started: float  # time.monotonic() before the process was started

    def complaints(self) -> list[str]:
        """What no healthy server writes into its log: such a line, and a traceback to its end."""
        return [passage[0] for passage in BAD_LOG.finditer(self.log.read_text())]

    def workers(self) -> list[psutil.Process]:
        """Its worker processes."""
        return [child for server in self._fork_servers() for child in server.children()]

    def _fork_servers(self) -> Iterator[psutil.Process]:
        for child in psutil.Process(self.process.pid).children():
            with suppress(psutil.NoSuchProcess):
                if WORKER in child.cmdline():
                    yield child

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Hold its workers, and what they are forked from: their work stays under way."""
        held: set[psutil.Process] = set()
        released = Event()
        watch = Thread(target=self._hold_processes, args=(held, released))
        watch.start()
        try:
            yield
        finally:
            released.set()
            watch.join()
            for process in held:
                with suppress(psutil.NoSuchProcess):
                    process.resume()

    def _hold_processes(self, held: set[psutil.Process], released: Event) -> None:
        while True:  # a fork server needs longer than this to start, and forks no more once it is held
            for process in (*self._fork_servers(), *self.workers()):
                if process not in held:
                    process.suspend()
                    held.add(process)
            if released.wait(0.1):
                return

    def stop(self) -> None:
        """End it as Ctrl-C does."""
        self.process.send_signal(signal.SIGINT)
        self.process.wait(timeout=30)


def free_port() -> int:
    """A port of this machine that nobody listens on."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def start_app(home: Path, *options: str, module: str = "streamlit", **environment: str) -> Server:
    """Start a server; it may not answer yet.

    Args:
        home: Where its store and its log go.
        options: Of `streamlit run`.
        module: What Python runs with these options.
        environment: Settings.
    """
    port = free_port()
    command = [sys.executable, "-m", module, "run", "app.py"]
    command += [f"--server.port={port}", "--server.headless=true", *options]
    return start_command(home, command, port=port, cwd=ROOT, **{"INSPECTOR_TOKEN": "off"} | environment)


def start_command(home: Path, command: Sequence[str], *, port: int, cwd: Path, **environment: str) -> Server:
    """Start what becomes a server on a port; it may not answer yet."""
    log = home / "server.log"
    started = time.monotonic()
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            cwd=cwd,
            env={**os.environ, "INSPECTOR_HOME": str(home / "store"), **environment},
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    return Server(f"http://localhost:{port}", process, log, started)


def wait_until_up(server: Server) -> None:
    """Wait for the server's health endpoint.

    Raises:
        RuntimeError: If the process ended, or did not answer in time.
    """
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and server.process.poll() is None:
        try:
            urllib.request.urlopen(f"{server.url}/_stcore/health", timeout=5).close()
        except (urllib.error.URLError, TimeoutError):
            time.sleep(0.05)
        else:
            return
    raise RuntimeError(f"The server did not come up:\n{server.log.read_text()}")
