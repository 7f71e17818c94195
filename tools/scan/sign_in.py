"""The scan of servers where people sign in: behind a proxy, and with a provider of OpenID Connect."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator
from urllib.parse import urlsplit

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.web.server.starlette.starlette_app_utils import create_signed_value

from inspector.serving.websocket_filter import STRANGER_NBYTES
from tools.scan.leaks import Watch
from tools.scan.requests import exchange, ordinary, plain
from tools.scan.scanning import QUIET_SECONDS, ask, ask_everything
from tools.scan.sessions import session

USER = "_streamlit_user"  # the cookie of who signed in
LISTED, UNLISTED = "ada@example.org", "eve@elsewhere.example"
PAGES = ("overview", "server", "lens")
DEMO = b"demo-bert"  # that whoever may use the server sees
PRIVATE = ("media/0123.csv", "component/x/index.html", "app/static/x", "_stcore/upload_file/session/file")
NO_PROXYS = (  # headers of requests that no proxy made; one line each
    (),
    ("X-Forwarded-User: ada",),
    ("X-Forwarded-User: ada", "X-Inspector-Secret: a-guess-of-somebody"),
    ("X-Forwarded-User: ada", "X-Forwarded-User: eve", "X-Inspector-Secret: {secret}"),
    ("X-Inspector-Secret: {secret}",),
)


def scan_behind_proxy(url: str, watch: Watch, secret: str) -> None:
    """Ask a server that sits behind a proxy what only the proxy may ask.

    Args:
        url: The server's own address, past the proxy.
        watch: Remembers what it gave away.
        secret: The proxy's, which lets one name in and no other.
    """
    ask_everything(url, watch)
    for lines in NO_PROXYS:
        headers = [line.format(secret=secret) for line in lines]
        _expect_refusals(url, ("", "overview", "_stcore/stream", *PRIVATE), headers, watch)


def secrets_file(cookie_secret: str, client_secret: str) -> str:
    """What a server is told of a provider; this one is asked by nobody who signs in."""
    return f"""[auth]
redirect_uri = "http://localhost:{{port}}/oauth2callback"
cookie_secret = "{cookie_secret}"
client_id = "scan"
client_secret = "{client_secret}"
server_metadata_url = "http://localhost:9/.well-known/openid-configuration"
"""


def scan_oidc(url: str, watch: Watch, secret: str) -> None:
    """Ask a server that lets people of example.org in as others, and as one of them.

    Args:
        url: The server's.
        watch: Remembers what it gave away.
        secret: With which it signs the cookies of those who signed in.
    """
    for asked in ordinary(urlsplit(url).netloc):
        ask(url, asked, watch)
    for cookie in _strangers(url, secret):
        _expect_refusals(url, PRIVATE, [f"Cookie: {cookie}"], watch)
        _expect_one_page(url, cookie, watch)
    with session(url, watch.look, _cookie(url, secret)) as person:
        for slug in PAGES:
            person.visit(slug)
        for box in person.boxes:
            watch.note("failure", "an error box", box[:80])
        if not person.uploader:
            watch.note("failure", "sign-in", "somebody who is listed sees no page")


def _expect_refusals(url: str, routes: tuple[str, ...], headers: list[str], watch: Watch) -> None:
    for route in routes:
        asked = plain("GET", f"/{route}", urlsplit(url).netloc, *headers)
        if (status := exchange(url, asked.data)[9:12]) not in (b"400", b"401", b"403"):
            watch.note("failure", asked.name, f"a stranger was answered with {status!r}")


def _expect_one_page(url: str, cookie: str, watch: Watch) -> None:
    """Let a stranger ask for pages, and send more than strangers may."""

    def look(data: bytes, where: str) -> None:
        watch.look(data, where)
        if DEMO in data:
            watch.note("failure", where, "a stranger sees a checkpoint")

    with session(url, look, cookie) as stranger:
        for slug in PAGES:
            stranger.visit(slug)
        if stranger.uploader or stranger.tables:
            watch.note("failure", "sign-in", "a stranger sees more than the page with the button")
        request = BackMsg()
        request.rerun_script.query_string = "x" * STRANGER_NBYTES
        stranger.send(request, "a stranger's message that is too long")
        if stranger.drain(QUIET_SECONDS):
            watch.note("failure", "a stranger's message that is too long", "it was read")


def _strangers(url: str, secret: str) -> Iterator[str]:
    """Cookies of those who are not signed in, or not listed."""
    yield ""
    yield f'{USER}={{"is_logged_in":true}}'
    yield _cookie(url, secrets.token_hex(32))
    yield _cookie(url, secret, name="_streamlit_user_tokens")
    yield _cookie(url, secret, origin="http://elsewhere.example")
    yield _cookie(url, secret, email=UNLISTED)
    yield _cookie(url, secret, email_verified=False)


def _cookie(url: str, secret: str, *, name: str = USER, **claims: object) -> str:
    """The cookie of somebody who signed in, as the server would sign it."""
    told = {"is_logged_in": True, "email": LISTED, "email_verified": True, "sub": "1", "origin": url, **claims}
    return f"{USER}={create_signed_value(secret, name, json.dumps(told)).decode()}"
