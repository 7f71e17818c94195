"""Show a result to people on a terminal, and write its tables to files."""

from __future__ import annotations

from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from inspector.errors import cannot_write
from inspector.text import as_csv, escaped

if TYPE_CHECKING:  # half a second of every verb
    import pandas as pd

ROWS_SHOWN = 200
BLOCKS_SHOWN = 40  # rows that are printed as lines where they are too wide for a table


def write_frame(frame: pd.DataFrame, path: Path, file: IO[bytes]) -> None:
    """Write a table as .csv or .parquet.

    Args:
        frame: The table.
        path: Its name, whose end decides.
        file: Where it is written; it is closed.

    Raises:
        RequestError: If the file cannot be written.
    """
    try:
        with file:
            if path.suffix == ".parquet":
                frame.to_parquet(file, index=False)
            else:
                file.write(as_csv(frame).encode())
    except OSError as error:
        raise cannot_write(path, error) from error


def write_table(plain: dict[str, Any], console: Console) -> None:
    """Print plain JSON values as lines and tables."""
    for key, value in plain.items():
        if _is_table(value):
            _print_rows(key, value, console)
        elif isinstance(value, dict):
            _print_facts(key, value, console)
        elif key != "warnings":  # they have been said on stderr
            _print_value(key, value, console)


def _print_facts(key: str, value: dict[str, Any], console: Console) -> None:
    facts = {name: item for name, item in value.items() if not _is_table(item)}
    if facts:
        _print_rows(key, [{"": name, " ": item} for name, item in facts.items()], console)
    for name, rows in value.items():
        if name not in facts:
            _print_rows(f"{key}: {name}", rows, console)


def _print_value(key: str, value: Any, console: Console) -> None:
    """Print a value on its line, and a list that is longer than a line one below the other."""
    line = f"{_title(key)}: {_cell(value)}"
    if not isinstance(value, list) or cell_len(line) <= console.width:
        console.print(Text(line))
        return
    console.print(Text(_title(key), style="bold"))
    for item in value:
        console.print(Text(f"  {_cell(item)}"), soft_wrap=True)


def _print_rows(key: str, rows: list[dict[str, Any]], console: Console) -> None:
    nested = [name for name, value in rows[0].items() if _is_table(value)]
    columns = [name for name in rows[0] if name not in nested]
    shown = [[_cell(row[column]) for column in columns] for row in rows[:ROWS_SHOWN]]
    headings = [column.replace("_", " ") for column in columns]
    blocks = len(rows) <= BLOCKS_SHOWN and _width([headings, *shown]) > console.width
    if blocks:
        _print_blocks(key, headings, shown, console)
    else:
        numeric = [isinstance(_first(rows, column), int | float) for column in columns]
        table = Table(title=_title(key), title_justify="left", title_style="bold")
        for heading, right in zip(headings, numeric, strict=True):
            table.add_column(heading, justify="right" if right else "left")
        for cells in shown:
            table.add_row(*map(Text, cells))
        console.print(table)
    if len(rows) > ROWS_SHOWN:
        console.print(f"… and {len(rows) - ROWS_SHOWN:,} more rows: --json prints all of them.")
    for row in rows:
        for name in nested:
            said = columns[:1] if blocks else columns  # the block above has the others
            label = ", ".join(f"{column} {_cell(row[column])}" for column in said)
            _print_rows(escaped(f"{label}: {name}"), row[name], console)


def _first(rows: list[dict[str, Any]], column: str) -> Any:
    """A column's first value that is there."""
    return next((row[column] for row in rows if row[column] is not None), None)


def _width(lines: list[list[str]]) -> int:
    """Columns of the terminal that a table of these cells takes, uncut."""
    return sum(3 + max(map(cell_len, cells)) for cells in zip(*lines, strict=True)) + 1


def _print_blocks(key: str, headings: list[str], shown: list[list[str]], console: Console) -> None:
    """Print each row as lines of its own, where a table would have to cut its cells."""
    console.print(Text(_title(key), style="bold"))
    for cells in shown:
        block = Table.grid(padding=(0, 2), pad_edge=True)
        block.add_column(no_wrap=True)
        block.add_column(overflow="fold")
        for heading, cell in zip(headings, cells, strict=True):
            block.add_row(Text(heading), Text(cell))
        console.print(block)
        console.print()


def _is_table(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], dict)


def _title(key: str) -> str:
    text = key.replace("_", " ") if key.isidentifier() else key  # a label holds names, which stay as they are
    return text[:1].upper() + text[1:]


def _cell(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, list):
        return ", ".join(map(_cell, value)) or "none"
    return escaped(str(value))
