"""A view as a terminal shows it: plain values, few enough to send from one process to another and to read at once."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from inspector.text import plural
from inspector.view.blocks import (
    Bars,
    Block,
    Branch,
    Bullets,
    Code,
    Facts,
    Figure,
    Grid,
    Joins,
    Sentence,
    Table,
    TextPicture,
    Tree,
)
from inspector.view.cells import cell_text, column_label, is_amount
from inspector.view.view import Headline, View

if TYPE_CHECKING:  # half a second of every verb
    import pandas as pd

ROWS = 12  # of a table
ALL = "--json prints every number."


@dataclass(frozen=True, slots=True)
class Rows:
    """The first rows of a table, as text."""

    title: str
    columns: tuple[str, ...]
    numeric: tuple[bool, ...]  # columns whose values stand at the right
    rows: tuple[tuple[str, ...], ...]
    total: int  # rows of the whole table


Shown = Sentence | Bullets | Facts | Code | Rows | Bars | Grid | Tree | Joins
KINDS: dict[str, type] = {
    each.__name__: each for each in (Sentence, Bullets, Facts, Code, Rows, Bars, Grid, Tree, Joins)
}


@dataclass(frozen=True, slots=True)
class Screen:
    """What a terminal shows of an answer."""

    headline: Headline
    blocks: tuple[Shown, ...]  # the picture first
    more: str = ""  # what else there is


def screen_of(view: View) -> Screen:
    """Choose what a terminal shows of a view: the picture as text, and what is beside it."""
    picture = (view.picture.text,) if view.picture and view.picture.text else ()
    return Screen(view.headline, (*picture, *_shown(view.beside)), view.more or ALL)


def _shown(blocks: tuple[Block | TextPicture, ...]) -> Iterator[Shown]:
    for block in blocks:
        if isinstance(block, Table):
            yield first_rows(block.title, block.lines, len(block.frame))
        elif not isinstance(block, Figure):
            yield block


def first_rows(title: str, frame: pd.DataFrame, total: int) -> Rows:
    """The first rows of a frame as text; columns that nobody has a value in are left out."""
    columns = list(map(str, frame.dropna(axis="columns", how="all").columns))
    records = frame.head(ROWS).to_dict("records")
    return rows_of(title, [{name: record[name] for name in columns} for record in records], max(total, len(frame)))


def rows_of(title: str, records: list[dict[str, Any]], total: int | None = None) -> Rows:
    """Plain records as a table of text."""
    columns = list(records[0]) if records else []
    return Rows(
        title,
        tuple(column_label(name) for name in columns),
        tuple(any(is_amount(_plain(record[name])) for record in records) for name in columns),
        tuple(tuple(cell_text(record[name], name) for name in columns) for record in records),
        len(records) if total is None else total,
    )


def _plain(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else value


def screen_of_values(title: str, plain: dict[str, Any]) -> Screen:
    """Arrange plain values that no room has arranged: facts, then lists as tables."""
    values = {name: value for name, value in plain.items() if name != "warnings"}
    tables = {name: value for name, value in values.items() if _is_table(value)}
    facts = {_title(name): cell_text(value, name) for name, value in values.items() if name not in tables}
    for name, value in values.items():
        if isinstance(value, dict):
            facts[_title(name)] = ", ".join(f"{key} {cell_text(item, key)}" for key, item in value.items()) or "none"
        elif value in ([], (), ""):
            facts[_title(name)] = "none"
    blocks = [Facts(facts)] if facts else []
    return Screen(
        Headline(title),
        (*blocks, *(rows_of(_title(name), value[:ROWS], len(value)) for name, value in tables.items())),
        ALL,
    )


def _is_table(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], dict)


def _title(name: str) -> str:
    label = column_label(name)
    return label[:1].upper() + label[1:]


def sent(screen: Screen) -> dict[str, Any]:
    """A screen as plain JSON values."""
    return {
        "headline": dataclasses.asdict(screen.headline),
        "blocks": [{"kind": type(block).__name__, **dataclasses.asdict(block)} for block in screen.blocks],
        "more": screen.more,
    }


def received(plain: dict[str, Any]) -> Screen:
    """A screen out of what `sent` made of it."""
    return Screen(
        Headline(**plain["headline"]), tuple(_block(dict(block)) for block in plain["blocks"]), str(plain["more"])
    )


def _block(plain: dict[str, Any]) -> Shown:
    kind = KINDS[plain.pop("kind")]
    if kind is Tree:
        return Tree(tuple(map(_branch, plain["branches"])))
    return kind(**{name: _frozen(value) for name, value in plain.items()})


def _branch(plain: dict[str, Any]) -> Branch:
    return Branch(plain["label"], plain["detail"], tuple(map(_branch, plain["below"])))


def _frozen(value: Any) -> Any:
    return tuple(map(_frozen, value)) if isinstance(value, list) else value


def rows_left(rows: Rows, shown: int) -> str:
    """How many rows are not shown; "" where all are."""
    return f"… and {plural(rows.total - shown, 'more row')}" if rows.total > shown else ""
