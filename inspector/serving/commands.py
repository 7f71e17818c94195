"""The verbs of a server: its limits, and the cluster that it may compute on. They take no checkpoint."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any, cast

import typer

from inspector.cli.answering import AsJson, app, refusals, show
from inspector.serving.engine.local import LocalEngine
from inspector.serving.engine.ray.cluster import deploy, withdraw
from inspector.serving.engine.report import confinement_of, server_limits
from inspector.settings import Confine, settings
from inspector.store.keeping.servers import running_servers, server_lines
from inspector.text import plural
from inspector.view.blocks import Bullets
from inspector.view.screen import Screen, rows_of, screen_of_values
from inspector.view.view import Headline


@app.command()
def limits(as_json: AsJson = False) -> None:
    """Show the limits of the server that runs here, or of one started now, and what the worker sandbox blocks."""
    with refusals():
        told = next((limits for _, limits in running_servers(settings())), server_limits(settings(), None))
        # without the shared store: this command shares nothing
        tried = replace(settings(), store=None, confinement=cast(Confine, told.confinement))
        engine = LocalEngine(tried)
        try:
            found = server_limits(tried, confinement_of(engine, wait=True))
        finally:
            engine.close()
        found = replace(found, limits=told.limits, server=told.server)
    show(found, as_json=as_json, screen=_limits)


def _limits(plain: dict[str, Any]) -> Screen:
    """The limits in their units, and what the sandbox enforces."""
    limits = [
        {"limit": each["name"], "value": f"{each['value']:,g} {each['unit']}"}
        | {"setting": each["setting"], "enforced by": each["enforced_by"]}
        for each in plain["limits"]
    ]
    enforced = sum(each["enforced"] for each in plain["restrictions"])
    restrictions = [
        {"restriction": each["name"], "enforced": each["enforced"], "meaning": each["meaning"]}
        for each in plain["restrictions"]
    ]
    whole = enforced == len(restrictions) > 0
    return Screen(
        Headline(
            f"{plural(len(limits), 'limit')} in force; the sandbox enforces {enforced} of "
            f"{plural(len(restrictions), 'restriction')} (INSPECTOR_CONFINEMENT is {plain['confinement']}).",
            "ok" if whole else "warning",
        ),
        (
            Bullets(tuple(server_lines([plain["server"]] if plain["server"] else []))),
            rows_of("Limits", limits),
            *([rows_of("Worker sandbox", restrictions)] if restrictions else []),
            *([Bullets(tuple(plain["missing"]))] if plain["missing"] else []),
        ),
    )


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
    title = "The inspector is no longer on the cluster." if stop else "The inspector runs on the cluster."
    show(
        {"stopped": True} if found is None else found,
        as_json=as_json,
        screen=lambda plain: screen_of_values(title, {} if stop else plain),
    )
