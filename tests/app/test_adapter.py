"""The page Overview of an adapter: what it changes, alone and with its base."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from streamlit.testing.v1 import AppTest

from inspector.demo import DEMOS
from tests.merges import write_merge

Open = Callable[..., AppTest]


def test_an_adapter_is_measured_in_the_place_of_a_models_portrait(open_app: Open, roots: Path) -> None:
    adapter, _ = (f"path:{each}" for each in write_merge(DEMOS["demo-bert"].folder, roots))
    app = open_app("overview", checkpoint=adapter, agreed=adapter)
    assert not app.exception
    assert not app.error, app.error[0].value
    (chart,) = app.get("plotly_chart")
    assert "norm of " in chart.proto.spec
    assert any("weights of its base with rank 2 and scale 2" in each.value for each in app.markdown)
    app = open_app("overview", checkpoint=adapter, agreed=adapter, base="demo-bert")
    assert not app.exception
    assert any("A merge in float32 keeps" in each.value for each in app.markdown)
    lines = [line for code in app.code for line in code.value.splitlines() if " adapter " in line]
    assert [line.endswith("--base=demo-bert") for line in lines] == [True]
