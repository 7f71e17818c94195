"""Start workers from a fork server, one for each environment, and follow how they end."""

from __future__ import annotations

import errno
import os
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection, Pipe
from typing import IO

from inspector.sandbox.limits import GPU_NODES
from inspector.serving.engine.workers.logs import follow_log

# A process that has looked for a GPU cannot be forked, and macOS' libraries cannot either: there
# each worker imports what it needs by itself.
PRELOADS = sys.platform == "linux" and not any(map(os.path.exists, GPU_NODES))


class Forked:
    """A process that was forked from a fork server; it may begin a moment later."""

    def __init__(self, connection: Connection, log: IO[bytes], status: IO[bytes]) -> None:
        self.connection = connection
        self.log = log
        self.pid = 0  # not known yet
        self._status = status
        self._handle: int | None = None  # tells it from another process that gets its number
        self._lock, self._waiting = threading.Lock(), threading.Lock()
        self._killed = self._ended = False
        self._exit_code: int | None = None

    def begin(self) -> None:
        """Wait until it is there.

        Raises:
            OSError: If it cannot be started.
        """
        number = self._read()
        if number is None:
            raise ProcessLookupError(errno.ESRCH, os.strerror(errno.ESRCH))
        if number < 0:
            raise OSError(-number, os.strerror(-number))
        with self._lock:
            self.pid = number
            if hasattr(os, "pidfd_open"):
                with suppress(OSError):
                    self._handle = os.pidfd_open(number)
        if self._killed:
            self.kill()

    def kill(self) -> None:
        """End it now, or as soon as it is there."""
        with self._lock:
            self._killed = True
            if not self.pid or self._ended:
                return
            with suppress(ProcessLookupError):
                if self._handle is None:
                    os.kill(self.pid, signal.SIGKILL)
                else:
                    signal.pidfd_send_signal(self._handle, signal.SIGKILL)

    def wait(self) -> int | None:
        """Wait for its end: its exit status, a signal's number negated; None: nobody knows."""
        with self._waiting:
            if not self._ended:
                self._exit_code = self._read()
                self._gone()
            return self._exit_code

    def _gone(self) -> None:
        if self._exit_code is None and self._handle is not None:  # nobody reports it
            waiting = select.poll()  # takes any descriptor, which select does not
            waiting.register(self._handle, select.POLLIN)
            waiting.poll()
        with self._lock:
            self._ended = True
            if self._handle is not None:
                os.close(self._handle)
        self._status.close()

    def _read(self) -> int | None:
        line = self._status.readline()
        return int(line) if line else None


class ForkServerHandle:
    """A fork server as the server sees it.

    Raises:
        OSError: If it cannot be started.
    """

    def __init__(self, environment: Mapping[str, str], modules: Sequence[str]) -> None:
        self._lock = threading.Lock()
        self._channel, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [
                    sys.executable,
                    "-P",
                    "-m",
                    "inspector.serving.engine.workers.forkserver",
                    str(theirs.fileno()),
                    *modules,
                ],
                env=dict(environment),
                pass_fds=(theirs.fileno(),),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        follow_log(self._process.stdout, "fork server", self._process.pid)

    @property
    def alive(self) -> bool:
        """False: it takes no request any more."""
        return self._process.poll() is None

    def fork(self, when: bytes) -> Forked:
        """Ask for a process.

        Args:
            when: `wire.NOW` or `WARM`.

        Raises:
            OSError: If the fork server is gone.
        """
        ours, theirs = Pipe()
        log, log_end = os.pipe()
        status, status_end = os.pipe()
        given = [theirs.fileno(), log_end, status_end]
        try:
            with self._lock:
                socket.send_fds(self._channel, [when], given)
        except OSError:
            ours.close()
            os.close(log)
            os.close(status)
            raise
        finally:
            theirs.close()
            os.close(log_end)
            os.close(status_end)
        return Forked(ours, os.fdopen(log, "rb"), os.fdopen(status, "rb"))

    def close(self) -> None:
        """Take no more requests; the process ends with its last child."""
        self._channel.close()


class ForkServers:
    """The fork servers of this process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._found: dict[tuple[object, ...], ForkServerHandle] = {}

    def fork(self, environment: Mapping[str, str], modules: Sequence[str], when: bytes) -> Forked:
        """Fork a process with an environment; see `ForkServer.fork`.

        Args:
            environment: Of the process.
            modules: Imported once for all such processes.
            when: As `ForkServer.fork` takes it.

        Raises:
            OSError: If no process can be started.
        """
        return self.start(environment, modules).fork(when)

    def start(self, environment: Mapping[str, str], modules: Sequence[str]) -> ForkServerHandle:
        """Start the fork server of an environment, unless there is one; the arguments are those of `fork`.

        Raises:
            OSError: If it cannot be started.
        """
        modules = tuple(modules) if PRELOADS else ()
        key = (sys.executable, modules, *sorted(environment.items()))
        with self._lock:
            server = self._found.get(key)
            if server is None or not server.alive:
                server = self._found[key] = ForkServerHandle(environment, modules)
        return server


fork_servers = ForkServers()
