"""Open, run, print: what every verb does, and the options that they share."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated, Any, NoReturn

import typer

from inspector import __version__
from inspector.catalog import CATALOG, request_of
from inspector.demo import DEMOS
from inspector.engine.choice import start_engine
from inspector.engine.protocol import Job
from inspector.errors import InspectorError
from inspector.request import Request, named_flag
from inspector.results.checkpoint import Opened
from inspector.results.plain import to_json
from inspector.settings import settings
from inspector.store.reference import find_reference
from inspector.text import escaped

REFUSED = 2  # exit status
POLL_SECONDS = 0.1
READS_ALL = ("auto", "all")  # `values` with which a question reads every number

app = typer.Typer(
    name="inspector",
    help="Open a transformer checkpoint and see what is really inside it. Without a command, the app starts in a "
    "browser; with a checkpoint in the place of the command, it opens that one.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _version(wanted: bool) -> None:
    if wanted:
        sys.stdout.write(f"{__version__}\n")
        raise typer.Exit


@app.callback()
def begin(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Open a transformer checkpoint and see what is really inside it."""


Source = Annotated[
    str,
    typer.Argument(
        metavar="CHECKPOINT",
        help="A folder, a .zip/.tar/.tar.gz, a .safetensors or .bin file, a demo's name "
        f"({', '.join(DEMOS)}), or a hub id.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
Text = Annotated[str, typer.Option("--text", help="Text that the model reads.")]


def answer(
    verb: str,
    checkpoint: str,
    *,
    as_json: bool,
    then: Callable[[Any], Any] = lambda result: result,
    beside: str | None = None,
    **parameters: Any,
) -> None:
    """Open, run, print; a refusal is one sentence on stderr and exit status 2.

    Args:
        checkpoint: As it was typed.
        as_json: One JSON object instead of tables.
        then: What else is done with the result, such as writing a file.
        beside: A checkpoint to compare with, as it was typed.
    """
    show(ask(verb, checkpoint, then=then, beside=beside, **parameters), as_json=as_json)


def ask(
    verb: str,
    checkpoint: str,
    *,
    then: Callable[[Any], Any] = lambda result: result,
    beside: str | None = None,
    **parameters: Any,
) -> Any:
    """Open and run as `answer` does, and give the result back instead of printing it."""
    with refusals(request_of(verb)):
        reads_all = CATALOG[verb].needs == "model" or parameters.get("values") in READS_ALL
        engine = start_engine(settings(), restrict_paths=False, spare=False, only=verb, reads_all=reads_all)
        try:
            opened: Opened = waited(engine.open(find_reference(checkpoint)))
            called = [opened.name]
            if beside is not None:
                other: Opened = waited(engine.open(find_reference(beside)))
                parameters["other"] = other.fingerprint
                called.append(other.name)
            return then(waited(engine.run(opened.fingerprint, verb, called=called, **parameters)))
        finally:
            engine.close()


def show(result: Any, *, as_json: bool) -> None:
    """Print a result: one JSON object, or tables; its warnings go to stderr."""
    plain = to_json(result)
    for warning in plain.get("warnings", []):
        sys.stderr.write(f"Warning: {escaped(warning)}\n")
    if as_json:
        sys.stdout.write(json.dumps(plain, ensure_ascii=False, allow_nan=False) + "\n")
    else:
        from rich.console import Console

        from inspector.render import write_table

        write_table(plain, Console(highlight=False))


def waited(job: Job[Any]) -> Any:
    """Wait for a job, showing on a terminal what it does."""
    if not sys.stderr.isatty():
        return job.result()
    from rich.console import Console

    with Console(stderr=True).status("Starting") as status:
        while True:
            try:
                return job.result(timeout=POLL_SECONDS)
            except TimeoutError:
                status.update(job.progress.text)


@contextmanager
def refusals(request: type[Request] | None = None) -> Iterator[None]:
    """Turn a refusal into one sentence on stderr and exit status 2.

    Args:
        request: What is asked, to name an option as it is typed.
    """
    try:
        yield
    except InspectorError as error:
        _refuse(named_flag(error, request))


def _refuse(sentence: str) -> NoReturn:
    sys.stderr.write(f"{sentence}\n")
    raise typer.Exit(REFUSED)
