"""What a terminal shows: whatever its width, safe to print, and plain text in a pipe."""

from __future__ import annotations

import json
from io import StringIO

import pandas as pd
import pytest
from rich.cells import cell_len
from rich.console import Console

from inspector.render.terminal import fitting, write_screen
from inspector.view.blocks import Bars, Branch, Bullets, Code, Facts, Figure, Grid, Joins, Sentence, Table, Tree
from inspector.view.screen import ROWS, Screen, received, rows_of, screen_of, screen_of_values, sent
from inspector.view.view import Headline, Picture, Tab, Verdict, View

NAME = "bert.encoder.layer.11.attention.self.query.weight"
HOSTILE = "\x1b[31mred\u202e\ttoken\nline"
LONG = Grid(
    tuple(str(layer) for layer in range(30)),
    tuple(f"token{place}" for place in range(60)),
    tuple(tuple(f"cell {place}" for place in range(60)) for _ in range(30)),
    tuple(tuple(place / 59 for place in range(60)) for _ in range(30)),
    "probability",
)
TREE = Tree((Branch("model", "2.1M  8.5 MB", (Branch(NAME, "1.2M  4.9 MB"), Branch("cls", "31.5K  126.1 KB"))),))
PICTURES = [
    Bars(("dog", NAME, "词汇"), (0.5, 0.25, 0.0), ("50.0 %", "25.0 %", "0.0 %")),
    LONG,
    TREE,
    Joins((((NAME, "cls.predictions.decoder.weight"), "A: 5,120 × 160, 3.3 MB, tied"), (("a", "b", "c"), "B: 3"))),
]
FRAME = pd.DataFrame({"name": [f"{NAME}.{n}" for n in range(40)], "nbytes": 5_639_746, "rank": None, "share": 0.25})
BLOCKS = (
    Sentence("A sentence. " * 20),
    Bullets(("An item that is longer than a line. " * 5, "short")),
    Facts({"Files": "4 files, 8.7 MB", "Long": NAME * 3}),
    Code("x = 1"),
    Table("t", "Tensors", FRAME),
)


def printed(screen: Screen, *, width: int = 80, color: bool = False) -> str:
    output = StringIO()
    write_screen(screen, Console(file=output, width=width, highlight=False, force_terminal=color,
                                 color_system="truecolor" if color else None))  # fmt: skip
    return output.getvalue()


def over_the_pipe(screen: Screen) -> Screen:
    return received(json.loads(json.dumps(sent(screen), allow_nan=False)))


@pytest.mark.parametrize("picture", PICTURES, ids=lambda picture: type(picture).__name__)
@pytest.mark.parametrize("width", [40, 60, 80, 140, 200])
def test_no_line_is_wider_than_the_terminal(picture, width):
    view = View(Headline("The answer. " * 12, "warning"), Picture(text=picture), BLOCKS)
    lines = printed(screen_of(view), width=width).splitlines()
    assert max(map(cell_len, lines)) <= width
    assert len(lines) < 200


def test_a_screen_that_was_sent_is_the_same():
    for picture in PICTURES:
        screen = screen_of(View(Headline("x", "ok"), Picture(text=picture), BLOCKS, more="more"))
        assert over_the_pipe(screen) == screen


@pytest.mark.parametrize("color", [False, True])
def test_a_strangers_text_gives_the_terminal_no_orders(color):
    grid = Grid((HOSTILE,), (HOSTILE,), ((HOSTILE,),), ((0.5,),), HOSTILE)
    joined = Joins((((HOSTILE, HOSTILE), HOSTILE),))
    frame = pd.DataFrame({HOSTILE: [HOSTILE]})
    for picture in (Bars((HOSTILE,), (1.0,), (HOSTILE,)), grid, Tree((Branch(HOSTILE, HOSTILE),)), joined):
        blocks = (Sentence(HOSTILE), Bullets((HOSTILE,)), Facts({HOSTILE: HOSTILE}), Code(HOSTILE),
                  Table("t", HOSTILE, frame))  # fmt: skip
        text = printed(over_the_pipe(screen_of(View(Headline(HOSTILE), Picture(text=picture), blocks))), color=color)
        assert "\x1b[31m" not in text
        assert "\u202e" not in text
        assert "\t" not in text
        assert "\\x1b[31mred\\u202e\\ttoken" in text


