"""Requests that a stranger can send: every route, wrong methods, traversal, malformed bytes."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import urlsplit

SECONDS = 10.0  # to wait for an answer
ENOUGH = 2_000_000  # bytes read of an answer
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"  # before the answer, for those who expect it

ROUTES = (
    "",
    "index.html",
    "overview",
    "no/such/page",
    "favicon.png",
    "manifest.json",
    "robots.txt",
    "static/nothing.js",
    "_stcore/health",
    "_stcore/ready",
    "_stcore/host-config",
    "_stcore/metrics",
    "_stcore/script-health-check",
    "_stcore/stream",
    "_stcore/agent/openapi.json",
    "_stcore/agent/interact",
    "_stcore/agent/mcp",
    "_stcore/upload_file/session/file",
    "_stcore/bidi-components/vocabulary_map/x.js",
    "_stcore/nothing",
    "media/0123.csv",
    "component/x/index.html",
    "app/static/x",
    "auth/login",
    "auth/login?provider=x",
    "auth/logout",
    "oauth2callback",
    "oauth2callback?state=x&code=y",
    "oauth2callback?error=x",
    ".streamlit/secrets.toml",
    ".streamlit/config.toml",
    ".git/config",
    "app.py",
    "pages/lens.py",
)
METHODS = ("GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT", "BREW")
FOLDERS = (
    "",
    "static/",
    "media/",
    "component/x/",
    "app/static/",
    "_stcore/upload_file/",
    "_stcore/bidi-components/vocabulary_map/",
)
CLIMBS = (
    "../../../../etc/passwd",
    "..%2f..%2f..%2f..%2fetc%2fpasswd",
    "%2e%2e/%2e%2e/%2e%2e/etc/passwd",
    "..%5c..%5cwindows%5cwin.ini",
    "..\\..\\etc\\passwd",
    "%00",
    "%ff%fe",
    "/etc/passwd",
    "//etc/passwd",
    "C:/windows/win.ini",
    "%252e%252e%252fetc%252fpasswd",
    "....//....//etc/passwd",
    "a" * 5000,
    "%",
    "%zz",
)
BOUNDARY = "----scan"
TWO_HOSTS = "two hosts"  # in one request
MULTIPART = f"multipart/form-data; boundary={BOUNDARY}"
FORM = f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="f"; filename="x"\r\n\r\nPK\r\n--{BOUNDARY}--\r\n'
UPGRADE = "Upgrade: websocket\r\nConnection: Upgrade\r\n"
KEY = "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"


@dataclass(frozen=True, slots=True)
class Asked:
    """A request's name and its bytes."""

    name: str
    data: bytes


def plain(method: str, target: str, host: str, *lines: str, body: str = "") -> Asked:
    """A request of ordinary shape."""
    head = [f"{method} {target} HTTP/1.1", f"Host: {host}", "Connection: close", *lines]
    if body:
        head.append(f"Content-Length: {len(body)}")
    return Asked(
        f"{method} {target[:100]} {'; '.join(lines)[:60]}".strip(), ("\r\n".join([*head, "", body])).encode("latin-1")
    )


def ordinary(host: str) -> Iterator[Asked]:
    """Every route by every method, and every climb below every folder."""
    for route in ROUTES:
        for method in METHODS:
            yield plain(method, f"/{route}", host)
    for folder in FOLDERS:
        for climb in CLIMBS:
            yield plain("GET", f"/{folder}{climb}", host)
            yield plain("PUT", f"/{folder}{climb}", host)


