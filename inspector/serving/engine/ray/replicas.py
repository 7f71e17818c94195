"""Ask all replicas of a cluster at once: what runs there, and to let go of a checkpoint."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from inspector.serving.encoding import decode
from inspector.serving.engine.ray.messages import Call, ReplicaStatus, Returned

CALL_SECONDS = 3.0  # for the replicas to return something
FRESH_SECONDS = 1.0  # for which what they said of themselves is shown again
NEVER = float("-inf")


class Replicas:
    """Calls that go to every replica; every method may be called from any thread.

    Args:
        send: Sends a call to the client process.
    """

    def __init__(self, send: Callable[[Call], None]) -> None:
        self._send = send
        self._lock = threading.Lock()
        self._calls: dict[str, Future[tuple[bytes, ...]]] = {}
        self._asked, self._found = NEVER, ()

    def statuses(self) -> tuple[ReplicaStatus, ...]:
        """What the replicas said of themselves, now or a moment ago."""
        if time.monotonic() - self._asked > FRESH_SECONDS:
            found = [each for each in self.call("status") if isinstance(each, ReplicaStatus)]
            self._found, self._asked = tuple(found), time.monotonic()
        return self._found

    def call(self, method: str, *arguments: str) -> list[Any]:
        """What those replicas return that do so in time."""
        name, future = secrets.token_urlsafe(16), Future()
        self._asked = NEVER
        with self._lock:
            self._calls[name] = future
        self._send(Call(name, method, arguments))
        try:
            return [decode(value, ReplicaStatus, bool) for value in future.result(CALL_SECONDS)]
        except TimeoutError:
            return []
        finally:
            with self._lock:
                self._calls.pop(name, None)

    def returned(self, message: Returned) -> None:
        """Take what the client passes on."""
        with self._lock:
            call = self._calls.pop(message.id, None)
        if call is not None:
            call.set_result(message.values)

    def lost(self) -> None:
        """The client has ended: nobody will return anything."""
        with self._lock:
            calls, self._calls = self._calls, {}
        for call in calls.values():
            call.set_result(())
