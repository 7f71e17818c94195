"""Open, run, print: what every verb does, and the options that they share."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any

import typer

from inspector import __version__
from inspector.api import Answer, Checkpoint
from inspector.catalog import CATALOG, request_of
from inspector.cli.child import Task, do
from inspector.demo import DEMOS
from inspector.errors import InspectorError
from inspector.progress import Progress
from inspector.request import Request, named_flag
from inspector.request import beside as others_of
from inspector.results.plain import to_json
from inspector.settings import settings
from inspector.store.reference import CheckpointRef, find_reference
from inspector.text import escaped, json_text

if TYPE_CHECKING:
    from inspector.view.screen import Screen

REFUSED = 2  # exit status
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
        help="A folder, a .zip/.tar/.tar.gz, a .safetensors, .bin or .gguf file, a demo's name "
        f"({', '.join(DEMOS)}), or a hub id.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
OnIt = Annotated[
    str, typer.Option("--adapter", help="An adapter on the checkpoint: the answer is about both, as if merged.")
]
Text = Annotated[str, typer.Option("--text", help="Text that the model reads.")]


def answer(
    verb: str,
    checkpoint: str,
    *,
    as_json: bool,
    beside: Mapping[str, str] = MappingProxyType({}),
    on_it: str = "",
    **parameters: Any,
) -> None:
    """Open, run, print; a refusal is one sentence on stderr and exit status 2.

    Args:
        checkpoint: As it was typed.
        as_json: One JSON object instead of the view.
        beside: By option, the other checkpoints that the question names, as they were typed.
        on_it: An adapter on the checkpoint; "": none.
    """
    taken = to_print(as_json=as_json)
    print_answer(ask(verb, checkpoint, then=taken, beside=beside, on_it=on_it, **parameters), as_json=as_json)


def to_print(*, as_json: bool) -> Callable[[Answer], dict[str, Any]]:
    """What a child makes of an answer, for `print_answer`."""
    return Answer.to_json if as_json else on_screen


def print_answer(found: dict[str, Any], *, as_json: bool) -> None:
    """Print what `to_print` made of an answer."""

    def screen(plain: dict[str, Any]) -> Screen:
        from inspector.view.screen import received

        return received(plain["screen"])

    show(found, as_json=as_json, screen=screen)


def on_screen(answer: Answer) -> dict[str, Any]:
    """What a terminal shows of an answer, as plain JSON values; its warnings."""
    from inspector.view.screen import screen_of, screen_of_values, sent

    view, plain = answer.view(), answer.to_json()
    title = CATALOG[answer.request.verb].question
    screen = screen_of(view) if view else screen_of_values(title, plain)
    return {"screen": sent(screen), "warnings": plain.get("warnings", [])}


def ask(
    verb: str,
    checkpoint: str,
    *,
    then: Callable[[Answer], dict[str, Any]] = lambda answer: answer.to_json(),
    beside: Mapping[str, str] = MappingProxyType({}),
    fills: tuple[int, ...] = (),
    on_it: str = "",
    **parameters: Any,
) -> dict[str, Any]:
    """Open and run as `answer` does, and give plain JSON values back instead of printing them.

    Args:
        verb: Of the question.
        checkpoint: As it was typed.
        then: What the child makes of its answer.
        beside: As `answer` takes them.
        fills: Descriptors of the files that `then` writes.
        on_it: As `answer` takes it.
        parameters: Of the question.
    """
    with refusals(request_of(verb)):
        others = (*beside.values(), *filter(None, [on_it]))
        references = tuple(map(find_reference, (checkpoint, *others)))
        task = task_of(verb, references, parameters | dict(beside), then=then, adapted=bool(on_it))
        return done(replace(task, beside=others, fills=fills))


def task_of(
    verb: str,
    references: Sequence[CheckpointRef],
    parameters: Mapping[str, Any],
    *,
    then: Callable[[Answer], dict[str, Any]] = lambda answer: answer.to_json(),
    adapted: bool = False,
) -> Task:
    """What a child does to answer a question about a checkpoint, or about several; `adapted`: the last is put on it."""

    def work(checkpoints: list[Checkpoint], _: Progress) -> dict[str, Any]:
        first, *others = checkpoints
        if adapted:
            first = first.with_adapter(others.pop())
        return then(first.ask(verb, **{**parameters, **dict(zip(others_of(parameters), others, strict=True))}))

    needs_model = CATALOG[verb].needs == "model"
    return Task(
        verb,
        tuple(references),
        work,
        reads_all=needs_model or parameters.get("values") in READS_ALL,
        device=str(parameters.get("device", "")) if needs_model else "",
        names_alone=not adapted and CATALOG[verb].reads_names(parameters),
    )


def done(task: Task) -> Any:
    """What a task comes to, showing on a terminal what is being done.

    Raises:
        InspectorError: What it raised, or what ended its process.
    """
    if not sys.stderr.isatty():
        return do(task, settings(), tell=lambda text: None)
    from rich import markup
    from rich.console import Console

    with Console(stderr=True).status("Starting") as status:
        return do(task, settings(), tell=lambda text: status.update(markup.escape(text)))


def show(result: Any, *, as_json: bool, screen: Callable[[dict[str, Any]], Screen]) -> None:
    """Print a result: one JSON object, or a screen; its warnings go to stderr.

    Args:
        result: Any with plain values.
        as_json: One JSON object.
        screen: Arranges the plain values for a terminal.
    """
    plain = to_json(result)
    for warning in plain.get("warnings", []):
        sys.stderr.write(f"Warning: {escaped(warning)}\n")
    if as_json:
        write_json(plain)
    else:
        write(screen(plain))


def write_json(result: Any) -> None:
    """Print a result as one JSON object on a line."""
    sys.stdout.write(json_text(to_json(result)) + "\n")


def write(screen: Screen) -> None:
    """Print a screen on stdout, as wide as the terminal is."""
    from rich.console import Console

    from inspector.render.terminal import write_screen

    write_screen(screen, Console(highlight=False))


@contextmanager
def refusals(request: type[Request] | None = None) -> Iterator[None]:
    """Turn a refusal into one sentence on stderr and exit status 2.

    Args:
        request: What is asked, to name an option as it is typed.
    """
    try:
        yield
    except InspectorError as error:
        sys.stderr.write(f"{named_flag(error, request)}\n")
        raise typer.Exit(REFUSED) from error
