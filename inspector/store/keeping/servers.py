"""Tell which servers run on a home: each shows itself in a folder of its own, locked as long as its process lives."""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from inspector.results.limits import LimitInForce, RunningServer, ServerLimits
from inspector.settings import Settings
from inspector.store.files import FRESH, acquire, below, fresh_folder, remove_folder, write_atomically

SERVERS = "servers"  # below home
SHOWN = "server.json"
TRIED = ("restrictions", "missing")  # what a worker says of this machine


class ShownServer:
    """The folder in which this process shows itself as a server.

    Args:
        settings: Of the home.

    Raises:
        OSError: If nothing can be written there.
    """

    def __init__(self, settings: Settings) -> None:
        self._folder, self._lock = fresh_folder(settings.home / SERVERS, uuid.uuid4().hex)

    def show(self, limits: ServerLimits) -> None:
        """Replace what is shown: the server, its limits, and the setting of its sandbox."""
        shown = {name: value for name, value in asdict(limits).items() if name not in TRIED}
        write_atomically(self._folder / SHOWN, json.dumps(shown))

    def close(self) -> None:
        """Show nothing any more."""
        with suppress(OSError):
            remove_folder(self._folder)
        if self._lock is not None:
            os.close(self._lock)


def running_servers(settings: Settings) -> tuple[tuple[RunningServer, ServerLimits], ...]:
    """The servers that run on this home now, the latest first, with their limits; what killed ones left goes."""
    found = []
    for folder in below(settings.home / SERVERS):
        if FRESH.fullmatch(folder.name) and _is_alive(folder):
            with suppress(OSError, ValueError, TypeError, KeyError):  # it is just being made, or removed
                found.append(_read(folder / SHOWN))
    return tuple(sorted(found, key=lambda each: each[0].since, reverse=True))


def server_lines(servers: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """A sentence about each server, of its plain fields, and what is wrong with it; one where none runs."""
    if not servers:
        yield "No server runs on this home: what follows holds for one that is started with this shell's settings."
    for server in servers:
        yield f"A server runs: process {server['pid']}, version {server['version']}, since {server['since']}."
        yield from server["not_ready"]


def _read(path: Path) -> tuple[RunningServer, ServerLimits]:
    shown = json.loads(path.read_text("utf-8"))
    server = RunningServer(**shown["server"] | {"not_ready": tuple(shown["server"]["not_ready"])})
    limits = tuple(LimitInForce(**each) for each in shown["limits"])
    return server, ServerLimits(limits, shown["confinement"], (), (), server)


def _is_alive(folder: Path) -> bool:
    try:
        descriptor = acquire(folder)
    except OSError:  # of another user, or just being removed
        return False
    if descriptor is None:
        return True
    try:
        with suppress(OSError):
            remove_folder(folder)
    finally:
        os.close(descriptor)
    return False
