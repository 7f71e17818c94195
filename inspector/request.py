"""A question's options, defined once: verb, page, address, report and library derive from them.

A room's `request.py` is a frozen dataclass whose fields are made by `option`. Nothing else states
the name, default, bounds or help of an option.
"""

from __future__ import annotations

import csv
import dataclasses
import functools
import inspect
import operator
import re
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from typing import (
    Any,
    ClassVar,
    Literal,
    ParamSpec,
    SupportsFloat,
    SupportsIndex,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from inspector.errors import InspectorError, RequestError

SHORT = 10**15  # from here on, numbers are written with an exponent
RANGE = re.compile(r"(\d{1,4})-(\d{1,4})")
T = TypeVar("T")
P = ParamSpec("P")
R = TypeVar("R")
BESIDE = ("other", "adapter", "merged", "base")  # options that name another checkpoint, in every question that has them
KINDS = {str: "a text", bool: "True or False", int: "a whole number", float: "a number"}


@dataclass(frozen=True, slots=True)
class Option:
    """What is known of one option besides its name, type and default."""

    help: str  # a phrase without a period
    label: str = ""  # on a page; "": the name as words
    least: float | None = None  # inclusive
    most: float | None = None  # inclusive
    above: float | None = None  # exclusive
    choices: tuple[str, ...] = ()
    # On the command line; "": the name, with dashes. "--yes/--no" names both of a switch, and what
    # begins with no dash stands alone, as CHECKPOINT does.
    flag: str = ""
    split: bool = True  # of a list: False: its items are texts, which may hold commas
    items: int | None = None  # of a list: how many at most
    step: float | None = None  # of a number's field on a page

    @property
    def bounds(self) -> str:
        """The range in words: "between 1 and 100", "above 0 and at most 1"; "" if there is none."""
        least = "" if self.least is None else number_text(self.least)
        most = "" if self.most is None else number_text(self.most)
        if self.above is not None:
            return f"above {number_text(self.above)}" + (f" and at most {most}" if most else "")
        if least and most:
            return f"between {least} and {most}"
        return f"at least {least}" if least else (f"at most {most}" if most else "")


def option(default: Any = dataclasses.MISSING, help: str = "", **facts: Any) -> Any:  # noqa: A002
    """Define an option; without a default it must be given.

    Args:
        default: Its default.
        help: A phrase for every place where it is asked for.
    """
    return dataclasses.field(default=default, metadata={"option": Option(help, **facts)})


@dataclass(frozen=True)
class Request:
    """The options of one question; `verb` names it in the catalog."""

    verb: ClassVar[str] = ""

    def __post_init__(self) -> None:
        """Refuse what no checkpoint could answer.

        Raises:
            RequestError: If a value is of another type, out of its bounds, or none of its choices.
        """
        kinds = kinds_of(type(self))
        for name, known in options(type(self)).items():
            value = getattr(self, name)
            if value is None:
                value = defaults(type(self)).get(name)
            value = read_value(name, known, kinds[name], value)
            object.__setattr__(self, name, value)
            if value is not None:
                check(name, known, value)

    def parameters(self) -> dict[str, Any]:
        """Names and values, as `answers` takes them."""
        return {name: getattr(self, name) for name in options(type(self))}

    def to_argv(self) -> list[str]:
        """The options of the command line that ask the same; defaults are left out."""
        words: list[str] = []
        for name, known in options(type(self)).items():
            value = getattr(self, name)
            if value != defaults(type(self)).get(name, dataclasses.MISSING):
                words += _words(flag_of(name, known), value, split=known.split)
        return words

    def to_query(self) -> dict[str, str]:
        """The same for an address; defaults are left out."""
        return {
            name: to_text(value, split=known.split)
            for name, known in options(type(self)).items()
            if (value := getattr(self, name)) != defaults(type(self)).get(name, dataclasses.MISSING)
            and value is not None
        }


@functools.cache
def options(request: type[Request]) -> dict[str, Option]:
    """A request's options by name, in their order."""
    return {field.name: field.metadata["option"] for field in dataclasses.fields(request) if "option" in field.metadata}


@functools.cache
def defaults(request: type[Request]) -> dict[str, Any]:
    """Defaults by name; an option that must be given is not there."""
    known = (field for field in dataclasses.fields(request) if "option" in field.metadata)
    return {field.name: field.default for field in known if field.default is not dataclasses.MISSING}


@functools.cache
def kinds_of(request: type[Request]) -> dict[str, Any]:
    """The types of a request's options by name."""
    hints = get_type_hints(request)
    return {name: hints[name] for name in options(request)}


def beside(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Those of a question's parameters that name other checkpoints, in the order in which they are counted."""
    return {name: parameters[name] for name in BESIDE if parameters.get(name)}


def flag_of(name: str, known: Option) -> str:
    """An option as the command line writes it: --learning-rate, -k."""
    return known.flag or (f"-{name}" if len(name) == 1 else f"--{name.replace('_', '-')}")


def switch_of(flag: str) -> tuple[str, str]:
    """The two flags of a bool: --hash and --no-hash, unless it names both."""
    yes, _, no = flag.partition("/")
    return yes, no or yes.replace("--", "--no-", 1)


def answers(request: type[Request]) -> Callable[[Callable[..., T]], Callable[..., T]]:
    """Let a function `(checkpoint, request, *, progress)` be called with the request's options.

    Returns:
        A decorator: `lens(checkpoint, progress=…, text="a dog", k=3)` makes the request, which
        refuses what is out of bounds, and calls the function with it. `show` is passed on where it is given.
    """

    def wrap(function: Callable[..., T]) -> Callable[..., T]:
        @functools.wraps(function)
        def called(checkpoint: Any, *, progress: Any, show: Any = None, **parameters: Any) -> T:
            shows = {"show": show} if show else {}
            return function(checkpoint, request(**parameters), progress=progress, **shows)

        return called

    return wrap


def named_flag(error: InspectorError, request: type[Request] | None) -> str:
    """A refusal as the command line says it: the option at fault, as it is typed, comes first."""
    known = options(request).get(error.option) if request and error.option else None
    flag = flag_of(error.option, known).partition("/")[0] if known else ""
    return f"{flag}: {error}" if flag.startswith("-") else str(error)


def named_field(error: InspectorError, request: type[Request] | None) -> str:
    """The same as a page says it: with the field's label, unless the sentence names it."""
    known = options(request).get(error.option) if request and error.option else None
    label = label_of(error.option, known) if known else ""
    return str(error) if label.casefold() in str(error).casefold() else f"{label}: {error}"


def label_of(name: str, known: Option) -> str:
    """What a page calls an option."""
    return known.label or name.replace("_", " ").capitalize()


def parse_list(text: str) -> tuple[str, ...]:
    """Read items that commas separate; one that holds a comma is written in double quotes.

    Each item once, in order; spaces around an item do not count.

    Raises:
        RequestError: If an item is too long to be one.
    """
    rows = csv.reader(text.splitlines() or [""], skipinitialspace=True)
    try:
        items = [item if item.isspace() else item.strip() for row in rows for item in row]
    except csv.Error:
        raise RequestError(f"The list {text[:40]!r}… is too long: shorten it.") from None
    return tuple(dict.fromkeys(item for item in items if item))


def join_list(items: Iterable[object]) -> str:
    """Write items as `parse_list` reads them."""
    return ",".join(
        '"' + text.replace('"', '""') + '"' if re.search(r'[",]|^\s|\s$', text) else text for text in map(str, items)
    )


def parse_numbers(text: str, *, name: str) -> tuple[int, ...]:
    """Read a list of whole numbers and ranges, such as "0,6,12" or "0-3,12".

    Raises:
        RequestError: If it is none, or a range runs backwards.
    """
    numbers: list[int] = []
    for item in parse_list(text):
        span = RANGE.fullmatch(item.replace(" ", ""))
        first, last = span.groups() if span else (item, item)
        if not re.fullmatch(r"-?\d{1,9}", first) or int(last) < int(first):
            raise RequestError(f'{item[:40]!r} is neither a number nor a range: write "0,6,12" or "0-3".', option=name)
        numbers += range(int(first), int(last) + 1)
    return tuple(numbers)


def to_text(value: Any, *, split: bool = True) -> str:
    """Write a value for an address or a text field."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return join_list(value) if split else "\n".join(map(str, value))
    if isinstance(value, float):
        short = f"{value:.12g}"
        return short if float(short) == value else repr(value)
    return str(value)


def from_text(text: str, kind: Any, *, name: str, split: bool = True) -> Any:
    """Read what `to_text` wrote.

    Args:
        text: From an address, a text field or a command line.
        split: False: a list of texts, one a line.

    Raises:
        RequestError: If it is no value of that type.
    """
    kind = plain_kind(kind)
    if get_origin(kind) is tuple:
        if not split:
            return tuple(line for line in text.splitlines() if line)
        items = parse_numbers(text, name=name) if get_args(kind)[0] is int else parse_list(text)
        if text.strip() and not items:
            raise RequestError(f"{text[:40]!r} contains no values: give one or more, or leave it empty.", option=name)
        return items
    if kind is bool:
        return text.strip().lower() in {"true", "1", "yes", "on"}
    try:
        return kind(text)
    except ValueError:
        what = "a whole number" if kind is int else "a number"
        raise RequestError(f"{text[:40]!r} is not {what}: give one.", option=name) from None


def plain_kind(kind: Any) -> Any:
    """A type without its None, and of a choice of texts plain text: `int | None` is int, `Literal["a"]` is str."""
    if get_origin(kind) in {Union, types.UnionType}:
        return next(each for each in get_args(kind) if each is not type(None))
    return str if get_origin(kind) is Literal else kind


def number_text(number: float) -> str:
    """Write a number as people do: 1,000,000, 0.15, 1e-07."""
    if abs(number) >= SHORT:
        return f"{Decimal(number).normalize():.6g}"
    return f"{number:,.0f}" if float(number).is_integer() else f"{number:g}"


def check(name: str, known: Option, value: Any) -> None:
    """Refuse a value that is out of an option's bounds.

    Raises:
        RequestError: If it is, or is none of its choices.
    """
    said = label_of(name, known)
    if known.choices and value not in known.choices:
        *first, last = known.choices
        listed = f"{', '.join(first)} or {last}" if first else last
        raise RequestError(f"{said} must be {listed}, not {str(value)[:40]!r}.", option=name)
    if known.items is not None and len(value) > known.items:
        raise RequestError(f"{said}: give at most {known.items:,}, not {len(value):,}.", option=name)
    if isinstance(value, bool | str | Sequence):
        return
    low = known.least is not None and not value >= known.least
    low = low or (known.above is not None and not value > known.above)
    if low or (known.most is not None and not value <= known.most):
        raise RequestError(f"{said} must be {known.bounds}, not {number_text(value)}.", option=name)


def read_value(name: str, known: Option, kind: Any, value: Any) -> Any:
    """Take an option's value as it is given in Python: lists for tuples, torch's dtypes and devices for their names.

    Raises:
        RequestError: If it is of another type.
    """
    plain = plain_kind(kind)
    if value is None and (plain is not kind) and get_origin(kind) is not Literal:
        return None
    if get_origin(plain) is not tuple:
        return _read_one(name, known, plain, value)
    if isinstance(value, str) and known.split:
        return from_text(value, kind, name=name)
    if isinstance(value, str) or not isinstance(value, Iterable):
        value = (value,)
    return tuple(_read_one(name, known, get_args(plain)[0], item) for item in value)


def _read_one(name: str, known: Option, kind: type, value: Any) -> Any:
    if kind is str and not isinstance(value, str) and known.choices:  # torch.float16, torch.device("cuda")
        text = str(value).removeprefix("torch.").partition(":")[0]
        value = text if text in known.choices else value
    with suppress(TypeError, ValueError):  # of an array of several numbers
        if kind is int and isinstance(value, SupportsIndex) and not isinstance(value, bool):
            return operator.index(value)
        if kind is float and isinstance(value, SupportsFloat) and not isinstance(value, bool):
            return float(value)
    if type(value) is bool if kind is bool else isinstance(value, str) and kind is str:
        return value
    given = "nothing" if value is None else repr(value)[:40]
    raise RequestError(f"{label_of(name, known)} must be {KINDS[kind]}, not {given}.", option=name)


def checked_names(method: Callable[P, R]) -> Callable[P, R]:
    """Have a method refuse options that it does not have, or lacks, in one sentence that lists its own."""
    signature = inspect.signature(method)
    own = ", ".join([*signature.parameters][1:]) or "none"

    @functools.wraps(method)
    def called(*values: P.args, **parameters: P.kwargs) -> R:
        try:
            signature.bind(*values, **parameters)
        except TypeError as error:
            raise RequestError(f"{method.__name__}: {error}. Its options: {own}.") from None
        return method(*values, **parameters)

    return called


def _words(flag: str, value: Any, *, split: bool) -> list[str]:
    if isinstance(value, bool):
        yes, no = switch_of(flag)
        return [yes if value else no]
    if isinstance(value, tuple) and not split:
        return [word for each in value for word in _words(flag, each, split=True)]
    text = to_text(value)
    if not flag.startswith("-"):
        return [text]
    return [flag, text] if not flag.startswith("--") else [f"{flag}={text}"]
