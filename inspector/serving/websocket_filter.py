"""What browser and server may say to each other over Streamlit's websocket.

Streamlit answers requests that no page here makes: to drop everybody's caches, to tell which files
of the repository are changed, to install files beside the app. And it greets every browser with the
path of the script, the versions of Python and Streamlit, and ids of the machine.
"""

from __future__ import annotations

import re
from contextlib import suppress

from google.protobuf.message import DecodeError
from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.runtime import runtime_util

from inspector.serving.fragment_reruns import FragmentRerunFilter
from inspector.serving.log import digest, record
from inspector.serving.people import called, cookie_claims, is_admitted, person_of
from inspector.serving.reconnecting import SESSIONS, SessionOwners
from inspector.serving.settings import Serving

REQUESTS = {"rerun_script", "stop_script", "file_urls_request", "app_heartbeat"}
OPERATIONS = {"deferred_file", "dataframe_chunk"}  # downloads, and tables that load as they scroll
PROTOCOL_ERROR, TEXT_IS_NOT_TAKEN, TOO_LONG = 1002, 1003, 1009
STRANGER_NBYTES = 1 << 16  # of a message, at most, before sign-in
SENT_NBYTES = 64_000_000  # of a message of the server, at most; a map of 262,144 tokens has 14 MB
SCRIPT = "app.py"  # in place of its path
PLAIN = re.compile(r"[\w-]{0,64}", re.ASCII)  # what Streamlit calls a part of a page, and writes into its log
WIDGETS = (
    "$$ID",
    "$$STREAMLIT_INTERNAL_KEY",
)  # how Streamlit's names of widgets begin; any other ends the run in an error
SMALL = 300  # bytes of a message; those that say how a run ends have fewer


def send_more_than_is_read() -> None:
    """Let the server send longer messages than it reads.

    Streamlit 1.67 has one limit for both (`server.maxMessageSize`): the server, which has begun with it, reads no more
    than that, and what it sends is limited here.
    """
    runtime_util._max_message_size_bytes = SENT_NBYTES


class WebsocketFilter:
    """Let through what the pages need, and nothing that tells about this machine.

    Args:
        app: What comes next.
        script: The script's path as Streamlit tells it.
        settings: Who may use the server.
        sessions: Whose they are.
    """

    def __init__(self, app: ASGIApp, *, script: str, settings: Serving, sessions: SessionOwners = SESSIONS) -> None:
        self._app = app
        self._script = script.encode()
        self._settings = settings
        self._sessions = sessions

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Watch a websocket; anything else passes."""
        if scope["type"] != "websocket":
            await self._app(scope, receive, send)
            return
        reports = FragmentRerunFilter()
        request = HTTPConnection(scope)
        stranger, person = self._is_stranger(request), person_of(request, self._settings)
        name = called(request, self._settings)

        async def receive_wanted() -> Message:
            while True:
                message = await receive()
                code = TOO_LONG if stranger and len(message.get("bytes") or b"") > STRANGER_NBYTES else fault(message)
                if code:
                    await send({"type": "websocket.close", "code": code})
                    return {"type": "websocket.disconnect", "code": code}
                if is_wanted(message) and (passed := reports.heard(message)):
                    return passed

        async def send_discreetly(message: Message) -> None:
            data = message.get("bytes")
            if data and (self._script in data or len(data) < SMALL):
                message = {**message, "bytes": self._noted(data, person, name, reports)}
            with suppress(OSError):  # the browser is gone: what is received next says so, and Streamlit closes in peace
                await send(message)

        await self._app(self._sessions.keep_apart(scope, person), receive_wanted, send_discreetly)

    def _noted(self, data: bytes, person: str, name: str, reports: FragmentRerunFilter) -> bytes:
        told = ForwardMsg.FromString(data)
        if (session := told.new_session.initialize.session_id) and self._sessions.note(session, person):
            record("session", session=digest(session), person=name)
        return discreet(told, reports)

    def _is_stranger(self, request: HTTPConnection) -> bool:
        """Whether somebody sees only the page with the sign-in button; a proxy lets no other in."""
        return self._settings.sign_in == "oidc" and not is_admitted(cookie_claims(request.cookies), self._settings)


def fault(message: Message) -> int:
    """The code with which to close the connection for a message; 0 if it can be read."""
    if message["type"] != "websocket.receive":
        return 0
    if message.get("bytes") is None:
        return TEXT_IS_NOT_TAKEN
    request = _parse(message)
    if request is None or not PLAIN.fullmatch(request.rerun_script.fragment_id):
        return PROTOCOL_ERROR
    named = all(widget.id.startswith(WIDGETS) for widget in request.rerun_script.widget_states.widgets)
    return 0 if named else PROTOCOL_ERROR


def is_wanted(message: Message) -> bool:
    """Whether a message is one that the pages here send, or one of the connection itself."""
    if message["type"] != "websocket.receive":
        return True
    request = _parse(message)
    kind = request.WhichOneof("type") if request else None
    if request and kind == "backend_operation_request":
        return request.backend_operation_request.WhichOneof("payload") in OPERATIONS
    return kind in REQUESTS


def discreet(message: ForwardMsg, reports: FragmentRerunFilter) -> bytes:
    """A message of the server without what it says of this machine; `reports` hears of its runs."""
    reports.told(message)
    if message.WhichOneof("type") == "new_session":
        session = message.new_session
        session.main_script_path = SCRIPT
        about = session.initialize.environment_info
        about.streamlit_version = about.python_version = about.server_os = ""
        session.initialize.user_info.Clear()
    return message.SerializeToString()


def _parse(message: Message) -> BackMsg | None:
    request = BackMsg()
    try:
        request.ParseFromString(message["bytes"])
    except DecodeError:
        return None
    return request
