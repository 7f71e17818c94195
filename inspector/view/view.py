"""The view of an answer: its blocks, each in its role."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Literal

from inspector.catalog import CATALOG
from inspector.request import Request
from inspector.view.blocks import Block, Figure, Table, TextPicture

Verdict = Literal["ok", "note", "warning", "problem"]


@dataclass(frozen=True, slots=True)
class Headline:
    """The answer in one sentence."""

    text: str
    verdict: Verdict | None = None  # None: nothing was judged


@dataclass(frozen=True, slots=True)
class Picture:
    """What shows the answer at a glance."""

    figure: Figure | None = None
    text: TextPicture | None = None  # the same on a terminal


@dataclass(frozen=True)
class Tab:
    """A named group of blocks, made when it is opened."""

    name: str
    make: Callable[[], Iterable[Block]]

    @cached_property
    def blocks(self) -> tuple[Block, ...]:
        """Its blocks, in order."""
        return tuple(self.make())


@dataclass(frozen=True, slots=True)
class Why:
    """A question that readers ask of an answer, to be unfolded."""

    question: str
    answer: str


@dataclass(frozen=True, slots=True)
class Heading:
    """The name of a tab, where all tabs stand one below the other."""

    text: str


Element = Headline | Heading | Why | Block


@dataclass(frozen=True, slots=True)
class View:
    """What an answer consists of."""

    headline: Headline
    picture: Picture | None = None
    beside: tuple[Block, ...] = ()  # what belongs to the picture
    tabs: tuple[Tab, ...] = ()  # everything else, in groups
    why: tuple[Why, ...] = ()
    more: str = ""  # what an option gives besides, for a terminal

    def elements(self) -> Iterator[Element]:
        """Everything, one below the other: for whatever can be read and not opened."""
        yield self.headline
        if self.picture and self.picture.figure:
            yield self.picture.figure
        yield from self.beside
        for tab in self.tabs:
            if tab.blocks:
                yield Heading(tab.name)
                yield from tab.blocks
        yield from self.why

    @property
    def figures(self) -> tuple[Figure, ...]:
        """Its figures, the picture first."""
        return tuple(each for each in self.elements() if isinstance(each, Figure))

    @property
    def tables(self) -> tuple[Table, ...]:
        """Its tables, in order."""
        return tuple(each for each in self.elements() if isinstance(each, Table))


def view_of(result: Any, request: Request, *, name: str) -> View | None:
    """Arrange an answer, as its room says; None: the room has no view.

    Args:
        result: The answer.
        request: What was asked, with the options that were given.
        name: Of the checkpoint.
    """
    module = f"{CATALOG[request.verb].room}.view"
    return import_module(module).view(result, request, name=name) if find_spec(module) else None
