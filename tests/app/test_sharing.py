"""The sharing page: the answer in a sentence, for what was saved in every way."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save
from streamlit.testing.v1 import AppTest

from inspector.analyses.sharing.words import answer_for
from inspector.demo import DEMOS
from inspector.text import bytes_text, literal
from pages._sharing.parts import truths
from tests.analyses.sharing.sharing_frames import group
from tests.app.looking import said

Open = Callable[..., AppTest]
HEAD, WTE = "lm_head.weight", "transformer.wte.weight"


@pytest.fixture
def open_changed(open_app: Open) -> Callable[..., AppTest]:
    """Upload demo-gpt2 with other tensors or another configuration, and show its sharing."""

    def opened(tensors: dict[str, np.ndarray], **config: Any) -> AppTest:
        folder = DEMOS["demo-gpt2"].folder
        weights = load_file(folder / "model.safetensors") | tensors
        settings = json.loads((folder / "config.json").read_text()) | config
        content = zipped({"config.json": json.dumps(settings), "model.safetensors": save(weights)})
        app = open_app()
        app.file_uploader[0].set_value(("changed.zip", content, "application/zip")).run()
        return app.switch_page("pages/sharing.py").run()

    return opened


def zipped(files: dict[str, str | bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def embedding(folder: Path = DEMOS["demo-gpt2"].folder) -> np.ndarray:
    return load_file(folder / "model.safetensors")[WTE]


def shape_of(matrix: np.ndarray) -> str:
    rows, columns = matrix.shape
    return f"{rows:,} × {columns:,}".replace(",", r"\,")


def graph(app: AppTest) -> dict[str, Any]:
    return json.loads(app.get("plotly_chart")[0].proto.spec)


def test_a_tie_is_the_first_thing_said(open_app: Open) -> None:
    app = open_app("sharing", checkpoint="demo-bert")
    rows = load_file(DEMOS["demo-bert"].folder / "model.safetensors")["bert.embeddings.word_embeddings.weight"]
    assert app.success[0].value == (
        rf"Input and output embeddings are tied\: one tensor of {shape_of(rows)} under 2 names\. "
        r"Also tied\: cls\.predictions\.bias and cls\.predictions\.decoder\.bias\."
    )
    table = next(each.value for each in app.markdown if "**Declared**" in each.value)
    assert literal("one copy, as bert.embeddings.word_embeddings.weight") in table
    assert "one block" in table
    assert f"{2 * rows.size:,} parameters by name, {rows.size:,} unique" in said(app)
    assert f"sharing saves {bytes_text(rows.nbytes)}, 50.0 %" in said(app)


def test_saving_is_counted_in_all(open_app: Open) -> None:
    shown = said(open_app("sharing", checkpoint="demo-gpt2"))
    stored = load_file(DEMOS["demo-gpt2"].folder / "model.safetensors")
    unique = sum(tensor.size for name, tensor in stored.items() if name != HEAD)
    again = stored[WTE].size
    assert f"{unique + again:,} parameters by name, {unique:,} unique" in shown
    assert f", {100 * again / (unique + again):.1f} %." in shown


def test_a_fine_tune_that_broke_the_tie_is_a_warning(open_changed: Callable[..., AppTest]) -> None:
    app = open_changed({HEAD: embedding() + np.float32(1.0)})
    (warning,) = (each.value for each in app.warning if "tied" in each.value)
    assert "Input and output embeddings are declared tied, but the file has 2 different" in (warning.replace("\\", ""))
    storage = next(each for each in graph(app)["data"] if each["name"] == "storage")
    assert len(storage["customdata"]) == 2
    assert "nothing is saved" in said(app)


@pytest.mark.parametrize(
    ("added", "sentence"),
    [(0.0, "are not tied, but equal so far: 2 copies"), (1.0, "are not tied: 2 different tensors")],
)
def test_untied_embeddings_are_no_fault(added: float, sentence: str, open_changed: Callable[..., AppTest]) -> None:
    app = open_changed({HEAD: embedding() + np.float32(added)}, tie_word_embeddings=False)
    assert sentence in app.info[0].value.replace("\\", "")
    assert not [each for each in app.warning if "tied" in each.value]


def test_nothing_shared_says_so_and_names_an_example(open_app: Open) -> None:
    config = {
        "model_type": "bert", "architectures": ["BertModel"], "vocab_size": 30, "hidden_size": 8,
        "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 12,
    }  # fmt: skip
    weights = {"embeddings.word_embeddings.weight": np.ones((30, 8), np.float32)}
    content = zipped({"config.json": json.dumps(config), "model.safetensors": save(weights)})
    app = open_app()
    app.file_uploader[0].set_value(("alone.zip", content, "application/zip")).run()
    app.switch_page("pages/sharing.py").run()
    assert not app.exception
    assert app.info[0].value.startswith("Nothing is shared\\: each of the 2")
    assert "demo-bert" in app.info[1].value
    assert "nothing is shared" in json.dumps(graph(app)["layout"]["annotations"])
    assert "nothing is saved" in said(app)


def test_an_alias_is_not_called_a_tie() -> None:
    alias = replace(group("a.weight", "b.weight", verdict="alias only"), aliases=("b.weight",))
    assert answer_for(alias) == (
        "The file says that a.weight and b.weight are one tensor, but the loaded model keeps them separate."
    )
    assert literal("only as an alias: b.weight") in truths(alias)


def test_the_answer_names_what_it_does_not_know_as_embeddings() -> None:
    two = group("class_embed.0.weight", "class_embed.1.weight")
    assert answer_for(two).startswith("class_embed.0.weight and class_embed.1.weight are tied: one tensor of 500 × 500")
    many = group(*(f"h.{number}.w" for number in range(9)))
    assert "h.0.w and 8 more names are tied" in answer_for(many)


def test_names_of_strangers_are_quoted() -> None:
    said_of = literal(answer_for(group("![x](http://a)", ":red[b]"))) + truths(group("[a](b)", "|c"))
    assert "![x](" not in said_of
    assert ":red[" not in said_of
    assert "[a](b)" not in said_of
