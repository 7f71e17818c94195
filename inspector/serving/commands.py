"""The verbs of a server: its limits, and the cluster that it may compute on. They take no checkpoint."""

from __future__ import annotations

from typing import Annotated

import typer

from inspector.cli.answering import AsJson, app, refusals, show
from inspector.serving.engine.local import LocalEngine
from inspector.serving.engine.ray.cluster import deploy, withdraw
from inspector.serving.engine.report import confinement_of, server_limits
from inspector.settings import settings


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
def cluster(
    stop: Annotated[bool, typer.Option("--stop", help="Remove the replicas from the cluster.")] = False,
    as_json: AsJson = False,
) -> None:
    """Deploy the inspector to the Ray cluster on this machine (or at RAY_ADDRESS), with the current settings.

    Start the cluster itself with `ray start`. If you run this again, it replaces the deployment.
    """
    with refusals():
        found = withdraw() if stop else deploy(settings())
    show({"stopped": True} if found is None else found, as_json=as_json)
