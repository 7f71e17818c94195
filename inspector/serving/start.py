"""What happens once when the server starts."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from weakref import WeakKeyDictionary, WeakSet, WeakValueDictionary

import psutil
import streamlit as st
from streamlit.cli_util import open_browser
from streamlit.runtime.pages_manager import PagesManager
from streamlit.runtime.scriptrunner.script_runner import ScriptRunner
from streamlit.runtime.scriptrunner_utils.script_requests import ScriptRequests, ScriptRequestType
from streamlit.web.server.server_util import get_display_address, get_url

import inspector
from inspector.sandbox.limits import open_files
from inspector.serving.access_token import access_token
from inspector.serving.log import record
from inspector.serving.place import is_local, serves_others
from inspector.serving.presence import show_server
from inspector.serving.readiness import Readiness
from inspector.serving.settings import Serving, serving
from inspector.serving.uploads import clean_up
from inspector.settings import MB, Settings, settings

TURN_SECONDS = 5.0  # that a run waits for a stopped one, which ends as soon as it draws something


@asynccontextmanager
async def starting(app: Any, *, readiness: Readiness) -> AsyncIterator[dict[str, Any]]:
    """Print the address, open a browser, then clean up and look whether the server can work."""
    token = access_token()
    address = f"{get_url(_host())}/"
    sys.stdout.write(f"Checkpoint Inspector is at {address}{token.query if token else ''}\n")
    sys.stdout.flush()  # or a log file has it when the server ends
    if not st.get_option("server.headless"):
        asyncio.get_running_loop().call_soon(open_browser, f"{address}{token.query_once if token else ''}")
    record("start", **facts(settings(), serving()))
    if serves_others() and (advice := too_much_memory(settings(), psutil.virtual_memory().total)):
        record("advice", text=advice)
    tasks = [asyncio.create_task(work) for work in (clean_up(), show_server(settings(), readiness))]
    try:
        yield {}
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        record("stop")


def facts(found: Settings, served: Serving) -> dict[str, str | float]:
    """What the log's first line says of a server."""
    return {
        "version": inspector.__version__,
        "home": str(found.home),
        "shared_store": (found.store or "none").partition("://")[0],  # the rest may hold a name or a key
        "engine": found.engine,
        "sandbox": found.confinement,
        "sign_in": served.sign_in,
        "serves_others": str(serves_others()).lower(),
        "workers": found.workers,
        "worker_mb": found.worker_nbytes / MB,
        "store_mb": found.store_nbytes / MB,
        "upload_mb": found.upload_nbytes / MB,
        "open_files": open_files(),
    }


def too_much_memory(found: Settings, nbytes: int) -> str:
    """What to set where all workers together may take more than the machine has; empty: they may not."""
    most = found.workers * found.worker_nbytes
    if most <= nbytes:
        return ""
    return (
        f"{found.workers} workers of {found.worker_nbytes / MB:,.0f} MB may take {most / MB:,.0f} MB, but this machine "
        f"has {nbytes / MB:,.0f} MB: set INSPECTOR_WORKERS or INSPECTOR_WORKER_MB lower."
    )


def _host() -> str:
    """The name by which a browser reaches the server."""
    named = st.get_option("browser.serverAddress")
    return get_display_address(st.get_option("server.address") or "localhost") if is_local(named) else named


def name_pages_in_the_frame() -> None:
    """Have every page run inside the frame, on a server's first visit as well.

    Streamlit takes the files of a folder called pages for an app's pages, until an app names its
    own: a link to one would run that file alone, without navigation or checkpoint.
    """
    PagesManager.uses_pages_directory = False


def take_turns() -> None:
    """Begin a session's run when the one before it has ended.

    A click while a page is drawn, or a reload, stops that run and starts the next one in another thread. In Streamlit
    1.67 the next one does not wait, and both change the session's state: the first may then end with an error. A run
    that is stopped while it waits leaves its clicks to the next.
    """
    start, run = ScriptRunner.start, ScriptRunner._run_script_thread
    latest: WeakValueDictionary[str, ScriptRunner] = WeakValueDictionary()  # by session
    before: WeakKeyDictionary[ScriptRunner, ScriptRunner | None] = WeakKeyDictionary()
    begun: WeakSet[ScriptRunner] = WeakSet()

    def start_next(runner: ScriptRunner) -> None:
        before[runner] = latest.get(runner._session_id)
        start(runner)
        latest[runner._session_id] = runner

    def run_in_turn(runner: ScriptRunner) -> None:
        previous = before.pop(runner)
        if previous is not None and previous._script_thread is not None:
            previous._script_thread.join(TURN_SECONDS)
            if previous not in begun:
                _take_over(runner._requests, previous._requests)
        if runner._requests._state is ScriptRequestType.RERUN:
            begun.add(runner)
        run(runner)

    ScriptRunner.start = start_next  # pyright: ignore[reportAttributeAccessIssue]
    ScriptRunner._run_script_thread = run_in_turn  # pyright: ignore[reportAttributeAccessIssue]


def _take_over(requests: ScriptRequests, stopped: ScriptRequests) -> None:
    """Make one request of what waits and of what never began, as Streamlit does of two that wait."""
    with requests._lock:
        if requests._state is ScriptRequestType.RERUN:
            latest, requests._rerun_data = requests._rerun_data, stopped._rerun_data
            requests._request_rerun_locked(latest)
