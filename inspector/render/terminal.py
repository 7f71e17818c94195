"""Print an answer on a terminal, or into a pipe: there without colors, and otherwise the same."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from inspector.text import escaped
from inspector.view.blocks import Bullets, Code, Facts, Sentence, TextPicture
from inspector.view.drawing import Line, draw, fit, mark
from inspector.view.screen import Rows, Screen, rows_left
from inspector.view.view import Headline

SIGNS = {  # verdict -> what stands before the headline, and its style
    "ok": ("✓ ", "bold green"),
    "note": ("• ", "bold cyan"),
    "warning": ("! ", "bold yellow"),
    "problem": ("✗ ", "bold red"),
    None: ("", "bold"),
}
STYLES = {"bar": "cyan", "dim": "dim", "bold": "bold", "": ""}
LIGHT, DARK = (232, 241, 242), (11, 100, 112)  # ends of the shades
WIDEST = 100  # columns of running text: longer lines are hard to read
NARROWEST = 18  # columns of a table's cell that is cut


def write_screen(screen: Screen, console: Console) -> None:
    """Print the headline, the picture and what is beside it, and what else there is."""
    if console.color_system:
        _write_whole(screen, console)
        return
    with console.capture() as capture:
        _write_whole(screen, console)
    lines = capture.get().splitlines()
    console.file.write("".join(f"{line.rstrip()}\n" for line in lines))  # no spaces at the ends of a pipe's lines


def _write_whole(screen: Screen, console: Console) -> None:
    _write_headline(screen.headline, console)
    for block in screen.blocks:
        console.print()
        WRITERS.get(type(block), _write_picture)(block, console)
    if screen.more:
        console.print()
        _write_text(screen.more, console, style="dim")


def _write_headline(headline: Headline, console: Console) -> None:
    sign, style = SIGNS[headline.verdict]
    text = Text(escaped(headline.text), style="bold")
    if not sign:
        console.print(text, width=min(console.width, WIDEST))
        return
    grid = Table.grid()
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    grid.add_row(Text(sign, style=style), text)
    console.print(grid, width=min(console.width, WIDEST))


def _write_picture(picture: TextPicture, console: Console) -> None:
    for line in draw(picture, console.width):
        console.print(_styled(line, console), no_wrap=True, overflow="ignore", crop=False)


def _write_sentence(sentence: Sentence, console: Console) -> None:
    _write_text(sentence.text, console)


def _write_code(code: Code, console: Console) -> None:
    for line in code.text.splitlines():
        console.print(Text(f"  {escaped(line)}", style="cyan"), soft_wrap=True)


def _write_bullets(bullets: Bullets, console: Console) -> None:
    for item in bullets.items:
        _write_item(item, console)


def _write_text(text: str, console: Console, *, style: str = "") -> None:
    console.print(Text(escaped(text), style=style), width=min(console.width, WIDEST), overflow="fold")


def _write_item(item: str, console: Console) -> None:
    grid = Table.grid()
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    grid.add_row(Text("- ", style="dim"), Text(escaped(item)))
    console.print(grid, width=min(console.width, WIDEST))


def _write_facts(facts: Facts, console: Console) -> None:
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for name, value in facts.pairs.items():
        grid.add_row(Text(escaped(name), style="dim"), Text(escaped(value)))
    console.print(grid, width=min(console.width, WIDEST))


def write_rows(rows: Rows, console: Console) -> None:
    """Print the rows of a table below its column names; columns that do not fit are named below it."""
    if rows.title:
        console.print(Text(escaped(rows.title), style="bold"), overflow="fold")
    columns = [[escaped(cell) for cell in column] for column in zip(rows.columns, *rows.rows, strict=True)]
    widths = fitting([max(map(cell_len, column)) for column in columns], console.width)
    table = Table.grid(padding=(0, 2, 0, 0))
    for width, numeric in zip(widths, rows.numeric, strict=False):
        table.add_column(justify="right" if numeric else "left", width=width, no_wrap=True, overflow="ellipsis")
    for place, cells in enumerate(zip(*columns[: len(widths)], strict=True)):
        fitted = (
            cell if cell_len(cell) <= width else fit(cell, width) for cell, width in zip(cells, widths, strict=True)
        )
        table.add_row(*(Text(cell, style="" if place else "dim") for cell in fitted))
    console.print(table)
    hidden = rows.columns[len(widths) :]
    left = [rows_left(rows, len(rows.rows)), f"not shown: {', '.join(map(escaped, hidden))}" if hidden else ""]
    if said := "; ".join(filter(None, left)):
        _write_text(said, console, style="dim")


def fitting(widths: Sequence[int], room: int) -> list[int]:
    """Columns of a table that fit, with the width of each: the widest are cut before one is left out."""
    kept = list(widths)
    while kept:
        free = room - 2 * (len(kept) - 1)
        cut = list(kept)
        while sum(cut) > free and max(cut) > NARROWEST:
            cut[cut.index(max(cut))] -= 1
        if sum(cut) <= free:
            return cut
        if len(kept) == 1:
            return [max(free, 1)]
        kept.pop()
    return []


def _styled(line: Line, console: Console) -> Text:
    text = Text()
    for span, style in line:
        if mark(style):
            text.append(f" {span}" if console.color_system else mark(style) + span, style=_shade(style, console))
        else:
            text.append(span, style=STYLES[style])
    text.rstrip()
    return text


def _shade(style: str, console: Console) -> str:
    share = style.partition(" ")[2]
    if not share or not console.color_system:
        return ""
    red, green, blue = (round(low + float(share) * (high - low)) for low, high in zip(LIGHT, DARK, strict=True))
    return f"{'white' if float(share) > 0.5 else 'black'} on #{red:02x}{green:02x}{blue:02x}"


WRITERS: dict[type, Callable[[Any, Console], None]] = {
    Sentence: _write_sentence,
    Bullets: _write_bullets,
    Facts: _write_facts,
    Code: _write_code,
    Rows: write_rows,
}
