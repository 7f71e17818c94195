"""The tabs on the vocabulary's health, with the real engine."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

from safetensors.numpy import load_file
from streamlit.testing.v1 import AppTest

from inspector.demo import DEMOS
from tests.app.looking import said

Open = Callable[..., AppTest]


def test_counts_of_the_demo_and_the_rows_that_a_finding_is_of(open_app: Open) -> None:
    app = open_app("embeddings", checkpoint="demo-bert", tab="Health")
    assert not app.exception
    tables = [each.value for each in app.dataframe]
    counts = {name: int(count) for name, count in re.findall(r"^\| ([A-Z].+?) \| (\d+) \| ", said(app), re.MULTILINE)}
    assert [counts[name] for name in ("NaN or infinity", "Zero rows", "Equal rows")] == [0, 0, 0]
    (lost,) = (table for table in tables if "listed" in table.columns)
    assert len(lost) == counts["Tokens never produced"] == 21
    assert "##!" in lost["token"].tolist()


def test_thresholds_and_tokens_that_look_under_trained(open_app: Open) -> None:
    app = open_app("embeddings", checkpoint="demo-bert", tab="Under-trained")
    assert not app.exception
    (table,) = (each.value for each in app.dataframe if "percentile" in each.value.columns)
    (chart,) = app.get("plotly_chart")
    assert json.loads(chart.proto.spec)["layout"]["title"]["subtitle"]["text"] == f"{len(table):,} of 5,099 are listed"
    # The evidence is the file's own.
    tensors = load_file(DEMOS["demo-bert"].folder / "model.safetensors")
    rows = table["token_id"].to_numpy()
    norms = (tensors["bert.embeddings.word_embeddings.weight"][rows] ** 2).sum(axis=1) ** 0.5
    assert abs(norms - table["norm"].to_numpy()).max() < 1e-5
    assert (tensors["cls.predictions.bias"][rows] == table["bias"].to_numpy()).all()
    assert "mean of 16 rows that are known to be unused" in said(app)
    assert "Fishing for Magikarp" in said(app)
