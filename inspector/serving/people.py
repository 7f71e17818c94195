"""Who is asking, and whether they may use this server.

With OpenID Connect, Streamlit's signed cookie says who somebody is. Streamlit reads it for the
pages alone; here it is read for uploads and downloads too, by Streamlit's own functions (which it
does not promise to keep: its version is pinned, and `tests/browser/test_sign_in.py` signs in).
"""

from __future__ import annotations

import hmac
import json
import re
from collections.abc import Mapping
from hashlib import sha256
from importlib.util import find_spec
from secrets import token_urlsafe
from typing import Any

from starlette.requests import HTTPConnection
from streamlit.auth_util import get_cookie_with_chunks, get_origin_from_redirect_uri, get_secrets_auth_section
from streamlit.web.server.server_util import get_cookie_secret
from streamlit.web.server.starlette.starlette_app_utils import decode_signed_value
from streamlit.web.server.starlette.starlette_server_config import USER_COOKIE_NAME

from inspector.errors import SettingsError
from inspector.program import how_to_add
from inspector.serving.log import digest
from inspector.serving.place import listens_beyond_loopback, serves_others
from inspector.serving.settings import SECRET_CHARACTERS, Serving

SECRET_HEADER = "X-Inspector-Secret"
PROVIDER_KEYS = {"client_id", "client_secret", "server_metadata_url"}
KEYS = {"redirect_uri", "cookie_secret"}
SECRET_COOKIE = "inspector_browser"
SECRET_BYTES, SECRET_SECONDS = 32, 400 * 24 * 3600  # browsers keep no cookie for longer
SECRET = re.compile(r"[\w-]{43}", re.ASCII)


def check_sign_in(settings: Serving) -> None:
    """See that sign-in can work as it is set.

    Raises:
        SettingsError: If something is missing; the text says what.
    """
    if settings.sign_in == "oidc":
        _check_oidc()
    if settings.sign_in == "proxy" and listens_beyond_loopback() and not settings.secret:
        raise SettingsError(
            "INSPECTOR_SIGN_IN is 'proxy' and the server listens beyond localhost, where anyone "
            "can send the proxy's header: make it listen on localhost, or set "
            f"INSPECTOR_PROXY_SECRET and have the proxy send it as {SECRET_HEADER}."
        )


def _check_oidc() -> None:
    if find_spec("authlib") is None:
        raise SettingsError(f"INSPECTOR_SIGN_IN is 'oidc', but Authlib is not installed: {how_to_add('auth')}.")
    missing = sorted(KEYS - set(get_secrets_auth_section()))
    if missing or not providers():
        raise SettingsError(
            "INSPECTOR_SIGN_IN is 'oidc', but .streamlit/secrets.toml is incomplete: set "
            f"{', '.join(sorted(KEYS | PROVIDER_KEYS))} in [auth]."
        )
    if len(get_cookie_secret()) < SECRET_CHARACTERS:
        raise SettingsError(
            f"The cookie_secret in [auth] has fewer than {SECRET_CHARACTERS} characters: use a "
            "long random one, such as the output of `openssl rand -hex 32`."
        )


def providers() -> tuple[str | None, ...]:
    """The providers that people may sign in with; None is the one without a name."""
    section = get_secrets_auth_section()
    if set(section) >= PROVIDER_KEYS:
        return (None,)
    return tuple(name for name, value in section.items() if isinstance(value, Mapping) and set(value) >= PROVIDER_KEYS)


def browser_secret(cookies: Mapping[str, str]) -> str:
    """What tells a browser from others where nobody signs in; empty: it has not been given that yet."""
    found = SECRET.fullmatch(str(cookies.get(SECRET_COOKIE)))
    return found[0] if found else ""


def new_secret_cookie() -> str:
    """A secret for a browser, as a header sets it: no script can read it, and no other site can send it."""
    secret = token_urlsafe(SECRET_BYTES)
    return f"{SECRET_COOKIE}={secret}; Path=/; Max-Age={SECRET_SECONDS}; HttpOnly; SameSite=Lax"


