"""The padding page with the real engine: its numbers against the files, with and without a head."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from safetensors.numpy import load_file
from streamlit.testing.v1 import AppTest

from inspector.analyses.padding import words
from inspector.analyses.padding.request import PaddingRequest
from inspector.demo import DEMOS
from inspector.request import Request
from pages._ui import session
from tests.app.conftest import SECONDS
from tests.app.looking import facts, said
from tests.app.test_lens import UnderWay
from tests.families import random_model, save_checkpoint

Open = Callable[..., AppTest]
BERT = load_file(DEMOS["demo-bert"].folder / "model.safetensors")
GPT2 = load_file(DEMOS["demo-gpt2"].folder / "model.safetensors")


def table(app: AppTest, column: str) -> pd.DataFrame:
    """The table that has a column."""
    (found,) = (each.value for each in app.dataframe if column in each.value.columns)
    return found


def figure_titles(app: AppTest) -> list[str]:
    charts = [json.loads(chart.proto.spec) for chart in app.get("plotly_chart")]
    return [chart["layout"]["title"]["text"] for chart in charts]


def test_the_demo_shows_vector_gradient_averages_and_history(open_app: Open) -> None:
    app = open_app("padding", checkpoint="demo-bert", text="a dog.\na dog. a dog.")
    matrix = BERT["bert.embeddings.word_embeddings.weight"]
    norms = np.linalg.norm(matrix, axis=1)
    shown = facts(app)
    assert shown["Norm"] == f"{norms[0]:.4f}, the median row {np.median(norms):.4f}"
    assert shown["Shorter rows"] == f"{100 * (norms < norms[0]).mean():.1f} %"
    text = said(app)
    assert "it is tied to the output matrix" in text
    assert "the look-up path is blocked by padding_idx (gradient 0 on your text)" in text
    assert "They agree" in text
    assert f"it pushes {len(matrix):,} of {len(matrix):,} output vectors" in text
    assert [title.split("<b>")[1][:8] for title in figure_titles(app)] == ["Gradient"]


def test_each_tab_has_its_numbers(open_app: Open) -> None:
    asked = {"checkpoint": "demo-bert", "text": "a dog.\na dog. a dog."}
    assert len(figure_titles(open_app("padding", tab="Growth", **asked))) == 2
    averaging = table(open_app("padding", tab="Averages", **asked), "cosine")
    assert averaging["sentence"].tolist() == ["a dog.", "a dog. a dog."]
    assert averaging["padding"].tolist() == [3, 0]
    assert averaging["cosine"].iloc[0] < 1
    experiments = table(open_app("padding", tab="Experiments", **asked), "through look-up")
    assert experiments["through look-up"].iloc[0] == "0"
    assert float(experiments["through softmax"].iloc[0]) > 0


def test_gpt2_has_no_padding_and_shows_the_end_of_text_in_its_place(open_app: Open) -> None:
    app = open_app("padding", checkpoint="demo-gpt2")
    norm = float(np.linalg.norm(GPT2["transformer.wte.weight"][0]))
    assert facts(app)["Norm"].startswith(f"{norm:.4f}, ")
    text = said(app)
    assert "There is no padding vector" in text
    assert "<|endoftext|>, in place of padding" in text
    assert len(figure_titles(app)) == 1


def test_an_encoder_without_a_head_gives_averages_and_no_gradient(open_app: Open, tmp_path: Path) -> None:
    folder = save_checkpoint(random_model("BertModel"), tmp_path / "bare")
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for file in folder.iterdir():
            archive.write(file, f"bare/{file.name}")
    app = open_app("padding", text="w1\nw1 w2 w3 w4", tab="Averages")
    app.file_uploader[0].set_value(("bare.zip", buffer.getvalue(), "application/zip")).run()
    assert not app.error
    text = said(app)
    assert "bare has no language-model head" in text
    assert "its gradient cannot be measured" in text
    assert figure_titles(app) == []
    averaging = table(app, "difference")
    assert averaging["tokens"].tolist() == [3, 6]
    assert averaging["difference"].iloc[0] > 0 == averaging["difference"].iloc[1]


def test_no_sentence_is_one_sentence(open_app: Open) -> None:
    app = open_app("padding", text=" ")
    assert len(app.error) == 1
    assert "There is no sentence" in app.error[0].value


@pytest.mark.parametrize("answered", [False, True])
def test_the_row_is_there_while_the_model_runs(open_app: Open, monkeypatch: pytest.MonkeyPatch, answered: bool) -> None:
    begin = session.begin

    def begun(request: Request, **options: Any) -> Any:
        if not isinstance(request, PaddingRequest):
            return begin(request, **options)
        known = begin(PaddingRequest(), **options).result(SECONDS)
        return UnderWay([None, known], begin(request, **options) if answered else None)

    monkeypatch.setattr(session, "begin", begun)
    app = open_app("padding", checkpoint="demo-bert", text="a dog.")
    assert not app.exception
    norms = np.linalg.norm(BERT["bert.embeddings.word_embeddings.weight"], axis=1)
    assert facts(app)["Norm"].startswith(f"{norms[0]:.4f}, ")
    assert (words.SO_FAR in said(app)) is not answered
    assert bool(figure_titles(app)) is answered
    assert said(app).count("| Norm |") == 1
