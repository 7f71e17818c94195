"""Verbs about the files and the parameters."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from inspector.analyses.what_if.result import CHANGES, EXAMPLE, WhatIf
from inspector.cli.answering import AsJson, Source, answer, app


@app.command()
def overview(
    checkpoint: Source,
    hash_files: Annotated[
        bool, typer.Option("--hash", help="Read every file for its SHA-256.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """What is in this checkpoint?"""
    answer("overview", checkpoint, as_json=as_json, hash_files=hash_files)


@app.command()
def sharing(checkpoint: Source, as_json: AsJson = False) -> None:
    """Which parameters share memory?"""
    answer("sharing", checkpoint, as_json=as_json)


@app.command()
def whatif(
    checkpoint: Source,
    change: Annotated[str, typer.Option("--change", help=f"{', '.join(CHANGES)}.")] = "untie",
    text: Annotated[
        str, typer.Option("--text", help='What the copy is trained on; "": no training.')
    ] = EXAMPLE,
    steps: Annotated[int, typer.Option("--steps", help="Training steps, 0 to 20.")] = 1,
    learning_rate: Annotated[
        float, typer.Option("--learning-rate", help="Above 0, up to 1.")
    ] = 5e-5,
    optimizer: Annotated[str, typer.Option("--optimizer", help="adamw or sgd.")] = "adamw",
    as_json: AsJson = False,
) -> None:
    """Which ties break when the model is changed?"""
    answer(
        "whatif", checkpoint, as_json=as_json, then=lambda result: result if as_json
        else _in_short(result), change=change, text=text, steps=steps,
        learning_rate=learning_rate, optimizer=optimizer,
    )  # fmt: skip


def _in_short(result: WhatIf) -> dict[str, Any]:
    """What fits a terminal."""
    columns = ["way", "name", "before", "after", "saved_and_loaded", "after_training"]
    return {
        "answer": result.answer,
        "model_class": result.model_class,
        "ways": [
            {
                "way": way.title,
                "parameters": way.unique_parameters,
                "nbytes": way.nbytes,
                "file_nbytes": way.file.nbytes if way.file else None,
                "loss": way.training.loss if way.training else None,
                "loss_after": way.training.loss_after if way.training else None,
            }
            for way in (result.original, *result.ways)
        ],
        "names": result.table[columns] if len(result.table) else [],
        "warnings": result.warnings,
    }


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