def odd(host: str, *, asset: str) -> Iterator[Asked]:
    """Headers that make no sense.

    Args:
        host: The server's name and port.
        asset: The path of a file that is served.
    """
    for value in ("bytes=9-1", "bytes=99999999-", "lines=1-2", "bytes=--", "bytes=0-0,5-6", "x" * 9):
        for target in (asset, "/media/x"):
            yield plain("GET", target, host, f"Range: {value}")
    for line in (
        'Cookie: _streamlit_xsrf=2|x|y|z; _streamlit_user=e30.x.y; _streamlit_session="',
        "Origin: http://evil.example",
        "Origin: null",
        "Origin: http://[",
        'If-None-Match: "',
        "If-Modified-Since: never",
        "Accept-Encoding: br;q=x",
        'X-Forwarded-For: "<x>',
        "X-Forwarded-Proto: gopher",
        "X-Forwarded-User: admin",
        "Transfer-Encoding: gzip",
        "Content-Length: -1",
        "Content-Length: 1e9",
        "Expect: 100-continue",
        "Upgrade: h2c",
        f"X-Long: {'x' * 70_000}",
        f"Cookie: {'x=y; ' * 5000}",
    ):
        for method, target in (("GET", "/"), ("PUT", "/_stcore/upload_file/s/f")):
            yield plain(method, target, host, line)
    yield plain("GET", "/", "evil.example")
    yield plain("GET", "/", "[::1")
    yield plain("GET", "/", "a b")
    yield from _uploads(host)


def _uploads(host: str) -> Iterator[Asked]:
    target = "/_stcore/upload_file/session/file"
    kind = f"Content-Type: {MULTIPART}"
    for line in ("X-Xsrftoken: x", "X-Xsrftoken: 2|a|b|1", "Cookie: _streamlit_xsrf=x"):
        yield plain("PUT", target, host, kind, line, body=FORM)
    # One that passes XSRF: token and cookie agree, as for any browser.
    token = "2|00000000|00000000000000000000000000000000|1700000000"
    pair = (f"X-Xsrftoken: {token}", f"Cookie: _streamlit_xsrf={token}")
    yield plain("PUT", target, host, kind, *pair, body=FORM)
    yield plain("PUT", target, host, "Content-Type: text/plain", *pair, body=FORM)
    yield plain("PUT", target, host, kind, *pair, body=FORM[:40])
    yield plain("DELETE", target, host, *pair)


def malformed(host: str) -> Iterator[Asked]:
    """Bytes that are no HTTP, or nearly none."""
    for name, data in (
        ("no HTTP", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(200)),
        ("no version", b"GET /\r\n\r\n"),
        ("HTTP/9.9", f"GET / HTTP/9.9\r\nHost: {host}\r\n\r\n".encode()),
        ("no host", b"GET / HTTP/1.1\r\nConnection: close\r\n\r\n"),
        (TWO_HOSTS, f"GET / HTTP/1.1\r\nHost: {host}\r\nHost: b\r\nConnection: close\r\n\r\n".encode()),
        ("a header without a colon", f"GET / HTTP/1.1\r\nHost: {host}\r\nX\r\n\r\n".encode()),
        ("bytes in the target", b"GET /\xff\x00 HTTP/1.1\r\nHost: " + host.encode() + b"\r\n\r\n"),
        ("absolute target", b"GET http://evil.example/ HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n"),
        (
            "bad chunks",
            f"PUT /_stcore/upload_file/s/f HTTP/1.1\r\nHost: {host}\r\n"
            "Transfer-Encoding: chunked\r\n\r\nzz\r\n".encode(),
        ),
        ("half an upgrade", f"GET /_stcore/stream HTTP/1.1\r\nHost: {host}\r\n{UPGRADE}\r\n".encode()),
        (
            "an upgrade from elsewhere",
            f"GET /_stcore/stream HTTP/1.1\r\nHost: {host}\r\n{UPGRADE}{KEY}"
            "Origin: http://evil.example\r\n\r\n".encode(),
        ),
        ("an upgrade elsewhere", f"GET /media/x HTTP/1.1\r\nHost: {host}\r\n{UPGRADE}{KEY}\r\n".encode()),
    ):
        yield Asked(name, data)


def exchange(url: str, data: bytes) -> bytes:
    """Send bytes; give what comes back until the server closes, or says nothing more."""
    parts = urlsplit(url)
    answer = bytearray()
    with socket.create_connection((parts.hostname, parts.port), timeout=SECONDS) as peer:
        try:
            peer.sendall(data)
            while len(answer) < ENOUGH and (piece := peer.recv(65536)):
                answer += piece
        except (TimeoutError, ConnectionError):
            pass
    return bytes(answer).removeprefix(CONTINUE)
