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
def embeddings(
    checkpoint: Source,
    token: Annotated[str | None, typer.Option("--token", help="List its neighbours.")] = None,
    k: Annotated[int, typer.Option("-k", help="How many neighbours.")] = 10,
    metric: Annotated[str, typer.Option("--metric", help="cosine, dot or euclidean.")] = "cosine",
    as_json: AsJson = False,
) -> None:
    """What do the static embeddings look like?"""
    answer("embeddings", checkpoint, as_json=as_json, token=token, k=k, metric=metric)


@app.command()
def project(
    checkpoint: Source,
    method: Annotated[str, typer.Option("--method", help="pca or umap.")] = "pca",
    dimensions: Annotated[int, typer.Option("--dimensions", help="2 or 3.")] = 2,
    neighbours: Annotated[int, typer.Option("--neighbours", help="UMAP's n_neighbors.")] = 15,
    metric: Annotated[str, typer.Option("--metric", help="cosine or euclidean.")] = "cosine",
    seed: Annotated[int, typer.Option("--seed", help="Of UMAP's random choices.")] = 0,
    stability: Annotated[
        bool, typer.Option("--stability", help="Tell what another seed changes, at a UMAP's cost.")
    ] = False,
    trust: Annotated[
        bool, typer.Option("--trust", help="Judge every row, not a sample of a large vocabulary.")
    ] = False,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Write the points: .csv or .parquet.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Which tokens lie together on a map?"""
    answer(
        "project", checkpoint, as_json=as_json, then=_writer(output, "points"), method=method,
        dimensions=dimensions, neighbours=neighbours, metric=metric, seed=seed,
        stability=stability, trust=trust,
    )  # fmt: skip


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
