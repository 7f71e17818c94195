"""The token that opens a server for whoever started it: other users of a machine reach its loopback address, too."""

from __future__ import annotations

import hmac
import string
from functools import cache
from secrets import token_urlsafe
from urllib.parse import quote

from starlette.requests import HTTPConnection
from starlette.responses import Response

from inspector.serving.place import serves_others
from inspector.serving.settings import serving

QUERY = "token"
AS_SENT = string.punctuation  # a path has these already as an address writes them


class AccessToken:
    """A secret that an address brings once and a cookie keeps.

    Args:
        value: Of the cookie, and of the address that the terminal shows.
    """

    def __init__(self, value: str) -> None:
        self._value = value
        self._for_browser = token_urlsafe()

    @property
    def query(self) -> str:
        """For the address that the terminal shows."""
        return f"?{QUERY}={self._value}"

    @property
    def query_once(self) -> str:
        """For the browser that the server opens: other users see its command line, so this works once."""
        return f"?{QUERY}={self._for_browser}"

    def is_kept_by(self, request: HTTPConnection) -> bool:
        """Whether a browser has the cookie."""
        return _same(request.cookies.get(_cookie(request), ""), self._value)

    def admit(self, request: HTTPConnection) -> Response | None:
        """Give the cookie to a browser whose address has the token, and send it to that address without it."""
        given = request.query_params.get(QUERY)
        if given is None or request.scope["type"] != "http":
            return None
        if _same(given, self._for_browser):
            self._for_browser = token_urlsafe()
        elif not _same(given, self._value) and not self.is_kept_by(request):
            return None
        address = request.url.remove_query_params(QUERY)
        query = f"?{address.query}" if address.query else ""
        headers = {
            "Location": f"/{quote(address.path.lstrip('/'), safe=AS_SENT)}{query}",
            "Set-Cookie": f"{_cookie(request)}={self._value}; Path=/; HttpOnly; SameSite=Lax",
        }
        return Response(status_code=303, headers=headers)


@cache
def access_token() -> AccessToken | None:
    """This server's token: the one of the settings, or a new one where it serves this machine alone."""
    value = serving().token
    if value is None and not serves_others():
        value = token_urlsafe()
    return AccessToken(value) if value else None


def _same(given: str, secret: str) -> bool:
    return hmac.compare_digest(given.encode("utf-8", "replace"), secret.encode())


def _cookie(request: HTTPConnection) -> str:
    """Browsers keep cookies by host: servers on other ports of this machine have others."""
    _, port = request.scope.get("server") or ("", "")
    return f"inspector_token_{port}"
