"""The web server's end of the pipe to its client process."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Pipe
from typing import Any

from inspector.sandbox.environment import worker_environment
from inspector.serving.encoding import decode, encode
from inspector.serving.engine.ray.messages import HEARD, Leave, Lost
from inspector.serving.engine.workers.logs import LOG, follow_log
from inspector.serving.engine.workers.process import MAX_MESSAGE, MAX_UNASKED
from inspector.settings import Settings

LOST = (
    "The connection to the cluster was lost: try again; if that does not help, check that its "
    "head is still running (`ray status`)."
)


class Link:
    """One client process. A thread reads what it says, and then tells that it has ended.

    Args:
        settings: Of this server.
        on_message: Called with each message.
        on_end: Called once, with the link and the sentence for whoever waits.
    """

    def __init__(
        self, settings: Settings, *, on_message: Callable[[Any], None], on_end: Callable[[Link, str], None]
    ) -> None:
        self._on_message, self._on_end = on_message, on_end
        self._sending = threading.Lock()
        self._connection, theirs = Pipe()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "inspector.serving.engine.ray.client", str(theirs.fileno())],
                env=_environment(settings),
                pass_fds=(theirs.fileno(),),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C reaches the server alone
            )
        follow_log(self._process.stdout, "cluster client", self._process.pid)
        self._reader = threading.Thread(target=self._read, name="cluster client", daemon=True)
        self._reader.start()

    def send(self, message: Any) -> None:
        """Tell the client something; if it has died, its end is noticed elsewhere."""
        with self._sending, suppress(OSError):
            self._connection.send_bytes(encode(message))

    def close(self, timeout: float) -> None:
        """End the client, which first tells the replicas."""
        self.send(Leave())
        try:
            self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            self._process.kill()
        if self._reader is not threading.current_thread():
            self._reader.join(timeout)

    def _read(self) -> None:
        text = LOST
        try:
            while True:
                message = decode(self._connection.recv_bytes(MAX_MESSAGE + MAX_UNASKED), *HEARD)
                if isinstance(message, Lost):
                    text = message.text
                else:
                    self._on_message(message)
        except (EOFError, OSError):
            pass
        except Exception as broken:  # bytes that are no message
            LOG.warning("the cluster's client sent an invalid message: %s", type(broken).__name__)
        self._process.kill()
        self._process.wait()
        self._on_end(self, text)
        with self._sending:
            self._connection.close()


def _environment(settings: Settings) -> dict[str, str]:
    """A worker's environment, and Ray's own settings, its token among them."""
    rays = {name: value for name, value in os.environ.items() if name.startswith("RAY_")}
    return worker_environment(os.environ, settings=settings) | rays
