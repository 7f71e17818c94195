"""Verbs about the files and the parameters."""

from __future__ import annotations

from typing import Annotated

import typer

from inspector.cli.answering import AsJson, Source, answer, app


@app.command()
def overview(checkpoint: Source, as_json: AsJson = False) -> None:
    """What is in this checkpoint?"""
    answer("overview", checkpoint, as_json=as_json)


@app.command()
def sharing(checkpoint: Source, as_json: AsJson = False) -> None:
    """Which parameters share memory?"""
    answer("sharing", checkpoint, as_json=as_json)


@app.command()
def classes(
    checkpoint: Source,
    text: Annotated[
        str | None, typer.Option("--text", help="What the model reads; default: a sentence.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Which classes is this model made of, and what does it return?"""
    answer("classes", checkpoint, as_json=as_json, text=text)
