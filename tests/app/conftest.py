"""Fixtures of the page tests: the app with a real engine and a store of its own."""

from __future__ import annotations

import runpy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest
import streamlit as st
from streamlit.components.v2 import manifest_scanner
from streamlit.runtime.forward_msg_queue import ForwardMsgQueue
from streamlit.runtime.scriptrunner import script_runner
from streamlit.testing.v1 import AppTest, local_script_runner

from inspector.serving.storing import registry
from inspector.settings import settings
from inspector.store.stored import list_checkpoints
from pages._ui import running, session

ROOT = Path(__file__).parents[2]
SECONDS = 120  # for a model that has to be loaded first, on a busy machine


def run_the_frame_first() -> None:
    """Have `AppTest` run the app's script for every page, as the server does.

    Each of its runs forgets that the app names its own pages (`AppTest._run` resets
    `PagesManager.uses_pages_directory`), and would run the file of a page alone.
    """
    script_runner._mpa_v1 = partial(runpy.run_path, run_name="__main__")


def wait_for_the_script(runner: local_script_runner.LocalScriptRunner, timeout: float = SECONDS) -> None:
    """Wait without looking a thousand times a second, which takes the script's processor time away."""
    if runner._script_thread:
        runner._script_thread.join(timeout)
    if not runner.script_stopped():
        runner.request_stop()
        runner.join()
        raise RuntimeError(f"The page did not finish within {timeout} seconds.")


@pytest.fixture(scope="session", autouse=True)
def _store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """One engine for all tests, on a store that nobody else uses."""
    run_the_frame_first()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(local_script_runner, "require_widgets_deltas", wait_for_the_script)
        # Each app that is opened would read the metadata of every installed package, and find no components.
        patch.setattr(manifest_scanner, "scan_component_manifests", list)
        patch.setenv("INSPECTOR_HOME", str(tmp_path_factory.mktemp("store")))
        patch.delenv("INSPECTOR_ROOTS", raising=False)
        settings.cache_clear()
        yield
        session.engine().close()
        st.cache_resource.clear()
        settings.cache_clear()


@pytest.fixture(scope="module", autouse=True)
def _nothing_left(_store: None) -> Iterator[None]:
    """What a file of tests uploads goes with it."""
    yield
    for stored in list_checkpoints(settings()):
        registry.delete_checkpoint(stored.fingerprint, settings=settings())
        session.engine().forget(stored.fingerprint)


@pytest.fixture
def open_app() -> Callable[..., AppTest]:
    """Open the app at a page, as a link does."""

    def opened(
        slug: str = "overview", *, agreed: str | tuple[str, ...] = (), timeout: float = SECONDS, **query: str
    ) -> AppTest:
        app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=timeout)
        for name, value in query.items():
            app.query_params[name] = value
        if agreed:  # opened by this session before
            app.session_state["agreed"] = {agreed} if isinstance(agreed, str) else {*agreed}
        if slug != "overview":
            app.switch_page(f"pages/{slug}.py")
        return app.run()

    return opened


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Bytes of each message to the browser."""
    found: list[int] = []
    enqueue = ForwardMsgQueue.enqueue

    def counted(self: ForwardMsgQueue, message, *rest) -> None:
        found.append(message.ByteSize())
        enqueue(self, message, *rest)

    monkeypatch.setattr(ForwardMsgQueue, "enqueue", counted)
    return found


@contextmanager
def allowing(folder: Path) -> Iterator[None]:
    """A server that may open a folder, with an engine of its own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("INSPECTOR_ROOTS", str(folder))
        settings.cache_clear()
        running.started.clear()
        yield
        running.engine().close()
        running.started.clear()
    settings.cache_clear()


@pytest.fixture
def roots(tmp_path: Path) -> Iterator[Path]:
    """A folder that the server may open."""
    with allowing(tmp_path):
        yield tmp_path
