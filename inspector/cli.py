"""The command line: every analysis as a verb, as a table for people or as JSON for machines."""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from rich.console import Console

from inspector.demo import DEMOS
from inspector.engine.local import LocalEngine
from inspector.engine.protocol import Job
from inspector.errors import CheckpointError, InspectorError, RequestError
from inspector.render import write_frame, write_table
from inspector.results import Opened, to_json
from inspector.settings import settings
from inspector.store.reference import HUB_ID, CheckpointRef

REFUSED = 2  # exit status
POLL_SECONDS = 0.1

app = typer.Typer(
    name="inspector",
    help="Open a transformer checkpoint and see what is really inside it.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

Source = Annotated[
    str,
    typer.Argument(
        metavar="CHECKPOINT",
        help="A folder, a .zip/.tar/.tar.gz, a .safetensors or .bin file, a demo's name "
        f"({', '.join(DEMOS)}), or a hub id.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
Text = Annotated[str, typer.Option("--text", help="What the model reads.")]
Device = Annotated[str, typer.Option("--device", help="auto, cpu, cuda or mps.")]
Dtype = Annotated[str, typer.Option("--dtype", help="auto, float32, bfloat16 or float16.")]


@app.command()
def overview(checkpoint: Source, as_json: AsJson = False) -> None:
    """What is in this checkpoint?"""
    _answer("overview", checkpoint, as_json=as_json)


@app.command()
def sharing(checkpoint: Source, as_json: AsJson = False) -> None:
    """Which parameters share memory?"""
    _answer("sharing", checkpoint, as_json=as_json)


@app.command()
def embeddings(
    checkpoint: Source,
    token: Annotated[str | None, typer.Option("--token", help="List its neighbours.")] = None,
    k: Annotated[int, typer.Option("-k", help="How many neighbours.")] = 10,
    metric: Annotated[str, typer.Option("--metric", help="cosine, dot or euclidean.")] = "cosine",
    as_json: AsJson = False,
) -> None:
    """What do the static embeddings look like?"""
    _answer("embeddings", checkpoint, as_json=as_json, token=token, k=k, metric=metric)


@app.command()
def project(
    checkpoint: Source,
    method: Annotated[str, typer.Option("--method", help="pca or umap.")] = "pca",
    dimensions: Annotated[int, typer.Option("--dimensions", help="2 or 3.")] = 2,
    neighbours: Annotated[int, typer.Option("--neighbours", help="UMAP's n_neighbors.")] = 15,
    metric: Annotated[str, typer.Option("--metric", help="cosine or euclidean.")] = "cosine",
    seed: Annotated[int, typer.Option("--seed", help="Of UMAP's random choices.")] = 0,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Write the points: .csv or .parquet.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Which tokens lie together on a map?"""

    def write(result: Any) -> Any:
        if output is None:
            return result
        write_frame(result.points, output)
        return dataclasses.replace(result, file=str(output))

    with _refusals():
        if output is not None and output.suffix not in (".csv", ".parquet"):
            raise RequestError(f"{output.name} is neither .csv nor .parquet: name it as one.")
    _answer(
        "project", checkpoint, as_json=as_json, then=write, method=method, dimensions=dimensions,
        neighbours=neighbours, metric=metric, seed=seed,
    )  # fmt: skip


@app.command()
def lens(
    checkpoint: Source,
    text: Text,
    k: Annotated[int, typer.Option("-k", help="Tokens for each cell.")] = 5,
    layers: Annotated[
        str | None, typer.Option("--layers", help='Such as "0,6,12" or "0-3"; default: all.')
    ] = None,
    device: Device = "auto",
    dtype: Dtype = "auto",
    as_json: AsJson = False,
) -> None:
    """What does each layer's hidden state say in tokens?"""
    with _refusals():
        chosen = parse_layers(layers) if layers else None
    _answer(
        "lens", checkpoint, as_json=as_json, text=text, k=k, layers=chosen, device=device,
        dtype=dtype,
    )  # fmt: skip


@app.command()
def predict(
    checkpoint: Source,
    text: Text,
    k: Annotated[int, typer.Option("-k", help="Tokens for each mask.")] = 10,
    targets: Annotated[
        str, typer.Option("--targets", help="Rank these tokens alone, comma-separated.")
    ] = "",
    device: Device = "auto",
    dtype: Dtype = "auto",
    as_json: AsJson = False,
) -> None:
    """What does the model predict for a mask?"""
    wanted = tuple(target.strip() for target in targets.split(",") if target.strip())
    _answer(
        "predict", checkpoint, as_json=as_json, text=text, k=k, targets=wanted, device=device,
        dtype=dtype,
    )  # fmt: skip


def parse_layers(text: str) -> tuple[int, ...]:
    """Read a list of layers such as "0,6,12" or "0-3,12".

    Raises:
        RequestError: If it is none.
    """
    layers: list[int] = []
    for part in text.split(","):
        first, _, last = part.strip().partition("-")
        if not first.isdecimal() or not (last or first).isdecimal() or len(last or first) > 4:
            raise RequestError(f'{text[:40]!r} is no list of layers: write "0,6,12" or "0-3".')
        layers += range(int(first), int(last or first) + 1)
    return tuple(layers)


def find_reference(text: str) -> CheckpointRef:
    """Tell what a CHECKPOINT argument names: something on disk, a demo, or a hub id.

    Raises:
        CheckpointError: If it can be none of them.
    """
    if Path(text).exists():
        return CheckpointRef("path", str(Path(text).absolute()))
    if text in DEMOS:
        return CheckpointRef("demo", text)
    if HUB_ID.fullmatch(text) and "/" in text and not text.startswith((".", "/", "~")):
        return CheckpointRef("hub", text)
    raise CheckpointError(
        f"There is no {text!r} on this disk, and it is neither a demo ({', '.join(DEMOS)}) nor a "
        "hub id such as org/name: check the spelling."
    )


def _answer(
    verb: str,
    checkpoint: str,
    *,
    as_json: bool,
    then: Callable[[Any], Any] = lambda result: result,
    **parameters: Any,
) -> None:
    """Open, run, print; a refusal is one sentence on stderr and exit status 2."""
    with _refusals():
        engine = LocalEngine(settings(), restrict_paths=False, spare=False)
        try:
            opened: Opened = _wait(engine.open(find_reference(checkpoint)))
            result = then(_wait(engine.run(opened.fingerprint, verb, **parameters)))
        finally:
            engine.close()
    plain = to_json(result)
    for warning in plain.get("warnings", []):
        sys.stderr.write(f"Warning: {warning}\n")
    if as_json:
        sys.stdout.write(json.dumps(plain, ensure_ascii=False, allow_nan=False) + "\n")
    else:
        write_table(plain, Console(highlight=False))


def _wait(job: Job[Any]) -> Any:
    """Wait for a job, showing on a terminal what it does."""
    console = Console(stderr=True)
    if not console.is_terminal:
        return job.result()
    with console.status("Starting") as status:
        while True:
            try:
                return job.result(timeout=POLL_SECONDS)
            except TimeoutError:
                status.update(job.progress.text)


@contextmanager
def _refusals() -> Iterator[None]:
    try:
        yield
    except InspectorError as error:
        _refuse(str(error))


def _refuse(sentence: str) -> NoReturn:
    sys.stderr.write(f"{sentence}\n")
    raise typer.Exit(REFUSED)


def main() -> None:
    """Run the command line."""
    app()
