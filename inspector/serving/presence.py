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
    since = datetime.now(UTC).isoformat(timespec="seconds")
    shown: ShownServer | None = None
    told: RunningServer | None = None
    try:
        while True:
            with suppress(Exception):  # the next look may succeed; of a full disk, readiness tells
                faults = await run_in_threadpool(readiness.look)
                now = RunningServer(os.getpid(), inspector.__version__, since, faults)
                if now != told:
                    shown = shown or ShownServer(settings)
                    shown.show(replace(server_limits(settings, None), server=now))
                    told = now
            await asyncio.sleep(LOOK_SECONDS)
    finally:
        if shown:
            shown.close()
