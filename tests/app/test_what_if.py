"""The tab "What if" of the sharing page, with the real engine."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from safetensors.numpy import load_file
from streamlit.testing.v1 import AppTest

from inspector.analyses.what_if.result import CHANGES
from inspector.demo import DEMOS
from inspector.text import bytes_text
from tests.app.looking import said

Open = Callable[..., AppTest]
GPT2 = load_file(DEMOS["demo-gpt2"].folder / "model.safetensors")


@pytest.mark.parametrize("change", sorted(CHANGES))
def test_each_change_is_answered_and_in_the_address_bar(open_app: Open, change: str) -> None:
    app = open_app("sharing", checkpoint="demo-gpt2", change=change)
    assert not app.exception
    assert not app.error
    shown = said(app)
    assert CHANGES[change] in shown
    tables = [table.value for table in app.dataframe]
    (ways,) = (table for table in tables if "loss_after" in table.columns)
    assert ways["way"].tolist()[0] == "As it is"
    (numbers,) = (table for table in tables if "largest_difference" in table.columns)
    untouched = numbers[numbers["way"] == "As it is"]
    assert untouched["largest_difference_after_training"].tolist() == [0.0]
    changed = [] if change == "untie" else [f"--change={change}"]  # the default is left out
    line = " ".join(["python -m inspector whatif demo-gpt2", *changed])
    assert line in [code.value for code in app.code]
    changed = numbers[numbers["way"] != "As it is"]
    assert (set(changed["after"]) != {"one tensor"}) == (change != "reload")


def test_untying_shows_the_cost_of_this_checkpoint(open_app: Open) -> None:
    shown = said(open_app("sharing", checkpoint="demo-gpt2", tab="What if"))
    numbers = sum(tensor.size for tensor in GPT2.values())
    matrix = GPT2["transformer.wte.weight"].size
    assert f"{numbers:,} → {numbers + matrix:,} parameters" in shown
    share = f"({100 * matrix / numbers:.1f} %)"
    assert share in shown


def test_an_empty_text_trains_nothing(open_app: Open) -> None:
    app = open_app("sharing", checkpoint="demo-gpt2", tab="What if")
    app.text_input(key="text").set_value("").run()
    assert "not trained: No training was requested" in said(app)
    assert not any("largest_difference_after_training" in each.value.dropna(axis="columns") for each in app.dataframe)


def test_why_is_answered_with_the_checkpoints_own_numbers(open_app: Open) -> None:
    app = open_app("sharing", checkpoint="demo-gpt2", tab="Why")
    rows, columns = GPT2["transformer.wte.weight"].shape
    assert f"({rows:,}, {columns:,}) = (vocab, d_model)" in said(app)
    assert "It has transformer.wte.weight but not lm_head.weight" in said(app)
    listed = sum(tensor.size for tensor in GPT2.values()) + rows * columns
    assert f"{listed:,} parameters by name, {listed - rows * columns:,} unique" in said(app)
    assert f"sharing saves {bytes_text(4 * rows * columns)}, {100 * rows * columns / listed:.1f} %" in said(app)


def test_steps_of_another_page_are_not_asked_for_here(open_app: Open) -> None:
    app = open_app("training", checkpoint="demo-gpt2", steps="500", learning_rate="0.001")
    assert not app.error
    app.switch_page("pages/sharing.py").run()
    app.session_state["tab"] = "What if"
    app.run()
    assert not app.error
    app.run()
    assert app.number_input(key="steps").value == 1
    linked = open_app("sharing", checkpoint="demo-gpt2", tab="What if", steps="500")
    assert [each.value.replace("\\", "") for each in linked.error] == ["Steps must be between 0 and 20, not 500."]
    assert not any(each.error for each in linked.expander)  # they are closed
