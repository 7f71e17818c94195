"""Which requests go on to the pages' server, decided from a request's first lines.

Streamlit checks names and origins for its websocket alone, and lets everybody upload who has one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import streamlit as st
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import HTTPConnection
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from streamlit.web.server.server_util import is_allowed_origin
from streamlit.web.server.starlette.starlette_websocket import is_host_allowed

from inspector.serving.access_token import AccessToken
from inspector.serving.headers import NO_STORE
from inspector.serving.log import record
from inspector.serving.people import browser_secret, called, cookie_claims, is_admitted, new_secret_cookie, proxy_claims
from inspector.serving.place import serves_others
from inspector.serving.settings import Serving

HEALTH = "_stcore/health"
# Streamlit serves these to anybody. They are for its own hosting, for programs and for debugging,
# cost the server work, and nothing here needs them.
CLOSED = ("_stcore/metrics", "_stcore/script-health-check", "_stcore/agent")
# What a browser needs to show the page with the sign-in button; everything else below a
# name of PRIVATE is for people who are signed in.
PRIVATE = ("_stcore", "media", "component", "app")
BEFORE_SIGN_IN = ("_stcore/health", "_stcore/host-config", "_stcore/stream")
LOGOUT = "auth/logout"  # changes something although it is asked with GET
ELSEWHERE = ("cross-site", "same-site")  # where a browser says that a request came from
READING = ("GET", "HEAD", "OPTIONS")
POLICY_VIOLATION = 1008


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a request goes no further."""

    status: int
    sentence: str


WRONG_HOST = Refusal(
    400,
    "This server does not answer to this name: use the address that you were given. The administrator lists its "
    "hosts in server.allowedHosts.",
)
WRONG_ORIGIN = Refusal(403, "This request came from a page of another site: open this server's own pages instead.")
NOT_SERVED = Refusal(404, "There is nothing here: go to the first page.")
NOT_SIGNED_IN = Refusal(401, "You are not signed in: open the first page and sign in there.")
NO_TOKEN = Refusal(
    401, "This server is for whoever started it: open the address that it printed then, which ends in a token."
)
NOT_ALLOWED = Refusal(
    403,
    "You are signed in, but this account may not use this server: ask the administrator, who lists users in "
    "INSPECTOR_PEOPLE.",
)
NOT_THROUGH_PROXY = Refusal(401, "You are not signed in: open this server by the address of its sign-in page.")


class AccessControl:
    """Refuse what should not reach the pages' server.

    Args:
        app: What comes next.
        settings: Who may use the server.
        token: What an address or a cookie must have besides.
    """

    def __init__(self, app: ASGIApp, *, settings: Serving, token: AccessToken | None = None) -> None:
        self._app = app
        self._settings = settings
        self._token = token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it in one sentence."""
        if scope["type"] not in {"http", "websocket"}:
            await self._app(scope, receive, send)
            return
        request = HTTPConnection(scope)
        refusal = self._refusal(request)
        if refusal in (None, NO_TOKEN) and self._token and (admitted := self._token.admit(request)):
            await admitted(scope, receive, send)
            return
        if refusal is None:
            await self._app(scope, receive, self._with_secret(scope, send))
            return
        if changes_something(scope) or refusal is NOT_ALLOWED:
            record("refused", reason=refusal.sentence, person=called(request, self._settings))
        if scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.close", "code": POLICY_VIOLATION})
        else:
            answer = PlainTextResponse(refusal.sentence, status_code=refusal.status)
            await answer(scope, receive, send)

    def _with_secret(self, scope: Scope, send: Send) -> Send:
        """Give a browser its secret with a page, where others are served and nobody signs in."""
        if (
            scope["type"] != "http"
            or self._settings.sign_in != "none"
            or browser_secret(HTTPConnection(scope).cookies)
            or not serves_others()
        ):
            return send

        async def send_with_secret(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                if headers.get("Content-Type", "").startswith("text/html"):
                    headers.append("Set-Cookie", new_secret_cookie())
                    headers["Cache-Control"] = NO_STORE  # or a proxy's cache would give it to several browsers
            await send(message)

        return send_with_secret

    def _refusal(self, request: HTTPConnection) -> Refusal | None:
        path = local_path(request.scope)
        if path == HEALTH and request.scope["type"] == "http":
            return None  # a load balancer asks by address, and learns one word
        if len(request.headers.getlist("Host")) > 1 or not is_host_allowed(request.headers.get("Host")):
            return WRONG_HOST
        if is_foreign(request.headers) if changes_something(request.scope) else _logs_out_elsewhere(request, path):
            return WRONG_ORIGIN
        if is_below(path, CLOSED):
            return NOT_SERVED
        if self._token and not self._token.is_kept_by(request):
            return NO_TOKEN
        return self._unless_signed_in(request, path)

    def _unless_signed_in(self, request: HTTPConnection, path: str) -> Refusal | None:
        if self._settings.sign_in == "proxy":
            names = request.headers.getlist(self._settings.header)  # a proxy that adds to a forged one sends two
            claims = proxy_claims(request.headers, self._settings) if len(names) == 1 else {}
            return self._unless_admitted(claims, NOT_THROUGH_PROXY)
        if self._settings.sign_in == "none" or _is_for_all(request.scope, path):
            return None
        return self._unless_admitted(cookie_claims(request.cookies), NOT_SIGNED_IN)

    def _unless_admitted(self, claims: Mapping[str, Any], unknown: Refusal) -> Refusal | None:
        if is_admitted(claims, self._settings):
            return None
        return NOT_ALLOWED if claims.get("is_logged_in") is True else unknown


def local_path(scope: Scope) -> str:
    """A request's path without the server's base path and outer slashes."""
    path = scope["path"].strip("/")
    base = (st.get_option("server.baseUrlPath") or "").strip("/")
    return path.removeprefix(base).strip("/") if is_below(path, (base,)) else path


def changes_something(scope: Scope) -> bool:
    """Whether a request is more than reading: a session, an upload, a removal."""
    return scope["type"] == "websocket" or scope["method"] not in READING


def is_foreign(headers: Headers) -> bool:
    """Whether a page of another site sent a request.

    Stricter than Streamlit, which trusts every page on localhost and asks a public service for
    this machine's address before it refuses any other.
    """
    origin = headers.get("Origin")
    if origin is None:  # no browser
        return False
    try:
        same = urlsplit(origin).netloc.lower() == (headers.get("Host") or "").lower()
    except ValueError:
        return True
    return not same and not is_allowed_origin(origin)


def _logs_out_elsewhere(request: HTTPConnection, path: str) -> bool:
    """Whether a page of another site would sign somebody out; browsers say so over TLS and on localhost."""
    return path == LOGOUT and request.headers.get("Sec-Fetch-Site") in ELSEWHERE


def is_below(path: str, places: tuple[str, ...]) -> bool:
    """Whether a path is one of some places or lies below one."""
    return any(path == place or path.startswith(f"{place}/") for place in places if place)


def _is_for_all(scope: Scope, path: str) -> bool:
    if path in BEFORE_SIGN_IN:
        return True
    return not changes_something(scope) and not is_below(path, PRIVATE)
