"""Where this server listens, and what that allows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from ipaddress import ip_address

import streamlit as st

from inspector.errors import SettingsError
from inspector.settings import Settings, settings
from serving.settings import serving


def serves_others() -> bool:
    """Whether people beyond this machine may reach the server.

    They may if it listens on more than the loopback address, if it answers to names other than
    this machine's own (then a proxy passes requests on), or if people sign in.
    """
    hosts = st.get_option("server.allowedHosts")
    return (
        listens_beyond_loopback()
        or not hosts
        or not all(is_local(host) for host in hosts)
        or serving().sign_in != "none"
    )


def listens_beyond_loopback() -> bool:
    """Whether the server listens on an address that other machines reach."""
    return not is_local(st.get_option("server.address") or "")


def is_local(host: str) -> bool:
    """Whether a name or an address means this machine alone."""
    host = host.strip().rstrip(".").strip("[]").lower()
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def paths_are_open() -> bool:
    """Whether the pages may open folders of this machine by path."""
    return bool(settings().roots) and (serving().paths or not serves_others())


def served_settings() -> Settings:
    """The settings under which the pages' engine works.

    Without folders where none are open; where other machines reach the server, with a sandbox.
    """
    found = settings()
    roots = found.roots if paths_are_open() else ()
    required = found.confinement == "auto" and listens_beyond_loopback()
    return replace(found, roots=roots, confinement="required" if required else found.confinement)


def check_confinement(found: Settings, missing: Callable[[], Sequence[str]]) -> None:
    """See that workers can be confined where strangers may send files.

    Args:
        found: The settings.
        missing: Tries, and tells what the machine lacks.

    Raises:
        SettingsError: If the server listens beyond localhost and something is missing.
    """
    if found.confinement == "off" or not listens_beyond_loopback():
        return
    if lacking := missing():
        raise SettingsError(
            "The server listens beyond localhost, but workers cannot be sandboxed on this machine "
            f"({', '.join(lacking)} is missing): make it listen on localhost, or set INSPECTOR_CONFINEMENT to off to "
            "read strangers' files without a sandbox."
        )
