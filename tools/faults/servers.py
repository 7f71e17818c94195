"""Servers and browsers that the faults happen to."""

from __future__ import annotations

import contextlib
import hashlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import psutil
from playwright.sync_api import Browser, Page, sync_playwright

from inspector.serving.storing.registry import sweep
from inspector.serving.trial import ROOT, Server, wait_until_up
from inspector.settings import read_settings
from inspector.store.manifests.entries import load_manifest
from inspector.store.stored import list_checkpoints
from tools.chromium import FLAGS, find_chromium

WAIT_SECONDS = 300  # until a fault counts as one that nobody was told of
STATE = "[data-testid=stApp][data-test-script-state=notRunning]"


class FaultError(Exception):
    """What was expected of a fault did not happen."""


@contextlib.contextmanager
def serving(home: Path, *, disk_mb: int = 0, module: str = "streamlit", **environment: str) -> Iterator[Server]:
    """A server with a store below `home`.

    Args:
        home: Takes the store and the log.
        disk_mb: Size of the disk that holds the store: a file system in memory, mounted in a
            namespace of the server's own; 0: the disk that `home` is on.
        module: What Python runs.
        environment: Settings.
    """
    server = start(home, disk_mb=disk_mb, module=module, **environment)
    try:
        wait_until_up(server)
        yield server
    finally:
        kill(server)


def start(home: Path, *, disk_mb: int, module: str, **environment: str) -> Server:
    """Start a server; it may not answer yet."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    store = home / "store"
    store.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", module, "run", "app.py", f"--server.port={port}", "--server.headless=true"]
    if disk_mb:
        mount = f'mount -t tmpfs -o size={disk_mb}m tmpfs "$INSPECTOR_HOME" && exec "$@"'
        command = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", mount, "sh", *command]
    log = home / f"server-{port}.log"
    started = time.monotonic()
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env={**os.environ, "INSPECTOR_HOME": str(store), "INSPECTOR_TOKEN": "off", **environment},
        )
    return Server(f"http://localhost:{port}", process, log, started)


def kill(server: Server) -> None:
    """End a server as `kill -9` does; its workers end with it."""
    with contextlib.suppress(ProcessLookupError):
        server.process.send_signal(signal.SIGKILL)
    server.process.wait(WAIT_SECONDS)


def workers(server: Server) -> list[psutil.Process]:
    """The server's worker processes, the busiest first."""
    return sorted(server.workers(), key=lambda child: -sum(child.cpu_times()[:2]))


@contextlib.contextmanager
def browsing() -> Iterator[Browser]:
    """A headless browser."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=list(FLAGS))
        try:
            yield browser
        finally:
            browser.close()


def visit(browser: Browser, address: str) -> Page:
    """Open an address in a session of its own."""
    page = browser.new_context(reduced_motion="reduce").new_page()  # no placeholders that pulse
    page.set_default_timeout(WAIT_SECONDS * 1000)
    page.goto(address)
    return page


def calm(page: Page) -> None:
    """Wait until the page's script has run to its end."""
    page.locator(STATE).wait_for()
    page.get_by_test_id("stMain").locator("h1").first.wait_for()


def choose_files(page: Page, *paths: Path) -> None:
    """Choose files in the sidebar's file input."""
    sidebar = page.get_by_test_id("stSidebar")
    sidebar.get_by_text("Open your own").click()
    sidebar.locator("input[type=file]").set_input_files([str(path) for path in paths])


def alert(page: Page) -> str:
    """Wait for what the page says of a fault."""
    found = page.get_by_test_id("stMain").get_by_test_id("stAlert").first
    found.wait_for()
    return " ".join(found.get_by_test_id("stMarkdownContainer").first.inner_text().split())


def opened(page: Page) -> str:
    """The name of the checkpoint that the page shows."""
    calm(page)
    caption = page.get_by_test_id("stMain").get_by_test_id("stCaptionContainer").first
    return caption.inner_text().split()[-1]  # the icon is text as well


def until(condition: Callable[[], bool]) -> None:
    """Wait until something is true.

    Raises:
        FaultError: If it never is.
    """
    deadline = time.monotonic() + WAIT_SECONDS
    while not condition():
        if time.monotonic() > deadline:
            raise FaultError("what was waited for never happened")
        time.sleep(0.001)


def holds(folder: Path, pattern: str) -> bool:
    """Whether anything of a pattern lies in a folder, in which others make and remove things."""
    try:
        return any(folder.glob(pattern))
    except FileNotFoundError:  # removed while it was looked into
        return False


def whole(store: Path) -> str:
    """Check everything that a store lists, byte for byte, and that nothing else is left.

    Returns:
        What it holds, in words.

    Raises:
        FaultError: If something is half-written, changed or left over.
    """
    settings = replace(read_settings({}), home=store)
    sweep(settings)  # as every server does when it starts
    listed = list_checkpoints(settings)
    for stored in listed:
        manifest = load_manifest(stored.fingerprint, settings=settings)
        for file in manifest.files:
            if (store / "checkpoints") not in file.path.parents:
                raise FaultError(f"{file.name} lies elsewhere")
            in_folder = file.path.name in ("config.json",) or "folder" in file.path.parts[-2:]
            if not in_folder and digest(file.path) != file.sha256:
                raise FaultError(f"{file.name} of {stored.name} is not what was uploaded")
    for kind in ("incoming", "temporary"):
        left = [path.name for path in (store / kind).glob("*") if holds(path, "**/_*")]
        if left:
            raise FaultError(f"{len(left)} folders are left in {kind}")
    if len(entries(store)) != len(listed):
        raise FaultError("an entry is not listed")
    return f"yes, {len(listed)} uploads" if len(listed) != 1 else "yes, 1 upload"


def entries(store: Path) -> list[Path]:
    """Folders of the checkpoints that a store holds, whole or not."""
    return [path for path in (store / "checkpoints").glob("*") if path.name[0] != "."]


def digest(path: Path) -> str:
    """The sha256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()