def cookie_claims(cookies: Mapping[str, str]) -> dict[str, Any]:
    """What the provider said of a person, from Streamlit's cookie; empty if nobody signed in."""

    def signed(name: str) -> bytes | None:
        value = cookies.get(name)
        if value is None:
            return None
        return decode_signed_value(get_cookie_secret(), name, value.encode("latin-1", "replace"))

    try:
        claims = json.loads(get_cookie_with_chunks(signed, USER_COOKIE_NAME) or b"{}")
    except (ValueError, RecursionError):
        return {}
    signed_in = isinstance(claims, dict) and claims.get("is_logged_in") is True
    if not signed_in or claims.get("origin") != get_origin_from_redirect_uri():
        return {}
    return claims


def proxy_claims(headers: Mapping[str, str], settings: Serving) -> dict[str, Any]:
    """What a proxy says of a person; empty if it names nobody or several, or is not the proxy."""
    given = headers.get(SECRET_HEADER) or ""
    if not hmac.compare_digest(given.encode("utf-8", "replace"), settings.secret.encode()):
        return {}
    name = (headers.get(settings.header) or "").strip()
    return {"is_logged_in": True, "email": name, "email_verified": True} if name and "," not in name else {}


def person_of(request: HTTPConnection, settings: Serving) -> str:
    """What tells who sends a request from everybody else; empty where the server is one person's."""
    if settings.sign_in == "none":
        return browser_secret(request.cookies)
    return identity_of(_claims(request, settings))


def owner_digest(person: str, settings: Serving) -> str:
    """What stands for somebody where an upload lists its owners; empty: everybody."""
    return sha256(f"{settings.sign_in} {person}".encode()).hexdigest() if person else ""


def sender_of(request: HTTPConnection, settings: Serving, *, shared: bool) -> str:
    """Who will own what a request sends: as `owner_digest`.

    Args:
        request: Of the browser.
        settings: Of sign-in.
        shared: There is a shared store, whose uploads are everybody's.
    """
    return owner_digest(person_of(request, settings), settings) if serves_others() and not shared else ""


def called(request: HTTPConnection, settings: Serving) -> str:
    """What the log calls who sends a request; empty: nobody, or the one whose server it is."""
    if settings.sign_in == "none":
        return digest(browser_secret(request.cookies))
    claims = _claims(request, settings)
    return name_of(claims) if claims.get("is_logged_in") is True else ""


def _claims(request: HTTPConnection, settings: Serving) -> dict[str, Any]:
    proxy = settings.sign_in == "proxy"
    return proxy_claims(request.headers, settings) if proxy else cookie_claims(request.cookies)


def is_admitted(claims: Mapping[str, Any], settings: Serving) -> bool:
    """Whether somebody who signed in may use the server.

    An address counts only where the provider says that it was verified: some let people write
    any address into their profile.
    """
    if claims.get("is_logged_in") is not True:
        return False
    return not settings.people or _is_listed(claims, settings.people)


def is_admin(claims: Mapping[str, Any], settings: Serving) -> bool:
    """Whether somebody who may use the server sees everybody's uploads."""
    return is_admitted(claims, settings) and _is_listed(claims, settings.admins)


def _is_listed(claims: Mapping[str, Any], people: tuple[str, ...]) -> bool:
    address = str(claims.get("email") or "").strip().lower()
    if claims.get("email_verified") is not True or not address:
        return False
    _, at, domain = address.rpartition("@")
    return address in people or (bool(at) and f"@{domain}" in people)


def identity_of(claims: Mapping[str, Any]) -> str:
    """What tells somebody who signed in from everybody else: the provider's own number, not what a profile says."""
    subject = claims.get("sub")
    return json.dumps([str(claims.get("iss") or ""), str(subject)]) if subject else name_of(claims)


def name_of(claims: Mapping[str, Any]) -> str:
    """What to call somebody who signed in."""
    return str(claims.get("email") or claims.get("name") or claims.get("sub") or "somebody")
