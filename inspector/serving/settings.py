"""Settings of a server that serves others, from environment variables.

Apart from `inspector.settings`, which every worker process is given: a worker knows no secret.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Literal, get_args

from inspector.errors import SettingsError
from inspector.serving.log import LogLines

SignIn = Literal["none", "oidc", "proxy"]
SECRET_CHARACTERS = 16  # at least
TOKEN = re.compile(rf"[\w-]{{{SECRET_CHARACTERS},}}", re.ASCII)
NO_TOKEN = "off"
PORTS = 65_536


@dataclass(frozen=True, slots=True)
class Serving:
    """Who may use the server, whether they may name paths of it, and what they see first."""

    paths: bool  # folders below the roots may be opened by path although others are served
    sign_in: SignIn
    people: tuple[str, ...]  # "ada@example.org" or "@example.org", small letters; empty: all
    header: str  # in which a proxy names the person
    secret: str = field(repr=False)  # that the proxy sends with it; empty: none is asked for
    token: str | None = field(default=None, repr=False)  # None: made anew at each start; empty: none is asked for
    admins: tuple[str, ...] = ()  # as people: who sees and deletes everybody's uploads; empty: nobody
    log: LogLines = "text"
    metrics: tuple[str, int] | None = None  # host and port at which Prometheus asks; None: there are none
    opened: str = ""  # reference that whoever started the server wants open at first; empty: a demo


def read_serving(environ: Mapping[str, str]) -> Serving:
    """Read the settings from an environment.

    Raises:
        SettingsError: If a variable holds a value that cannot be used; the text names it.
    """
    secret = environ.get("INSPECTOR_PROXY_SECRET") or ""
    if secret and (len(secret) < SECRET_CHARACTERS or not secret.isascii()):
        raise SettingsError(
            f"INSPECTOR_PROXY_SECRET has fewer than {SECRET_CHARACTERS} characters or is not "
            "ASCII: use a long random one, such as the output of `openssl rand -hex 32`."
        )
    people, admins = _people(environ, "INSPECTOR_PEOPLE"), _people(environ, "INSPECTOR_ADMINS")
    sign_in = _choice(environ, "INSPECTOR_SIGN_IN", "none", get_args(SignIn))
    if people and sign_in == "none":
        raise SettingsError(
            "INSPECTOR_PEOPLE lists who may use the server, but sign-in is off: set "
            "INSPECTOR_SIGN_IN to oidc or proxy, or remove the list."
        )
    if admins and sign_in == "none":
        raise SettingsError(
            "INSPECTOR_ADMINS lists who sees all uploads, but sign-in is off: set INSPECTOR_SIGN_IN to oidc or proxy, "
            "or remove the list."
        )
    return Serving(
        paths=_yes_or_no(environ, "INSPECTOR_PATHS"),
        sign_in=sign_in,
        people=people,
        admins=admins,
        header=environ.get("INSPECTOR_PROXY_HEADER") or "X-Forwarded-User",
        secret=secret,
        token=_token(environ),
        log=_choice(environ, "INSPECTOR_LOG", "text", get_args(LogLines)),
        metrics=_host_and_port(environ, "INSPECTOR_METRICS"),
        opened=environ.get("INSPECTOR_OPEN") or "",
    )


@cache
def serving() -> Serving:
    """The settings of this process, read once."""
    return read_serving(os.environ)


def _choice(environ: Mapping[str, str], name: str, usual: str, choices: tuple[str, ...]) -> Any:
    value = environ.get(name) or usual
    if value not in choices:
        raise SettingsError(f"{name} is {value!r}: set it to one of {', '.join(choices)}.")
    return value


def _token(environ: Mapping[str, str]) -> str | None:
    value = environ.get("INSPECTOR_TOKEN") or None
    if value == NO_TOKEN:
        return ""
    if value and not TOKEN.fullmatch(value):
        raise SettingsError(
            f"INSPECTOR_TOKEN has fewer than {SECRET_CHARACTERS} characters, or others than letters, digits, - and _: "
            f"use the output of `openssl rand -hex 32`, or {NO_TOKEN}."
        )
    return value


def _host_and_port(environ: Mapping[str, str], name: str) -> tuple[str, int] | None:
    value = (environ.get(name) or "").strip()
    host, _, port = value.rpartition(":")
    if value and not (port.isascii() and port.isdecimal() and 0 < int(port[:6]) < PORTS):
        raise SettingsError(f"{name} is {value!r}: set it to a port, or to HOST:PORT such as 127.0.0.1:9464.")
    return (host.strip("[]") or "127.0.0.1", int(port)) if value else None


def _yes_or_no(environ: Mapping[str, str], name: str) -> bool:
    value = environ.get(name) or "0"
    if value not in {"0", "1"}:
        raise SettingsError(f"{name} is {value!r}: set it to 0 or 1.")
    return value == "1"


def _people(environ: Mapping[str, str], name: str) -> tuple[str, ...]:
    people = tuple(entry.strip().lower() for entry in (environ.get(name) or "").split(",") if entry.strip())
    for entry in people:
        if "*" in entry or entry == "@":
            raise SettingsError(
                f"{name} contains {entry!r}: write addresses (ada@example.org) or domains "
                "(@example.org), separated by commas."
            )
    return people
