"""What a report is made of: sections, each with the views of its answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from inspector import placing
from inspector.request import Request, option
from inspector.results.checkpoint import Opened
from inspector.settings import Device, Dtype
from inspector.view.blocks import Figure, Table
from inspector.view.view import Element, View


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
    def adapter(self) -> bool:
        """Whether its weights are an adapter's."""
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
    def experts(self) -> bool:
        """Whether config.json names a number of experts."""
        ...

    @property
    def pipeline(self) -> Sequence[str]:
        """What sentence-transformers runs one after another."""
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
    # Other checkpoints, by the option that names each.
    beside: Mapping[str, Opened] = field(default_factory=dict)

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
    """One entry of a report: what it asks. The answers' rooms arrange them."""

    slug: str  # of the page that shows the same
    ask: Callable[[Context], tuple[Request, ...]]
    query: Callable[[Context], dict[str, str]] = lambda _: {}  # the page's inputs, for the link
    note: Callable[[Context], str] = lambda _: ""  # what the reader must know besides
    needs: tuple[str, ...] = ()  # options that name the other checkpoints that it asks about
    applies: Callable[[Context], bool] = lambda _: True  # whether a report of everything has it


@dataclass(frozen=True, slots=True)
class AnsweredSection:
    """A section with its answers, ready to be written."""

    slug: str
    title: str
    question: str  # that it answers
    views: tuple[View, ...]  # of its answers
    absent: str | None  # why there is no number: the checkpoint has none; then no views
    notes: tuple[str, ...]  # warnings, and why something is missing
    link: str  # page and query
    commands: tuple[str, ...]
    requests: tuple[Request, ...]
    ran: tuple[str, ...]  # where the model ran for it, such as "cpu in float32"

    @property
    def elements(self) -> tuple[Element, ...]:
        """Everything that its views consist of, in order."""
        return tuple(element for view in self.views for element in view.elements())

    @property
    def figures(self) -> tuple[Figure, ...]:
        """Its figures, in order."""
        return tuple(figure for view in self.views for figure in view.figures)

    @property
    def tables(self) -> tuple[Table, ...]:
        """Its tables, in order."""
        return tuple(table for view in self.views for table in view.tables)


@dataclass(frozen=True, slots=True)
class Report:
    """All that a report says, before it is written in any form."""

    context: Context
    parts: tuple[AnsweredSection, ...]
    provenance: Mapping[str, str]
    command: str  # that makes the same report
    made: str  # ISO 8601, UTC: the one thing that differs between two runs

    @property
    def name(self) -> str:
        """The checkpoint's name."""
        return self.context.name
