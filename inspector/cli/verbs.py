"""Verbs whose options are those of their requests: built from the catalog, not written."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any, get_args, get_origin

import typer

from inspector.api import Answer
from inspector.catalog import Analysis, request_of
from inspector.cli.answering import AsJson, OnIt, Source, app, ask, print_answer, refusals, to_print
from inspector.cli.output import Output, writing
from inspector.errors import RequestError
from inspector.request import Option, Request, defaults, flag_of, from_text, kinds_of, options, plain_kind, switch_of

SUFFIXES = (".csv", ".parquet")
Written = Annotated[Path | None, typer.Option("-o", "--output", help="Write the table: .csv or .parquet.")]


def register(analyses: Iterable[Analysis]) -> None:
    """Add the verbs of questions of the catalog."""
    for analysis in analyses:
        own = command_module(analysis)
        if own is not None and hasattr(own, "COMMAND"):
            app.command(analysis.verb)(own.COMMAND)
        else:
            app.command(analysis.verb, help=analysis.question)(_command(analysis, own))


def command_module(analysis: Analysis) -> ModuleType | None:
    """What a room adds to its verb; None: nothing.

    It may hold `COMMAND`, the whole verb as a function; or `SAVED`, the field of the result that -o writes.
    """
    name = f"{analysis.room}.command"
    return import_module(name) if find_spec(name) else None


def typed(request: type[Request], name: str) -> Any:
    """The annotation of one option for Typer."""
    known, kind = options(request)[name], plain_kind(kinds_of(request)[name])
    listed = get_origin(kind) is tuple
    shown = list[str] if listed else (str if known.choices else kind)
    if defaults(request).get(name, 0) is None or listed:
        shown = shown | None
    return Annotated[shown, flagged(request, name)]


def flagged(request: type[Request], name: str) -> Any:
    """The flag of one option with its help, for verbs that are written by hand."""
    known, kind = options(request)[name], plain_kind(kinds_of(request)[name])
    words = _help(known, repeated=get_origin(kind) is tuple and not known.split)
    flag = flag_of(name, known)
    return typer.Option("/".join(switch_of(flag)) if kind is bool else flag, help=words)


def gathered(request: type[Request], values: dict[str, Any]) -> dict[str, Any]:
    """What Typer read, as the request's parameters.

    Raises:
        RequestError: If a value cannot be read, or is out of its bounds.
    """
    kinds, known = kinds_of(request), options(request)
    found = {}
    for name, value in values.items():
        if isinstance(value, list):
            value = _items(name, value, kinds[name], known[name])  # noqa: PLW2901
        if value is not None or defaults(request).get(name, 0) is None:
            found[name] = value
    return request(**found).parameters()


def _items(name: str, values: list[str], kind: Any, known: Option) -> tuple[Any, ...]:
    if not known.split:
        return tuple(values)
    found = (item for value in values for item in from_text(value, kind, name=name))
    return tuple(found) if get_args(plain_kind(kind))[0] is int else tuple(dict.fromkeys(found))


def _help(known: Option, *, repeated: bool) -> str:
    more = ", ".join(known.choices) or known.bounds
    several = "repeatable" if repeated else ""
    notes = "; ".join(note for note in (more, several) if note)
    return f"{known.help} ({notes})." if notes else f"{known.help}."


def _command(analysis: Analysis, own: ModuleType | None) -> Callable[..., None]:
    request = request_of(analysis.verb)
    saved: str | None = getattr(own, "SAVED", None)

    def command(**given: Any) -> None:
        checkpoint, as_json, on_it = given.pop("checkpoint"), given.pop("as_json"), given.pop("on_it")
        output: Path | None = given.pop("output", None)
        with refusals(request):
            _refuse_name(output)
            parameters = gathered(request, given)
            with writing(output) if output else nullcontext() as file:
                taken = to_print(as_json=as_json)
                found = ask(
                    analysis.verb,
                    checkpoint,
                    then=lambda answer: taken(_written(answer, saved, file)),
                    fills=(file.descriptor,) if file else (),
                    on_it=on_it,
                    **parameters,
                )
        print_answer(found, as_json=as_json)

    command.__signature__ = _signature(request, saved=saved)  # pyright: ignore[reportFunctionMemberAccess]
    command.__annotations__ = {
        name: each.annotation
        for name, each in command.__signature__.parameters.items()  # pyright: ignore[reportFunctionMemberAccess]
    }
    return command


def _signature(request: type[Request], *, saved: str | None) -> inspect.Signature:
    keyword = inspect.Parameter.KEYWORD_ONLY
    given = defaults(request)
    parameters = [inspect.Parameter("checkpoint", keyword, annotation=Source)]
    for name in options(request):
        default = given.get(name, inspect.Parameter.empty)
        if isinstance(default, tuple):
            default = None
        parameters.append(inspect.Parameter(name, keyword, default=default, annotation=typed(request, name)))
    if saved:
        parameters.append(inspect.Parameter("output", keyword, default=None, annotation=Written))
    parameters.append(inspect.Parameter("on_it", keyword, default="", annotation=OnIt))
    parameters.append(inspect.Parameter("as_json", keyword, default=False, annotation=AsJson))
    return inspect.Signature(parameters)


def _refuse_name(output: Path | None) -> None:
    """Refuse a file's name before anything is computed."""
    if output is not None and output.suffix not in SUFFIXES:
        raise RequestError(f"{output.name} must end in .csv or .parquet: rename it.")


def _written(answer: Answer, saved: str | None, output: Output | None) -> Answer:
    """Write the table that -o asks for, and say where it is."""
    if output is None or not saved:
        return answer
    from inspector.render.files import write_frame

    write_frame(getattr(answer.result, saved), output.path, output.file("wb"))
    return answer.with_fields(file=str(output.path))
