"""Where this server listens, and what that allows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from ipaddress import ip_address
from pathlib import Path

import streamlit as st

from inspector.errors import CheckpointError, SettingsError
from inspector.serving.settings import serving
from inspector.settings import EVERYWHERE, Settings, settings
from inspector.store.reference import origin_of


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


def open_roots() -> tuple[Path, ...]:
    """The folders below which the pages may open checkpoints by path; none: paths are closed.

    Where others are served, those of the settings, if a second setting opens them. On one's own machine those of
    the settings and what the server was started with; without a setting every folder, as on the command line.
    """
    found = settings()
    if serves_others():
        return found.roots if serving().paths else ()
    if found.roots:
        return (*found.roots, *_started_with())
    return EVERYWHERE if found.engine == "local" else ()  # a cluster's machines have settings of their own


def _started_with() -> tuple[Path, ...]:
    with suppress(CheckpointError):  # whoever opens it says that it is no reference
        if path := origin_of(serving().opened).path:
            real = path.resolve()
            return (real.parent if real.is_file() else real,)
    return ()


def paths_are_open() -> bool:
    """Whether the pages may open folders of this machine by path."""
    return bool(open_roots())


def served_settings() -> Settings:
    """The settings under which the pages' engine works.

    With the folders that are open; where other machines reach the server, with a sandbox.
    """
    found = settings()
    required = found.confinement == "auto" and listens_beyond_loopback()
    return replace(found, roots=open_roots(), confinement="required" if required else found.confinement)


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
