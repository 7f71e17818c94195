"""Figures over training steps: what is drawn where, and what is left out."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd

from inspector.analyses.snapshots.figures import has_steps, step_lines, verdict_grid


def lines(steps: list[int | None]) -> pd.DataFrame:
    names = [f"checkpoint-{step}" for step in steps]
    rows = [
        (place, name, step, line, value + place)
        for line, value in (("<b>", 1.0), ("none", math.nan))
        for place, (name, step) in enumerate(zip(names, steps, strict=True))
    ]
    frame = pd.DataFrame(rows, columns=["place", "snapshot", "step", "line", "value"])
    return frame.astype({"step": "Int64"})


def test_lines_stand_over_steps_and_a_line_without_a_number_is_left_out() -> None:
    figure: Any = step_lines(lines([0, 10, 500]), measure="length", title="Norms, my <run>")
    (trace,) = figure.data
    assert list(trace.x) == [0, 10, 500]
    assert list(trace.y) == [1, 2, 3]
    assert trace.name == "&lt;b&gt;"
    assert "my &lt;run&gt;" in figure.layout.title.text
    assert "checkpoint-10" in trace.hovertext[1]


def test_without_a_step_of_its_own_each_snapshot_stands_at_its_place() -> None:
    cases: list[list[int | None]] = [[5, None], [5, 5]]
    for steps in cases:
        frame = lines(steps)
        assert not has_steps(frame)
        figure: Any = step_lines(frame, measure="length", title="run")
        (trace,) = figure.data
        assert list(trace.x) == [0, 1]
    figure = step_lines(lines([5, 70]), measure="length", title="run", evenly=True)
    assert list(figure.data[0].x) == [0, 1]
    assert list(figure.layout.xaxis.ticktext) == ["5", "70"]


def test_a_grid_has_a_sign_for_each_verdict_and_a_gap_where_there_is_none() -> None:
    cells = pd.DataFrame(
        [
            (0, "a", 1, "ties", "ok", "fine"), (0, "a", 1, "NaN", "fail", "two"),
            (2, "c", 3, "ties", "warn", "hm"),
        ],
        columns=["place", "snapshot", "step", "row", "verdict", "detail"],
    ).astype({"step": "Int64"})  # fmt: skip
    figure: Any = verdict_grid(cells, title="Checks, run")
    drawn = {trace.name: (list(trace.x), list(trace.y)) for trace in figure.data}
    assert drawn == {"✓ ok": ([0], [0]), "! warn": ([2], [0]), "✗ fail": ([0], [1])}
    assert list(figure.layout.yaxis.ticktext) == ["ties", "NaN"]
    assert list(figure.layout.xaxis.ticktext) == ["1", "3"]
    assert "two" in figure.data[2].hovertext[0]
