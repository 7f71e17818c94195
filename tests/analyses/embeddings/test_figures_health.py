"""The histogram of scores counts every judged row once, on the right side of the threshold."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd

from inspector.analyses.embeddings.figures_health import score_histogram
from inspector.analyses.embeddings.result_health import Indicator
from inspector.plotting.theme import DARK

INDICATOR = Indicator("direction", 16, "", threshold=0.55, reference_score=0.9, typical_score=0.0)


def test_every_judged_row_is_counted_once_and_listed_ones_apart():
    scores = pd.DataFrame(
        {
            "score": [*np.linspace(-0.5, 0.5, 400), *np.linspace(0.6, 0.9, 25), np.nan],
            "flagged": [False] * 400 + [True] * 25 + [False],
        }
    )
    figure = json.loads(str(score_histogram(scores, INDICATOR, title="<b>t", theme=DARK).to_json()))
    bars = {trace["name"]: trace for trace in figure["data"]}
    drawn = {name: decoded(trace["y"]) for name, trace in bars.items()}
    assert sum(drawn["ordinary tokens"]) == 400
    assert sum(drawn["listed as under-trained"]) == 25
    places = decoded(bars["listed as under-trained"]["x"])
    counted = [x for x, y in zip(places, drawn["listed as under-trained"], strict=True) if y]
    assert min(counted) > 0.55
    lines = [shape["x0"] for shape in figure["layout"]["shapes"]]
    assert lines == [0.55, 0.9]
    assert "&lt;b&gt;t" in figure["layout"]["title"]["text"]


def test_one_score_for_all_is_drawn_too():
    scores = pd.DataFrame({"score": [0.1] * 5, "flagged": [False] * 5})
    figure = score_histogram(scores, Indicator("norm", 0, "", threshold=0.5), title="t")
    assert sum(decoded(json.loads(str(figure.to_json()))["data"][0]["y"])) == 5


def decoded(values: list[float] | dict[str, str]) -> list[float]:
    """Read an array as Plotly writes it: a list, or base64 with its type."""
    import base64

    if isinstance(values, list):
        return values
    return np.frombuffer(base64.b64decode(values["bdata"]), dtype=values["dtype"]).tolist()
