"""Verbs about the server itself: start it, its limits and its store."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

import inspector
from inspector.cli.answering import AsJson, app, refusals, show
from inspector.engine.local import LocalEngine
from inspector.engine.report import confinement_of, server_limits
from inspector.settings import settings
from inspector.store.keeping.quota import account
from inspector.store.reference import find_reference

SCRIPT = Path(inspector.__file__).parents[1] / "app.py"


@app.command()
def serve(
    checkpoint: Annotated[
        str | None, typer.Argument(metavar="CHECKPOINT", help="Checkpoint to open first; any form that verbs take.")
    ] = None,
    port: Annotated[int, typer.Option(help="Port on which the app listens.")] = 8501,
) -> None:
    """Start the web app and open a checkpoint."""
    environment = dict(os.environ)
    if checkpoint is not None:
        with refusals():
            typed = os.path.expanduser(checkpoint)  # noqa: PTH111 - it refuses no name
            environment["INSPECTOR_OPEN"] = str(find_reference(typed))
    command = [sys.executable, "-m", "streamlit", "run", str(SCRIPT), f"--server.port={port}"]
    os.execve(sys.executable, command, environment)


@app.command()
def limits(as_json: AsJson = False) -> None:
    """Show the limits in force and what the worker sandbox blocks on this machine."""
    with refusals():
        engine = LocalEngine(settings())
        try:
            found = server_limits(settings(), confinement_of(engine, wait=True))
        finally:
            engine.close()
    show(found, as_json=as_json)


@app.command()
def store(as_json: AsJson = False) -> None:
    """Show what is in the store and how much space is left."""
    with refusals():
        found = account(settings())
    show(found, as_json=as_json)
