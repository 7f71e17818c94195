"""What views consist of: plain blocks, which know neither HTML nor a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from inspector.names import NAME, fold_rows
from inspector.text import percent_text

if TYPE_CHECKING:  # half a second of every verb
    import pandas as pd
    import plotly.graph_objects as go

    from inspector.plotting.theme import Theme

ROWS = 25  # of a table on a page; the CSV has all of them


@dataclass(frozen=True, slots=True)
class Sentence:
    """A paragraph of plain text."""

    text: str
    name: str = ""  # for a page that draws something in its place


@dataclass(frozen=True, slots=True)
class Bullets:
    """Plain texts, one below the other."""

    items: tuple[str, ...]
    name: str = ""  # for a page that draws something in its place


@dataclass(frozen=True, slots=True)
class Facts:
    """Properties with their values."""

    pairs: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Code:
    """Text of fixed width."""

    text: str
    language: str = ""  # that it is written in


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure, drawn for light and for dark readers."""

    name: str  # of its files, unlike every other of the view
    draw: Callable[[Theme], go.Figure]  # its title holds the checkpoint's name
    alt: str  # what it shows, in words
    # The same for a report: without WebGL, which its content policy forbids, and with what SVG can bear
    printed: Callable[[Theme], go.Figure] | None = None
    narrow: Callable[[Theme], go.Figure] | None = None  # the same for a phone


@dataclass(frozen=True, slots=True)
class Table:
    """A table; a long one is cut where it is shown, and whole in its file."""

    name: str  # of its file, unlike every other of the view
    title: str
    frame: pd.DataFrame
    rows: int = ROWS  # shown at most
    by: str = NAME  # the column of names
    seen: tuple[str, ...] = ()  # columns that are shown, in order; (): all
    meanings: Mapping[str, str] = field(default_factory=dict)  # of columns whose name does not say it

    @property
    def lines(self) -> pd.DataFrame:
        """What is shown rows of: many names by pattern."""
        folded = fold_rows(self.frame, by=self.by)
        lines: pd.DataFrame = folded[0] if folded else self.frame
        return lines.loc[:, list(self.seen)] if self.seen else lines


@dataclass(frozen=True, slots=True)
class Bars:
    """A picture of text: one bar a line."""

    labels: tuple[str, ...]
    values: tuple[float, ...]  # lengths, from 0 on
    texts: tuple[str, ...]  # the same as people read them


def share_bars(labels: Iterable[str], shares: Sequence[float]) -> Bars:
    """Bars of shares of 0..1."""
    return Bars(tuple(labels), tuple(shares), tuple(map(percent_text, shares)))


@dataclass(frozen=True, slots=True)
class Grid:
    """A picture of text: cells in rows and columns, the stronger the darker."""

    rows: tuple[str, ...]  # labels, top to bottom
    columns: tuple[str, ...]  # labels
    cells: tuple[tuple[str, ...], ...]  # row by row
    shades: tuple[tuple[float | None, ...], ...]  # 0..1; None: no number
    measure: str  # what the shade shows


@dataclass(frozen=True, slots=True)
class Branch:
    """A line of a tree, and the lines below it."""

    label: str
    detail: str = ""
    below: tuple[Branch, ...] = ()


@dataclass(frozen=True, slots=True)
class Tree:
    """A picture of text: parts below what they are parts of."""

    branches: tuple[Branch, ...]


@dataclass(frozen=True, slots=True)
class Joins:
    """A picture of text: names that are joined to what they have in common."""

    groups: tuple[tuple[tuple[str, ...], str], ...]  # names, and what they share


Block = Sentence | Bullets | Facts | Code | Figure | Table
TextPicture = Bars | Grid | Tree | Joins
