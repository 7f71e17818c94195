"""The page Sentence similarity: what it shows of an encoder, and what it asks of a model that states no pooling."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from streamlit.testing.v1 import AppTest

from tests.sentence_encoders import save_encoder

Open = Callable[..., AppTest]


def texts(elements: Iterable[Any]) -> str:
    """What is read, without the marks that keep it from being Markdown."""
    return "\n".join(each.value for each in elements).replace("\\", "")


def test_a_model_that_states_no_pooling_is_given_one(open_app: Open) -> None:
    app = open_app("similarity", checkpoint="demo-bert")
    assert "demo-bert states no pooling" in texts(app.info)
    app = open_app("similarity", checkpoint="demo-bert", pooling="mean", texts="a dog is here.\na cat is here.")
    assert not app.error
    assert not app.exception
    assert "The cosine similarity of the two texts is 0." in texts(app.markdown)
    assert "The checkpoint states no pooling: mean was named by you" in texts(app.markdown)
    (chart,) = app.get("plotly_chart")
    assert "add up to" in chart.proto.spec
    (line,) = [line for code in app.code for line in code.value.splitlines() if " similarity " in line]
    assert "--pooling=mean" in line
    assert line.count("--text=") == 2


def test_an_encoder_is_asked_by_its_own_pooling_and_one_text_against_several(open_app: Open, roots: Path) -> None:
    save_encoder(roots / "encoder", pooling="cls", normalize=True)
    named = f"path:{roots / 'encoder'}"
    app = open_app("similarity", checkpoint=named, agreed=(named,), texts="w1 w2\nw3 w4 w5\nw1 w2", tab="Scores")
    assert not app.error
    assert not app.exception
    assert "Most similar of 2 texts: “w1 w2”, cosine similarity 1.0000." in texts(app.markdown)
    assert "Transformer → Pooling → Normalize" in texts(app.markdown)
    (chart,) = app.get("plotly_chart")
    assert "Cosine similarity with" in chart.proto.spec
    (table,) = app.dataframe
    assert table.value["text"].tolist() == ["w1 w2", "w3 w4 w5"]
