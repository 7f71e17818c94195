"""What a report is made of: sections of plain blocks, which know no HTML."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import pandas as pd
import plotly.graph_objects as go

from inspector import placing
from inspector.errors import InspectorError
from inspector.names import NAME, fold_rows
from inspector.plotting.theme import Theme
from inspector.request import Request, option
from inspector.results.checkpoint import Opened
from inspector.settings import Device, Dtype

ROWS = 25  # of a table in the page; the CSV has all of them


@dataclass(frozen=True, slots=True)
class Said:
    """A paragraph of plain text."""

    text: str


@dataclass(frozen=True, slots=True)
class Listed:
    """Plain texts, one below the other."""

    items: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Facts:
    """Properties with their values."""

    pairs: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Drawn:
    """A figure, drawn for light and for dark readers."""

    name: str  # of its files, unlike every other of the section
    draw: Callable[[Theme], go.Figure]  # its title holds the checkpoint's name
    alt: str  # what it shows, in words


@dataclass(frozen=True, slots=True)
class Tabled:
    """A table; long ones are cut in the page and whole in the CSV."""

    name: str  # of its file, unlike every other of the section
    title: str
    frame: pd.DataFrame
    rows: int = ROWS  # that the page shows at most
    by: str = NAME  # the column of names

    @property
    def lines(self) -> pd.DataFrame:
        """What the page shows rows of: many names by pattern."""
        folded = fold_rows(self.frame, by=self.by)
        return folded[0] if folded else self.frame


@dataclass(frozen=True, slots=True)
class Code:
    """Text of fixed width."""

    text: str


Block = Said | Listed | Facts | Drawn | Tabled | Code


@dataclass(frozen=True)
class ReportOptions(Request):
    """What a report is asked for, besides its checkpoint and sections."""

    verb = "report"

    text: str = option("", "Text that the model reads; default: an example")
    device: Device = placing.device()
    dtype: Dtype = placing.dtype()
    seed: int = placing.seed()


class StoredFile(Protocol):
    """A file of the checkpoint."""

    @property
    def name(self) -> str:
        """Its name."""
        ...

    @property
    def nbytes(self) -> int:
        """Its size."""
        ...

    @property
    def sha256(self) -> str | None:
        """Of all its bytes; None: not computed."""
        ...


class About(Protocol):
    """What a report says of its checkpoint: the answer of `overview`, with the files hashed."""

    @property
    def fingerprint(self) -> str:
        """64 hex digits."""
        ...

    @property
    def identity(self) -> str:
        """What the fingerprint is made of: "content" or "samples"."""
        ...

    @property
    def architecture(self) -> str | None:
        """The class in config.json."""
        ...

    @property
    def heads(self) -> Mapping[str, str]:
        """Head -> "present" or "absent"."""
        ...

    @property
    def files(self) -> Sequence[StoredFile]:
        """All that belong to the checkpoint."""
        ...

    @property
    def nbytes_on_disk(self) -> int:
        """Size of all files."""
        ...

    @property
    def dtypes(self) -> Mapping[str, int]:
        """Stored dtype -> parameters."""
        ...

    @property
    def mask_token(self) -> str | None:
        """The tokenizer's."""
        ...

    @property
    def is_causal(self) -> bool:
        """Whether the model predicts the next token, and no masked one."""
        ...


@dataclass(frozen=True, slots=True)
class Context:
    """What every section knows before it asks."""

    opened: Opened
    overview: About
    setting: ReportOptions  # its text is never empty
    other: Opened | None = None  # the second checkpoint, where there is one

    @property
    def name(self) -> str:
        """The checkpoint's name, which every figure's title holds."""
        return self.opened.name

    @property
    def mask(self) -> str | None:
        """The tokenizer's mask token."""
        return self.overview.mask_token


@dataclass(frozen=True, slots=True)
class Section:
    """One entry of a report: what it asks, and what it makes of the answers."""

    slug: str  # of the page that shows the same
    ask: Callable[[Context], tuple[Request, ...]]
    # The first answer is there; of the others None where there is none, which the report says.
    show: Callable[[Context, tuple[Any, ...]], Iterable[Block]]
    query: Callable[[Context], dict[str, str]] = lambda _: {}  # the page's inputs, for the link
    quick: bool = True  # part of a report for which nothing was chosen


@dataclass(frozen=True, slots=True)
class Part:
    """A section with its answers, ready to be written."""

    slug: str
    title: str
    question: str  # that it answers
    blocks: tuple[Block, ...]
    absent: str | None  # why there is no number: the checkpoint has none; then no blocks
    notes: tuple[str, ...]  # warnings, and why something is missing
    link: str  # page and query
    commands: tuple[str, ...]
    requests: tuple[Request, ...]
    ran: tuple[str, ...]  # where the model ran for it, such as "cpu in float32"

    @property
    def figures(self) -> tuple[Drawn, ...]:
        """Its figures, in order."""
        return tuple(block for block in self.blocks if isinstance(block, Drawn))

    @property
    def tables(self) -> tuple[Tabled, ...]:
        """Its tables, in order."""
        return tuple(block for block in self.blocks if isinstance(block, Tabled))


@dataclass(frozen=True, slots=True)
class Report:
    """All that a report says, before it is written in any form."""

    context: Context
    parts: tuple[Part, ...]
    provenance: Mapping[str, str]
    command: str  # that makes the same report
    made: str  # ISO 8601, UTC: the one thing that differs between two runs

    @property
    def name(self) -> str:
        """The checkpoint's name."""
        return self.context.name


def reached(answers: Iterable[Any]) -> tuple[Any, ...]:
    """Answers with None in place of refusals."""
    return tuple(None if isinstance(answer, InspectorError) else answer for answer in answers)
