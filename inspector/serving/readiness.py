"""Whether the server can do its work: what stops its start, and what it tells whoever watches it.

The process lives as long as Streamlit's own health address answers, which browsers ask before they connect. Whether
questions would be answered is another thing, with an address of its own.
"""

from __future__ import annotations

import errno
import os
import tempfile
import time
from collections.abc import Callable
from threading import Lock

from starlette.concurrency import run_in_threadpool
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from inspector.errors import InspectorError, SettingsError
from inspector.serving.access_control import local_path
from inspector.serving.engine.choice import cluster_fault
from inspector.serving.engine.ray.cluster import address_of, refuse_without_ray
from inspector.serving.log import record
from inspector.serving.notice import DRAINING, notice
from inspector.serving.storing.shared.remote import LISTED, open_remote
from inspector.settings import Settings
from inspector.store.disk import disk_sentence

READY = "_stcore/ready"
FRESH_SECONDS = 2.0  # for which what was found is told again
FIRST_SECONDS = 1.0  # that whoever asks waits for the first look to end
LATE_SECONDS = 15.0  # of a look, after which the store counts as silent
STARTING = "The server is starting: it looks for its store and its engine."
SILENT = "The store does not answer: look at its disk, and at the network to the shared store."
NO_FILES = (
    "The server has as many files and connections open as the system allows it: raise that limit (nofile), or wait "
    "until users leave."
)


def check_start(settings: Settings) -> None:
    """See that the server can answer anything at all; a shared store may come later.

    Raises:
        SettingsError: If it cannot; the text says why.
    """
    fault = engine_fault(settings) or home_fault(settings, full=False)
    if fault:
        raise SettingsError(fault)


def faults(settings: Settings) -> tuple[str, ...]:
    """Why what users ask would fail now, a sentence each, without a path; empty: it would not."""
    found = (find(settings) for find in (engine_fault, home_fault, shared_store_fault, replica_fault))
    return tuple(fault for fault in (DRAINING if notice().draining else "", *found) if fault)


def home_fault(settings: Settings, *, full: bool = True) -> str:
    """Why nothing could be stored; empty: it can. A full disk counts if `full`: people make room in the app."""
    try:
        settings.home.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=settings.home) as file:
            file.write(b"x")
    except OSError as error:
        if error.errno in {errno.EMFILE, errno.ENFILE}:
            return NO_FILES
        if not full and error.errno in {errno.ENOSPC, errno.EDQUOT}:
            return ""
        return disk_sentence(error, settings) or (
            f"The store's folder cannot be written ({error.strerror}): set INSPECTOR_HOME to a folder that belongs to "
            "the server's user."
        )
    return ""


def shared_store_fault(settings: Settings) -> str:
    """Why no upload could be shared; empty: it can, or there is no shared store."""
    if not settings.store:
        return ""
    try:
        open_remote(settings).size(LISTED)
    except InspectorError as error:
        return str(error)
    return ""


def engine_fault(settings: Settings) -> str:
    """Why nothing could ever be computed; empty: it can. A cluster may come later."""
    if settings.engine == "ray":
        try:
            refuse_without_ray()
            address_of(os.environ)
        except SettingsError as error:
            return str(error)
    return ""


def replica_fault(settings: Settings) -> str:
    """Why no replica of the cluster would answer; empty: one does, or there is no cluster."""
    if settings.engine != "ray" or engine_fault(settings):
        return ""
    return cluster_fault(settings)


class Readiness:
    """What was found last, and the log's lines about changes; every method may be called from any thread.

    Args:
        settings: Of the store and the engine, as pages start it.
        look: Finds what is wrong.
        clock: Tells the seconds.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        look: Callable[[Settings], tuple[str, ...]] = faults,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._settings, self._find, self._clock = settings, look, clock
        self._lock = Lock()
        self._found: tuple[str, ...] = ()
        self._when: float | None = None
        self._begun = 0.0  # of the last look

    def look(self) -> tuple[str, ...]:
        """What is wrong now, or was a moment ago; a change goes to the log. One thread looks at a time."""
        patience = FIRST_SECONDS if self._when is None else 0
        if not self._lock.acquire(timeout=patience):  # a store that hangs holds one thread, and not all that there are
            if self._clock() - self._begun > LATE_SECONDS:
                return (SILENT,)
            return (STARTING,) if self._when is None else self._found
        try:
            self._begun = self._clock()
            if self._when is None or self._clock() - self._when > FRESH_SECONDS:
                found = self._find(self._settings)
                for fault in found:
                    if fault not in self._found:
                        record("not ready", reason=fault)
                if self._found and not found:
                    record("ready again")
                self._found, self._when = found, self._clock()
            return self._found
        finally:
            self._lock.release()


class ReadyAddress:
    """Answer whoever asks whether the server can work: a load balancer asks by address, and nobody signs it in.

    Args:
        app: What comes next.
        readiness: What is told.
    """

    def __init__(self, app: ASGIApp, *, readiness: Readiness) -> None:
        self._app = app
        self._readiness = readiness

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or pass the request on."""
        if scope["type"] != "http" or local_path(scope) != READY or scope["method"] not in {"GET", "HEAD"}:
            await self._app(scope, receive, send)
            return
        found = await run_in_threadpool(self._readiness.look)
        answer = PlainTextResponse("\n".join(found) or "ready", status_code=503 if found else 200)
        await answer(scope, receive, send)
