"""Uploads on their way: to the disk, and which of them a page left behind when it was reloaded or closed.

A reload starts a new session that knows nothing of the old one. The cookie with which Streamlit
protects uploads is the browser's, not the session's, so it connects the two. A proxy that collects
a request before it passes it on hides an upload until it is complete.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from threading import Lock
from typing import Any

from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect, HTTPConnection
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from streamlit.runtime import Runtime
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager
from streamlit.runtime.uploaded_file_manager import UploadedFileRec
from streamlit.web.server.starlette.starlette_app_utils import decode_xsrf_token_string
from streamlit.web.server.starlette.starlette_server_config import XSRF_COOKIE_NAME

from inspector.serving.access_control import local_path
from inspector.serving.bodies import FRAME_NBYTES, Begin, Body, ReceivedUpload, UploadSink

ADDRESS = "_stcore/upload_file/"
LEFT_SECONDS = 40.0  # after which a page that is gone does not come back
SWEEP_SECONDS = 10.0
SMALL_NBYTES = 1 << 20  # of a request
MOST = 1000  # entries kept, of all browsers together
TOO_MUCH = "This page has sent as much as one upload may have: open or remove those files first."


@dataclass(slots=True)
class _Entry:
    """A file on its way to a session, or what a session has still to open."""

    browser: str
    nbytes: int = 0  # at most
    waiting: Any = None  # what is still to be opened; None: a file that the session has not taken
    cut: bool = False  # the browser ended the transfer
    coming: UploadSink | None = None  # what has arrived of a large file


@dataclass(frozen=True, slots=True)
class Left:
    """What sessions of a browser left behind."""

    interrupted: bool  # at least one file never reached a page's script
    waiting: tuple[Any, ...]  # what they had still to open


class PendingUploads:
    """Files under way, by browser and session; short-lived and bounded.

    Args:
        is_active: Whether a session still has its page.
        clock: Tells the seconds.
    """

    def __init__(self, is_active: Callable[[str], bool], clock: Callable[[], float] = time.monotonic) -> None:
        self._is_active = is_active
        self._clock = clock
        self._entries: dict[tuple[str, str], _Entry] = {}  # oldest first
        self._gone: dict[str, float] = {}  # sessions without a page -> since when that is known
        self._lock = Lock()

    def start(self, browser: str, session: str, file: str, nbytes: int = 0, *, most_nbytes: int = 0) -> bool:
        """Note that a file is on its way to a session.

        Args:
            browser: That sends it.
            session: Of its page.
            file: Its id.
            nbytes: As announced; 0: that is not known.
            most_nbytes: Of several files that the session has sent and not taken.

        Returns:
            Whether it may come.
        """
        if self._is_active(session):
            with self._lock:
                others = [each.nbytes for key, each in self._entries.items() if key[0] == session and key[1] != file]
            if any(others) and sum(others) + nbytes > most_nbytes + FRAME_NBYTES:
                return False
            self._add((session, file), _Entry(browser, nbytes))
        return True

    def sweep(self, sessions: Iterable[str] = ()) -> list[str]:
        """Forget what pages left that have been gone for a while.

        Args:
            sessions: Others that may have left something.

        Returns:
            The sessions of those pages.
        """
        now = self._clock()
        with self._lock:
            known = {session for session, _ in self._entries} | set(sessions)
            self._gone = {each: self._gone.get(each, now) for each in known if not self._is_active(each)}
            left = [each for each, since in self._gone.items() if now - since >= LEFT_SECONDS]
            for key in [key for key in self._entries if key[0] in left]:
                del self._entries[key]
        return left

    def carry(self, session: str, file: str, coming: UploadSink) -> None:
        """Note where the bytes of a file go that is on its way."""
        with self._lock:
            if entry := self._entries.get((session, file)):
                entry.coming = coming

    def under_way(self, session: str) -> dict[str, UploadSink | None]:
        """The files that a session has not taken yet, with what has arrived of large ones."""
        with self._lock:
            return {
                file: entry.coming
                for (owner, file), entry in self._entries.items()
                if owner == session and file and not entry.cut
            }

    def cut(self, session: str, file: str) -> None:
        """Note that a browser ended a transfer; whether its page is gone, the next run tells."""
        with self._lock:
            if entry := self._entries.get((session, file)):
                entry.cut = True

    def end(self, session: str, files: Collection[str]) -> None:
        """Forget files that were taken, removed or refused."""
        with self._lock:
            for file in files:
                self._entries.pop((session, file), None)

    def hold(self, browser: str, session: str, waiting: Any) -> None:
        """Keep what a session has still to open, for the next one in case its page is reloaded."""
        self._add((session, ""), _Entry(browser, waiting=waiting))

    def let_go(self, session: str) -> None:
        """Forget what a session had still to open: it has opened it."""
        self.end(session, ("",))

    def go_on(self, session: str) -> None:
        """Note that a session runs: its user canceled the transfers that were cut."""
        with self._lock:
            for key in [key for key, entry in self._entries.items() if entry.cut]:
                if key[0] == session:
                    del self._entries[key]

    def claim(self, browser: str) -> Left:
        """Take over what sessions of a browser left behind whose pages are gone."""
        with self._lock:
            left = [
                self._entries.pop(key)
                for key, entry in list(self._entries.items())
                if entry.browser == browser and not self._is_active(key[0])
            ]
        return Left(
            any(entry.waiting is None for entry in left),
            tuple(entry.waiting for entry in left if entry.waiting is not None),
        )

    def _add(self, key: tuple[str, str], entry: _Entry) -> None:
        with self._lock:
            self._entries.pop(key, None)
            self._entries[key] = entry
            while len(self._entries) > MOST:
                del self._entries[next(iter(self._entries))]


def browser_of(cookies: Mapping[str, str]) -> str | None:
    """What tells a browser from others across reloads; None without Streamlit's cookie."""
    token, _ = decode_xsrf_token_string(cookies.get(XSRF_COOKIE_NAME, ""))
    return token.hex() if token else None


