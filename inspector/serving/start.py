"""What happens once when the server starts."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from weakref import WeakKeyDictionary, WeakSet, WeakValueDictionary

import streamlit as st
from streamlit.cli_util import open_browser
from streamlit.runtime.pages_manager import PagesManager
from streamlit.runtime.scriptrunner.script_runner import ScriptRunner
from streamlit.runtime.scriptrunner_utils.script_requests import ScriptRequests, ScriptRequestType
from streamlit.web.server.server_util import get_display_address, get_url

from inspector.serving.access_token import access_token
from inspector.serving.place import is_local
from inspector.serving.readiness import Readiness
from inspector.serving.uploads import clean_up

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
    tasks = [asyncio.create_task(clean_up()), asyncio.create_task(readiness.watch())]
    try:
        yield {}
    finally:
        for task in tasks:
            task.cancel()


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
