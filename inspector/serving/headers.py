"""Headers that every answer carries.

The content policy is as strict as Streamlit 1.67, plotly.js and the pages' own components allow;
`tests/browser/test_links.py` visits every page and fails at any violation. What it cannot do
without: styles written by scripts (emotion, plotly), `blob:` scripts (components are imported from
memory), compiled WebAssembly (protobuf's integers), fonts from `data:` (Streamlit's own),
and images from `data:` and `blob:` (charts, downloads).
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from h11 import LocalProtocolError
from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from streamlit.file_util import get_static_dir

INLINE_SCRIPT = re.compile(r"<script>(.*?)</script>", re.DOTALL)
UNUSED = (
    "accelerometer",
    "autoplay",
    "browsing-topics",
    "camera",
    "display-capture",
    "encrypted-media",
    "gamepad",
    "geolocation",
    "gyroscope",
    "hid",
    "idle-detection",
    "local-fonts",
    "magnetometer",
    "microphone",
    "midi",
    "payment",
    "picture-in-picture",
    "publickey-credentials-get",
    "screen-wake-lock",
    "serial",
    "usb",
    "window-management",
    "xr-spatial-tracking",
)
NO_STORE = "no-store"


def content_policy(scripts: Iterable[str] = ()) -> str:
    """The Content-Security-Policy.

    Args:
        scripts: Hashes of the scripts that stand in the page itself, as "sha256-…".
    """
    inline = "".join(f" '{digest}'" for digest in scripts)
    rules = {
        "default-src": "'none'",
        "script-src": f"'self' 'wasm-unsafe-eval' blob:{inline}",
        "style-src": "'self' 'unsafe-inline'",
        "img-src": "'self' data: blob:",
        "font-src": "'self' data:",
        "connect-src": "'self'",
        "worker-src": "'self' blob:",
        "form-action": "'none'",
        "base-uri": "'none'",
        "frame-ancestors": "'none'",
    }
    return "; ".join(f"{name} {sources}" for name, sources in rules.items())


def inline_scripts() -> tuple[str, ...]:
    """Hashes of the scripts that stand in the index page of this Streamlit."""
    index = (Path(get_static_dir()) / "index.html").read_text("utf-8")
    return tuple(
        f"sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}"
        for script in INLINE_SCRIPT.findall(index)
    )


def security_headers() -> dict[str, str]:
    """The headers, by name."""
    return {
        "Content-Security-Policy": content_policy(inline_scripts()),
        "X-Content-Type-Options": "nosniff",
        "X-Frame-Options": "DENY",
        "Referrer-Policy": "no-referrer",  # links name checkpoints
        "Permissions-Policy": ", ".join(f"{name}=()" for name in UNUSED),
        "Cross-Origin-Opener-Policy": "same-origin",
        "Cross-Origin-Embedder-Policy": "require-corp",
        "Cross-Origin-Resource-Policy": "same-origin",
        "X-Permitted-Cross-Domain-Policies": "none",
        "X-Robots-Tag": "noindex, nofollow",
    }


class Headers:
    """Add the security headers to every answer.

    An answer that does not say how long it may be kept is kept nowhere; cookies that go over TLS
    go over nothing else.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._headers = security_headers()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, and its answer back with the headers."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._add(MutableHeaders(scope=message), is_tls=scope.get("scheme") == "https")
            with suppress(LocalProtocolError):  # a malformed body was refused by the web server
                await send(message)

        await self._app(scope, receive, send_with_headers)

    def _add(self, headers: MutableHeaders, *, is_tls: bool) -> None:
        for name, value in self._headers.items():
            headers[name] = value
        headers.setdefault("Cache-Control", NO_STORE)
        if is_tls:
            cookies = headers.getlist("Set-Cookie")
            del headers["Set-Cookie"]
            for cookie in cookies:
                headers.append("Set-Cookie", _secured(cookie))


def _secured(cookie: str) -> str:
    has = "; secure" in cookie.lower()
    return cookie if has else f"{cookie}; Secure"


async def failure(request: Request, error: Exception) -> Response:
    """What the server answers where it failed: the reason stands in its log alone."""
    return PlainTextResponse(
        "The server could not answer this request: reload the page, then try again.",
        status_code=500,
        headers={**security_headers(), "Cache-Control": NO_STORE},
    )
