"""The page of the merge proof: what it asks for, and what it shows of a merge."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from streamlit.testing.v1 import AppTest

from inspector.demo import DEMOS
from tests.merges import write_merge

Open = Callable[..., AppTest]


def test_it_says_what_it_needs_and_then_proves_the_merge(open_app: Open, roots: Path) -> None:
    app = open_app("merge", checkpoint="demo-bert")
    assert "demo\\-bert is the base" in app.info[0].value
    made = [f"path:{each}" for each in write_merge(DEMOS["demo-bert"].folder, roots)]
    named = dict(zip(("adapter", "merged"), made, strict=True))
    app = open_app("merge", checkpoint="demo-bert", agreed=tuple(made), **named)
    assert not app.exception
    assert not app.error, app.error[0].value
    assert "replayed bit by bit" in app.success[0].value
    (chart,) = app.get("plotly_chart")
    assert "query" in chart.proto.spec
    lines = [line for code in app.code for line in code.value.splitlines() if "verify-merge" in line]
    assert len(lines) == 1
    assert not any("--rows" in each.value for each in app.markdown)  # a page has a control for it
    report = open_app("report", checkpoint="demo-bert", agreed=tuple(made), sections=["Merge proof"], **named)
    (line,) = [line for code in report.code for line in code.value.splitlines()]
    assert " --sections merge " in line
    assert line.endswith(" ".join(f"--{name}={each.removeprefix('path:')}" for name, each in named.items()))
    app = open_app("merge", checkpoint="demo-bert", agreed=tuple(made), **named | {"merged": "demo-bert"})
    assert "is not merged" in app.error[0].value
