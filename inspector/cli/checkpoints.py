"""Verbs about the files and the parameters."""

from __future__ import annotations

from inspector.cli.answering import AsJson, Source, answer, app


@app.command()
def overview(checkpoint: Source, as_json: AsJson = False) -> None:
    """What is in this checkpoint?"""
    answer("overview", checkpoint, as_json=as_json)


@app.command()
def sharing(checkpoint: Source, as_json: AsJson = False) -> None:
    """Which parameters share memory?"""
    answer("sharing", checkpoint, as_json=as_json)
