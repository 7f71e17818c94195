"""Show in the home that this server runs, with its limits and what is wrong, for the commands of its operator.

A file and a lock, rather than a socket: whoever may read the home learns the same, and there is nothing to attack.
"""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime

from starlette.concurrency import run_in_threadpool

import inspector
from inspector.results.limits import RunningServer
from inspector.serving.engine.report import server_limits
from inspector.serving.readiness import Readiness
from inspector.settings import Settings
from inspector.store.keeping.servers import ShownServer

LOOK_SECONDS = 10.0  # between two looks when nobody asks


async def show_server(settings: Settings, readiness: Readiness) -> None:
    """Look again and again whether the server can work, so that the log tells of changes, and show what is found.

    Until the task is cancelled. A server that cannot write shows nothing until it can.
    """
    presence = _Presence(settings, readiness)
    try:
        while True:
            with suppress(Exception):  # the next look may succeed; of a full disk, readiness tells
                await run_in_threadpool(presence.look)  # a disk that hangs holds up no user
            await asyncio.sleep(LOOK_SECONDS)
    finally:
        await run_in_threadpool(presence.close)


class _Presence:
    """What this server shows, as it was found last."""

    def __init__(self, settings: Settings, readiness: Readiness) -> None:
        self._settings, self._readiness = settings, readiness
        self._since = datetime.now(UTC).isoformat(timespec="seconds")
        self._shown: ShownServer | None = None
        self._told: RunningServer | None = None

    def look(self) -> None:
        now = RunningServer(os.getpid(), inspector.__version__, self._since, self._readiness.look())
        if now != self._told:
            self._shown = self._shown or ShownServer(self._settings)
            self._shown.show(replace(server_limits(self._settings, None), server=now))
            self._told = now

    def close(self) -> None:
        if self._shown:
            self._shown.close()