def test_a_pipe_gets_no_colors_and_no_spaces_at_the_ends_of_lines():
    screen = screen_of(View(Headline("x", "ok"), Picture(text=LONG), BLOCKS))
    text = printed(screen)
    assert "\x1b" not in text
    assert [line for line in text.splitlines() if line != line.rstrip()] == []
    assert "\x1b[" in printed(screen, color=True)


def test_a_shade_is_a_color_on_a_terminal_and_a_mark_in_a_pipe():
    grid = Grid(("4",), ("a", "b", "c"), (("low", "high", "none"),), ((0.0, 1.0, None),), "probability")
    screen = screen_of(View(Headline("x"), Picture(text=grid)))
    line = next(line for line in printed(screen).splitlines() if "high" in line)
    assert "·low" in line
    assert "█high" in line
    assert "none" in line
    assert "48;2;11;100;112m" in printed(screen, color=True)
    assert "█" not in printed(screen, color=True)


@pytest.mark.parametrize(("verdict", "sign"), [("ok", "✓"), ("note", "•"), ("warning", "!"), ("problem", "✗")])
def test_the_headline_comes_first_with_its_verdict(verdict: Verdict, sign: str):
    text = printed(screen_of(View(Headline("The answer.", verdict), beside=BLOCKS)))
    assert text.splitlines()[0] == f"{sign} The answer."
    assert text.splitlines()[-1] == "--json prints every number."


def test_a_table_has_column_names_human_sizes_and_says_what_is_left():
    text = printed(screen_of(View(Headline("x"), beside=(Table("t", "Tensors", FRAME, by="none"),))))
    lines = text.splitlines()
    head = lines[lines.index("Tensors") + 1]
    assert head.split() == ["name", "size", "share"]  # nobody has a rank
    assert "nbytes" not in text
    assert "5.6 MB" in text
    assert text.count("….weight") or text.count(NAME) == ROWS
    assert f"… and {40 - ROWS} more rows" in lines


def test_columns_that_do_not_fit_are_named():
    rows = rows_of("t", [{f"column_{n}": "value" * 4 for n in range(9)}])
    text = printed(Screen(Headline("x"), (rows,)), width=60)
    assert "not shown: column 3, column 4, column 5, column 6, column 7, column 8" in " ".join(text.split())


@pytest.mark.parametrize("room", [1, 10, 40, 80, 200])
def test_columns_fit(room):
    widths = fitting([30, 50, 8, 12, 70], room)
    assert sum(widths) + 2 * (len(widths) - 1) <= room
    assert widths
    if room == 200:
        assert widths == [30, 50, 8, 12, 70]


def test_names_keep_what_tells_them_apart():
    names = [f"bert.encoder.layer.{n}.attention.self.query.weight" for n in range(3)]
    screen = screen_of(View(Headline("x"), Picture(text=Bars(tuple(names), (1, 2, 3), ("1", "2", "3")))))
    for width in (50, 60, 80):
        assert all(f".{n}." in printed(screen, width=width) for n in range(3))


def test_only_the_pictures_text_is_shown_not_its_figure():
    def never(theme):
        raise AssertionError(theme)

    view = View(Headline("x"), Picture(Figure("f", never, "alt")), tabs=(Tab("t", lambda: never(None)),))
    assert printed(screen_of(view)).splitlines()[0] == "x"


def test_values_that_nobody_arranged_are_facts_and_tables():
    plain = {
        "nodes": 2,
        "used_nbytes": 5_639_746,
        "kinds": [{"name": "a", "nbytes": 2_000}],
        "names": [],
        "warnings": ["w"],
    }
    text = printed(screen_of_values("The cluster.", plain))
    assert text.splitlines()[0] == "The cluster."
    assert "5.6 MB" in text
    assert "2.0 KB" in text
    assert "nbytes" not in text.lower()
    assert "w" not in text.split()
