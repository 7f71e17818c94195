"""An OpenID Connect provider on loopback: discovery, consent, code with PKCE, signed tokens."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from joserfc import jwt
from joserfc.jwk import RSAKey

CLIENT_ID = "inspector-tests"
CALLBACK = re.compile(r"http://localhost:\d+/oauth2callback")
PEOPLE = {
    "ada@example.org": True,  # whether the provider has verified the address
    "eve@elsewhere.example": True,
    "mallory@example.org": False,
}


@dataclass
class Provider:
    """What the provider knows."""

    url: str = ""
    client_secret: str = field(default_factory=lambda: secrets.token_urlsafe(24))
    key: RSAKey = field(default_factory=lambda: RSAKey.generate_key(2048, {"kid": "test"}))
    codes: dict[str, dict[str, str]] = field(default_factory=dict)  # used once
    tokens: int = 0  # given out

    def secrets_file(self) -> str:
        """What the app's secrets.toml says."""
        return f"""[auth]
redirect_uri = "http://localhost:{{port}}/oauth2callback"
cookie_secret = "{secrets.token_hex(32)}"
client_id = "{CLIENT_ID}"
client_secret = "{self.client_secret}"
server_metadata_url = "{self.url}/.well-known/openid-configuration"
"""

    def metadata(self) -> dict[str, Any]:
        return {
            "issuer": self.url,
            "authorization_endpoint": f"{self.url}/authorize",
            "token_endpoint": f"{self.url}/token",
            "jwks_uri": f"{self.url}/jwks",
            "end_session_endpoint": f"{self.url}/logout",
            "response_types_supported": ["code"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["RS256"],
            "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": ["client_secret_basic", "client_secret_post"],
        }

    def consent_page(self, asked: dict[str, str]) -> str:
        """Who are you? Nothing is given to a client that is not registered."""
        if asked["client_id"] != CLIENT_ID or not CALLBACK.fullmatch(asked["redirect_uri"]):
            raise PermissionError
        if asked["code_challenge_method"] != "S256" or asked["response_type"] != "code":
            raise PermissionError
        links = (
            f'<p><a href="/approve?{html.escape(urlencode({**asked, "person": person}))}">{person}</a></p>'
            for person in PEOPLE
        )
        return f"<!doctype html><title>Who are you?</title>{''.join(links)}"

    def approve(self, asked: dict[str, str]) -> str:
        """Where the browser goes with its code."""
        code = secrets.token_urlsafe(16)
        self.codes[code] = asked
        answer = urlencode({"code": code, "state": asked["state"]})
        return f"{asked['redirect_uri']}?{answer}"

    def exchange(self, asked: dict[str, str], authorization: str) -> dict[str, Any]:
        """A token for a code, if the client and its verifier are the right ones."""
        asked = {**asked, **_basic(authorization)}
        given = self.codes.pop(asked["code"])
        challenge = base64.urlsafe_b64encode(hashlib.sha256(asked["code_verifier"].encode()).digest()).rstrip(b"=")
        if (
            asked["client_secret"] != self.client_secret
            or asked["redirect_uri"] != given["redirect_uri"]
            or challenge.decode() != given["code_challenge"]
        ):
            raise PermissionError
        now = int(time.time())
        person = given["person"]
        claims = {
            "iss": self.url, "aud": CLIENT_ID, "sub": person, "iat": now, "exp": now + 600,
            "nonce": given["nonce"], "email": person, "email_verified": PEOPLE[person],
        }  # fmt: skip
        self.tokens += 1
        header = {"alg": "RS256", "kid": "test"}
        return {
            "access_token": secrets.token_urlsafe(16), "token_type": "Bearer", "expires_in": 600,
            "id_token": jwt.encode(header, claims, self.key),
        }  # fmt: skip


def _basic(authorization: str) -> dict[str, str]:
    if not authorization.startswith("Basic "):
        return {}
    user, _, password = base64.b64decode(authorization[6:]).decode().partition(":")
    return {"client_id": user, "client_secret": password}


def _flat(query: str) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(query).items()}


class Handler(BaseHTTPRequestHandler):
    """One request; the server that took it knows the provider."""

    @property
    def provider(self) -> Provider:
        assert isinstance(self.server, ProviderServer)
        return self.server.provider

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        asked, provider = _flat(parts.query), self.provider
        routes: dict[str, Callable[[], None]] = {
            "/.well-known/openid-configuration": lambda: self._json(provider.metadata()),
            "/jwks": lambda: self._json({"keys": [provider.key.as_dict(private=False)]}),
            "/authorize": lambda: self._send(200, provider.consent_page(asked)),
            "/approve": lambda: self._redirect(provider.approve(asked)),
            "/favicon.ico": lambda: self._send(200, ""),
            "/logout": lambda: self._redirect(asked["post_logout_redirect_uri"]),
        }
        self._answer(routes.get(parts.path, lambda: self._send(404, "nothing here")))

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        authorization = self.headers.get("Authorization", "")
        provider = self.provider
        self._answer(lambda: self._json(provider.exchange(_flat(body), authorization)))

    def _answer(self, route: Callable[[], None]) -> None:
        try:
            route()
        except (KeyError, PermissionError) as error:
            self._send(400, f"refused: {error!r}")

    def _json(self, value: Any) -> None:
        self._send(200, json.dumps(value), kind="application/json")

    def _redirect(self, where: str) -> None:
        self._send(302, "", Location=where)

    def _send(self, status: int, text: str, *, kind: str = "text/html", **more: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(text.encode())))
        for name, value in more.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Say nothing."""


class ProviderServer(ThreadingHTTPServer):
    """Serves a provider on a free port of this machine."""

    def __init__(self, provider: Provider) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.provider = provider
        provider.url = f"http://localhost:{self.server_port}"


@contextmanager
def running_provider() -> Iterator[Provider]:
    """Run a provider while a test needs it."""
    provider = Provider()
    with ProviderServer(provider) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield provider
        server.shutdown()
