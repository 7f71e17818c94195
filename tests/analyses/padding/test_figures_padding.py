"""The bars of the padding page: every number is there, and an exact zero looks like none."""

from __future__ import annotations

import math

import pandas as pd
import pytest

from inspector.analyses.padding.figures import gradient_bars
from inspector.analyses.padding.result import AS_IT_IS, FRESH, LIFTED, UNTIED


def experiments(*lines: tuple[str, str, float, float, float]) -> pd.DataFrame:
    return pd.DataFrame(lines, columns=["experiment", "role", "input_path", "output_path", "total"])


TIED = experiments(
    (AS_IT_IS, "as padding", 0.0, 3e-8, 3e-8),
    (AS_IT_IS, "not in the text", 0.5, 0.5, 0.7),
    (UNTIED, "as padding", 0.0, 0.0, 0.0),
    (LIFTED, "as padding", 0.9, 3e-8, 0.9),
    (FRESH, "as padding", 0.0, 2e-3, 2e-3),
)


def test_four_bars_end_at_their_norms_and_zeros_have_rings() -> None:
    figure = gradient_bars(TIED, row="<b>").to_dict()
    bars, rings = figure["data"]
    ends = [base + x for base, x in zip([bars["base"]] * 4, bars["x"], strict=True)]
    assert ends == pytest.approx([bars["base"], 3e-8, bars["base"], 2e-3])
    assert bars["text"] == [
        " <b>  exactly 0</b>", " <b>3e-08</b>", " <b>  exactly 0</b>", " <b>0.002</b>",
    ]  # fmt: skip
    assert list(rings["y"]) == [0, 2]
    axis = figure["layout"]["xaxis"]
    assert axis["type"] == "log"
    assert axis["range"][0] == math.log10(bars["base"])
    assert bars["base"] < 3e-8  # the smallest bar can be seen
    assert axis["range"][1] > math.log10(2e-3)  # room for its text
    assert "&lt;b&gt;" in figure["layout"]["title"]["text"]


def test_an_untied_checkpoint_has_no_bar_for_untying() -> None:
    untied = pd.DataFrame(TIED[TIED["experiment"] != UNTIED])
    labels = gradient_bars(untied, row="r").to_dict()["layout"]["yaxis"]["ticktext"]
    assert len(labels) == 3
    assert not [label for label in labels if "untied" in label]


def test_gradients_that_are_all_zero_have_rings_alone() -> None:
    zeros = experiments((AS_IT_IS, "as padding", 0.0, 0.0, 0.0))
    figure = gradient_bars(zeros, row="r").to_dict()
    assert list(figure["data"][1]["y"]) == [0, 1]
    assert list(figure["data"][0]["x"]) == [0, 0]
