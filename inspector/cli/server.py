"""Verbs about the server itself: its limits and its store. They take no checkpoint."""

from __future__ import annotations

from inspector.cli.answering import AsJson, app, refusals, show
from inspector.engine.local import LocalEngine
from inspector.engine.report import confinement_of, server_limits
from inspector.settings import settings
from inspector.store.quota import account


@app.command()
def limits(as_json: AsJson = False) -> None:
    """Which limits apply, and what does the worker sandbox block on this machine?"""
    with refusals():
        engine = LocalEngine(settings())
        try:
            found = server_limits(settings(), confinement_of(engine, wait=True))
        finally:
            engine.close()
    show(found, as_json=as_json)


@app.command()
def store(as_json: AsJson = False) -> None:
    """What is in the store, and how much space is left?"""
    with refusals():
        found = account(settings())
    show(found, as_json=as_json)
