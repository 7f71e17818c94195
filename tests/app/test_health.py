"""The tab on the vocabulary's health, with the real engine."""

from __future__ import annotations

from collections.abc import Callable

from safetensors.numpy import load_file
from streamlit.testing.v1 import AppTest

from inspector.demo import DEMOS
from tests.app.looking import metrics, said

Open = Callable[..., AppTest]


def test_counts_thresholds_and_tokens_of_the_demo(open_app: Open) -> None:
    app = open_app("embeddings", checkpoint="demo-bert", tab="Health")
    assert not app.exception
    shown = metrics(app)
    assert [shown[name] for name in ("NaN or infinity", "Zero rows", "Equal rows")] == ["none"] * 3
    (table,) = (each.value for each in app.dataframe if "percentile" in each.value.columns)
    assert shown["Under-trained tokens"] == f"{len(table):,}"
    # The evidence is the file's own.
    tensors = load_file(DEMOS["demo-bert"].folder / "model.safetensors")
    rows = table["token_id"].to_numpy()
    norms = (tensors["bert.embeddings.word_embeddings.weight"][rows] ** 2).sum(axis=1) ** 0.5
    assert abs(norms - table["norm"].to_numpy()).max() < 1e-5
    assert (tensors["cls.predictions.bias"][rows] == table["bias"].to_numpy()).all()
    assert "mean of 16 rows that are known to be unused" in said(app)
    assert "Fishing for Magikarp" in said(app)


def test_what_is_never_produced_has_its_own_table(open_app: Open) -> None:
    app = open_app("embeddings", checkpoint="demo-bert", tab="Health")
    (found,) = (each for each in app.expander if each.label.startswith("Tokens never produced"))
    assert found.label == "Tokens never produced: 21"
    assert "##!" in found.dataframe[0].value["token"].tolist()
