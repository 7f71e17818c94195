"""Verbs that answer for every row of the vocabulary."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from inspector.cli.answering import AsJson, Device, Dtype, Source, answer, app, refusals
from inspector.errors import RequestError
from inspector.render import write_frame


@app.command()
def contrast(
    checkpoint: Source,
    first: Annotated[str, typer.Option("--first", help="A text with one mask token.")],
    second: Annotated[str, typer.Option("--second", help="Another one.")],
    k: Annotated[int, typer.Option("-k", help="Tokens listed for each text.")] = 10,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="Write the whole vocabulary: .csv or .parquet."),
    ] = None,
    device: Device = "auto",
    dtype: Dtype = "auto",
    as_json: AsJson = False,
) -> None:
    """Which tokens does one text make likelier than another?"""
    answer(
        "contrast", checkpoint, as_json=as_json, then=_writer(output, "tokens"), first=first,
        second=second, k=k, device=device, dtype=dtype,
    )  # fmt: skip


def _writer(output: Path | None, field: str) -> Callable[[Any], Any]:
    """What writes one frame of a result to a file, and notes its name.

    Refuses a name that is neither .csv nor .parquet, before anything is computed.
    """
    with refusals():
        if output is not None and output.suffix not in (".csv", ".parquet"):
            raise RequestError(f"{output.name} is neither .csv nor .parquet: name it as one.")

    def write(result: Any) -> Any:
        if output is None:
            return result
        write_frame(getattr(result, field), output)
        return dataclasses.replace(result, file=str(output))

    return write