def _has_page(session: str) -> bool:
    return Runtime.exists() and Runtime.instance().is_active_session(session)


def _keep(session: str, file: str, received: object) -> None:
    manager = Runtime.instance().uploaded_file_mgr
    if not isinstance(manager, MemoryUploadedFileManager) or not _has_page(session):
        return
    for record in manager.get_files(session, [file]):
        receipt = ReceivedUpload.of(received)
        manager.add_file(session, UploadedFileRec(record.file_id, record.name, record.type, receipt))


PENDING = PendingUploads(_has_page)


async def clean_up() -> None:
    """Let go of what pages left, again and again; Streamlit does so only when the next visitors come."""
    while True:
        await asyncio.sleep(SWEEP_SECONDS)
        if Runtime.exists():
            let_go_of_left(Runtime.instance(), PENDING)


def let_go_of_left(runtime: Runtime, ledger: PendingUploads) -> None:
    """Remove what pages had sent and not opened that are gone; in the thread of the server's event loop."""
    manager = runtime.uploaded_file_mgr
    sent = list(manager.file_storage) if isinstance(manager, MemoryUploadedFileManager) else []
    for session in ledger.sweep(sent):
        runtime.close_session(session)
        manager.remove_session_files(session)


class Uploads:
    """Put large files on the disk while they come, and note in the ledger which of them do not arrive.

    Args:
        app: What comes next.
        begin: Begins a file on the disk.
        most_nbytes: Of a file.
        owner_of: Who will own what a request sends; empty: everybody.
        ledger: Where to note it.
        keep: Has Streamlit keep what was received instead of what its handler got.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        begin: Begin,
        most_nbytes: int,
        ledger: PendingUploads = PENDING,
        keep: Callable[[str, str, object], None] = _keep,
        owner_of: Callable[[HTTPConnection], str] = lambda request: "",
    ) -> None:
        self._app = app
        self._begin = begin
        self._most_nbytes = most_nbytes
        self._ledger = ledger
        self._keep = keep
        self._owner_of = owner_of

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Watch a file that is uploaded or removed; anything else passes."""
        session, _, file = _address(scope)
        browser = file and browser_of(HTTPConnection(scope).cookies)
        if browser and scope["method"] == "DELETE":
            self._ledger.end(session, (file,))
        if not browser or scope["method"] != "PUT":
            await self._app(scope, receive, send)
            return
        nbytes = _length(scope)
        if self._ledger.start(browser, session, file, nbytes or 0, most_nbytes=self._most_nbytes):
            small = nbytes is not None and nbytes <= SMALL_NBYTES  # stays in memory: one on the disk keeps a lock
            await self._take(scope, receive, send, session, file, small=small)
        else:
            await PlainTextResponse(TOO_MUCH, status_code=413)(scope, receive, send)

    async def _take(self, scope: Scope, receive: Receive, send: Send, session: str, file: str, *, small: bool) -> None:
        begun = partial(self._ledger.carry, session, file)
        owner = self._owner_of(HTTPConnection(scope))
        begin = partial(self._begin, owner=owner) if owner else self._begin
        body = Body(scope, receive, begin=begin, most_nbytes=self._most_nbytes, begun=begun)

        async def send_watched(message: Message) -> None:
            if message["type"] == "http.response.start":
                if message["status"] >= 400:
                    self._ledger.end(session, (file,))
                elif body.received:
                    self._keep(session, file, body.received)
            await send(message)

        try:
            await self._app(scope, receive if small else body.replaced, send_watched)
        except ClientDisconnect:  # nobody is left to answer
            self._ledger.cut(session, file)


def _length(scope: Scope) -> int | None:
    """Bytes of a request's body, as announced."""
    length = Headers(scope=scope).get("content-length", "")
    return int(length) if length.isdecimal() else None


def _address(scope: Scope) -> tuple[str, str, str]:
    path = local_path(scope) if scope["type"] == "http" else ""
    return path.removeprefix(ADDRESS).partition("/") if path.startswith(ADDRESS) else ("", "", "")
