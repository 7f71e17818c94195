"""The Training page: counts, schedules, refusals and the terminal's line, with the real engine."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from safetensors.numpy import load_file
from streamlit.testing.v1 import AppTest

from inspector.demo import DEMOS
from tests.app.looking import facts, said

Open = Callable[..., AppTest]
TENSORS = load_file(DEMOS["demo-bert"].folder / "model.safetensors")
KEPT = sum(tensor.size for name, tensor in TENSORS.items() if "bias" in name or "LayerNorm" in name)
TOTAL = sum(tensor.size for tensor in TENSORS.values())


def table(app: AppTest, column: str):
    """The first table that has a column."""
    return next(each.value for each in app.dataframe if column in each.value.columns)


def test_the_counts_are_those_of_the_file(open_app: Open) -> None:
    app = open_app("training")
    assert not app.exception
    assert facts(app)["Not decayed"].startswith(f"{KEPT:,} parameters in ")
    assert f"{TOTAL - KEPT:,} parameters in" in said(app)
    assert f"{KEPT:,} in" in said(app)
    app = open_app("training", tab="Groups")
    reasons = table(app, "reason")
    assert sum(reasons["parameters"].tolist()) == TOTAL
    every = next(each.value for each in app.dataframe if "in_file" in each.value.columns)
    assert len(every) == len(TENSORS)


def test_the_link_holds_the_numbers_and_the_terminal_line_repeats_them(open_app: Open) -> None:
    app = open_app("training", learning_rate="0.001", warmup_steps="2", steps="5", weight_decay="0.5", at="0, 2, 4")
    rates = table(app, "constant with warmup")
    assert rates["update"].tolist() == [0, 2, 4]
    assert rates["linear"].tolist() == ["0", "0.001", "0.000333333"]
    line = app.code[-1].value
    steps = {"learning_rate": "0.001", "warmup_steps": "2", "steps": "5"}
    assert any("num_training_steps=5" in each.value for each in open_app("training", tab="Python", **steps).code)
    assert "training demo-bert --learning-rate=0.001 --warmup-steps=2 --steps=5" in line
    assert "--weight-decay=0.5" in line
    figure = json.loads(app.get("plotly_chart")[0].proto.spec)
    assert [line["name"] for line in figure["data"]] == [
        "constant", "constant with warmup", "linear", "cosine", "cosine with restarts",
        "polynomial",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        ({"steps": "0"}, "Steps must be between 1 and 1\\,000\\,000\\, not 0"),
        ({"steps": "1000001"}, "not 1\\,000\\,001"),
        ({"warmup_steps": "1001"}, "The warm\\-up takes 1\\,001 steps"),
        ({"learning_rate": "-0.1"}, "Learning rate must be above 1e\\-07"),
    ],
)
def test_numbers_that_do_not_fit_are_one_sentence(open_app: Open, query: dict[str, str], sentence: str) -> None:
    app = open_app("training", **query)
    assert not app.exception
    (error,) = app.error
    assert sentence in error.value


def test_an_update_that_is_none_is_said_and_the_page_stays(open_app: Open) -> None:
    app = open_app("training", at="5, 1000")
    assert [each.value for each in app.error] == [
        "There is no update 1000: enter comma-separated numbers from 0 to 999."
    ]
    assert 999 in table(app, "constant with warmup")["update"].tolist()


def test_a_search_for_a_group_finds_that_group_alone(open_app: Open) -> None:
    app = open_app("training", find="decayed")
    every = next(each.value for each in app.dataframe if "in_file" in each.value.columns)
    assert set(every["group"]) == {"decayed"}
    app.text_input(key="find").set_value("LayerNorm").run()
    every = next(each.value for each in app.dataframe if "in_file" in each.value.columns)
    assert len(every) == sum("LayerNorm" in name for name in TENSORS)
    app.text_input(key="find").set_value("no such parameter").run()
    assert "No row matches" in app.info[0].value
