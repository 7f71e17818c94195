"""Verbs about the server and the store: start the one, and show what is in the other."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Iterator
from dataclasses import replace
from importlib.util import find_spec
from typing import Annotated, Any

import typer

from inspector.cli.answering import AsJson, app, refusals, show
from inspector.errors import RequestError
from inspector.program import app_script, lacks
from inspector.settings import MB, settings
from inspector.store.keeping.quota import account
from inspector.store.keeping.servers import running_servers, server_lines
from inspector.store.reference import find_reference
from inspector.text import bytes_text
from inspector.view.blocks import Bullets
from inspector.view.screen import ROWS, Screen, rows_of
from inspector.view.view import Headline

FIRST_PORT, LAST_PORT = 8501, 65_535
FIRST_FREE = 1_024  # that any user may listen on
PORTS = 20  # that are tried where none is asked for
STORE_MB = "INSPECTOR_STORE_MB"


@app.command()
def serve(
    checkpoint: Annotated[
        str | None, typer.Argument(metavar="CHECKPOINT", help="Checkpoint to open first; any form that verbs take.")
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(
            envvar="STREAMLIT_SERVER_PORT", help=f"Port on which the app listens; default: from {FIRST_PORT} on."
        ),
    ] = None,
    address: Annotated[
        str | None, typer.Option(help="Address on which the app listens; 0.0.0.0: other machines reach it.")
    ] = None,
    host: Annotated[
        list[str] | None, typer.Option(help="Name under which other machines reach the app (repeatable).")
    ] = None,
) -> None:
    """Start the web app, open a checkpoint, and show it in a browser."""
    environment = dict(os.environ)
    with refusals():
        if checkpoint is not None:
            typed = os.path.expanduser(checkpoint)  # noqa: PTH111 - it refuses no name
            environment["INSPECTOR_OPEN"] = str(find_reference(typed))
        chosen = free_port(port)
    for said in missing():
        sys.stderr.write(f"{said}\n")
    # -P: no file of the current folder takes the place of a library
    command = [sys.executable, "-P", "-m", "streamlit", "run", str(app_script()), f"--server.port={chosen}"]
    command += [f"--server.address={address}"] if address else []
    command += [f"--server.allowedHosts={name}" for name in host or ()]
    command += [f"--browser.serverAddress={host[0]}"] if host else []
    os.execve(sys.executable, command, environment)


def free_port(asked: int | None, *, first: int = FIRST_PORT) -> int:
    """The port that was asked for, or the first one that is free.

    Raises:
        RequestError: If it is none, another program listens there, or the system reserves it.
    """
    if asked is not None and not 0 < asked <= LAST_PORT:
        raise RequestError(f"There is no port {asked}: choose one between 1 and {LAST_PORT:,}.")
    tried = range(first, first + PORTS) if asked is None else [asked]
    free = next(filter(_is_free, tried), None)
    if free is None:
        which = f"Port {asked}" if asked is not None else f"Every port from {tried[0]} to {tried[-1]}"
        raise RequestError(f"{which} is in use, perhaps by an inspector that runs already: choose another with --port.")
    if asked is None and free != first:
        sys.stderr.write(f"Port {first} is in use: the app listens on port {free}.\n")
    return free


def _is_free(port: int) -> bool:
    try:
        with socket.create_server(("localhost", port)):
            return True
    except PermissionError as error:
        raise RequestError(
            f"You have no rights to listen on port {port}: choose one from {FIRST_FREE:,} on with --port."
        ) from error
    except OSError:
        return False


def missing() -> Iterator[str]:
    """Say what this machine lacks; the app does the rest without it."""
    if find_spec("torch") is None and (lack := lacks(ModuleNotFoundError(name="torch"))):
        yield (
            "The app answers what the headers tell, such as the overview. What reads numbers or asks the model's class "
            f"has to wait. {lack}"
        )
    if sys.platform != "linux":
        yield "Workers are not sandboxed on this system: open only checkpoints that you trust."


def _screen(plain: dict[str, Any]) -> Screen:
    """What the store holds, and what is left."""
    used, quota = plain["used_nbytes"], plain["quota_nbytes"]
    kinds = [{"holds": kind["name"], **{name: kind[name] for name in ("entries", "nbytes", "can_go")}}
             for kind in plain["kinds"]]  # fmt: skip
    uploads = [
        {name: upload[name] for name in ("name", "nbytes", "last_used", "pinned", "in_use")}
        for upload in plain["uploads"]
    ]
    return Screen(
        Headline(f"The store holds {bytes_text(used)} of {bytes_text(quota)}: {bytes_text(quota - used)} are left."),
        (
            Bullets((*server_lines(plain["servers"]), *plain["warnings"])),
            rows_of("Kinds", kinds),
            *([rows_of("Uploads", uploads[:ROWS], len(uploads))] if uploads else []),
        ),
        f"When it is full, {plain['evict']} are removed first. --json prints every fingerprint.",
    )


@app.command()
def store(as_json: AsJson = False) -> None:
    """Show what is in the store and how much space is left."""
    with refusals():
        servers = running_servers(settings())
        found = replace(account(settings()), servers=tuple(server for server, _ in servers))
        for limit in servers[0][1].limits if servers else ():
            if limit.setting == STORE_MB:
                found = replace(found, quota_nbytes=round(limit.value * MB))
    show(found, as_json=as_json, screen=_screen)
