"""The verb that puts the inspector on a Ray cluster. It takes no checkpoint."""

from __future__ import annotations

from typing import Annotated

import typer

from inspector.cli.answering import AsJson, app, refusals, show
from inspector.engine.ray.cluster import deploy, withdraw
from inspector.settings import settings


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
