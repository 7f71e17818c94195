"""The Compare page: another checkpoint, the same one, one that is missing, with the real engine."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
import streamlit as st
from safetensors.numpy import load_file, save_file
from streamlit.testing.v1 import AppTest

from inspector.demo import DEMOS, RUNS
from inspector.serving.storing import registry
from inspector.settings import settings
from inspector.store.reference import CheckpointRef
from inspector.store.stored import list_checkpoints
from pages._ui import session
from tests.app.looking import button, said

Open = Callable[..., AppTest]
BERT = DEMOS["demo-bert"].folder
EMBEDDING = "bert.embeddings.word_embeddings.weight"
SCALED = "bert.encoder.layer.2.output.dense.weight"
MOVED = 900  # a row
NAMES = ("tokenizer.json", "tokenizer_config.json")


def uploaded(name: str, file: Path, config: bytes) -> str:
    """Upload weights with the demo's tokenizer; gives what the page calls it."""
    upload, folder = registry.new_upload(settings())
    for path in (file, *(BERT / other for other in NAMES)):
        registry.write_upload(folder, f"{name}/{path.name}", path.read_bytes())
    registry.write_upload(folder, f"{name}/config.json", config)
    opened = session.engine().open(CheckpointRef("incoming", upload)).result()
    return f"{opened.name} ({opened.fingerprint[:8]})"


@pytest.fixture(scope="module")
def tuned(tmp_path_factory: pytest.TempPathFactory) -> str:
    """An upload: the demo with one matrix a tenth longer and one token's row moved."""
    tensors = load_file(BERT / "model.safetensors")
    tensors[SCALED] = tensors[SCALED] * np.float32(1.1)
    tensors[EMBEDDING][MOVED] += 1
    file = tmp_path_factory.mktemp("tuned") / "model.safetensors"
    save_file(tensors, file, metadata={"format": "pt"})
    return uploaded("tuned", file, (BERT / "config.json").read_bytes())


@pytest.fixture(scope="module")
def narrow(tmp_path_factory: pytest.TempPathFactory) -> str:
    """An upload: the demo's layers, half as wide."""
    half = {160: 80, 640: 320}
    tensors = {
        name: np.ascontiguousarray(tensor[tuple(slice(half.get(n, n)) for n in tensor.shape)])
        for name, tensor in load_file(BERT / "model.safetensors").items()
    }
    file = tmp_path_factory.mktemp("narrow") / "model.safetensors"
    save_file(tensors, file, metadata={"format": "pt"})
    config = json.loads((BERT / "config.json").read_text("utf-8"))
    config |= {"hidden_size": 80, "intermediate_size": 320}
    return uploaded("narrow", file, json.dumps(config).encode())


def table(app: AppTest, column: str):
    """The first table that has a column."""
    return next(each.value for each in app.dataframe if column in each.value.columns)


def heat(app: AppTest) -> dict:
    spec = next(each.proto.spec for each in app.get("plotly_chart") if "heatmap" in each.proto.spec)
    return json.loads(spec)


def test_what_headers_decide_is_there_while_numbers_are_read(
    open_app: Open, narrow: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "run", lambda *_, **__: st.stop())
    app = open_app("compare", other=narrow)
    assert not app.exception
    assert "What the headers decide" in said(app)
    shown = table(app, "other_shape")
    tensors = load_file(BERT / "model.safetensors")
    reshaped = {name for name, tensor in tensors.items() if {160, 640} & set(tensor.shape)}
    assert set(shown["name"]) == reshaped
    assert set(shown["status"]) == {"reshaped"}


def test_headers_alone_are_compared_where_that_is_asked(open_app: Open, tuned: str) -> None:
    app = open_app("compare", other=tuned, values="none")
    assert not app.exception
    assert "no numbers were read" in said(app)
    assert set(table(app, "status")["status"]) == {"not compared"}


def test_a_sample_is_said_to_be_one(open_app: Open, tuned: str) -> None:
    app = open_app("compare", other=tuned, values="sample")
    assert not app.exception
    assert "Only a sample of each checkpoint was read" in said(app)
    assert "Tokens are not compared: only a sample of the numbers was read" in said(app)
    rows = table(app, "status")
    status = dict(zip(rows["name"], rows["status"], strict=True))
    assert status[SCALED] == "changed"
    assert status[EMBEDDING] == "equal in sample"  # a few rows differ, and no page of them was read


def test_without_a_second_checkpoint_the_page_teaches(open_app: Open) -> None:
    app = open_app("compare")
    assert not app.exception
    assert "Choose the checkpoint to compare with" in app.info[0].value
    assert "Before and after fine-tuning" in said(app)
    button(app, "Compare with demo-gpt2").click().run()
    assert not app.exception
    assert app.query_params["other"] == "demo-gpt2"
    assert "78 removed" in said(app)


def test_a_snapshot_is_compared_with_the_other_end_of_its_run(open_app: Open) -> None:
    first, *_, last = RUNS["demo-run"]
    app = open_app("compare", checkpoint=first)
    assert not app.exception
    assert app.query_params["other"] in (last, [last])
    assert "They differ" in said(app) or "changed" in said(app)
    assert open_app("compare", checkpoint=last).selectbox(key="other").value == first
    app.selectbox(key="other").set_value(None).run()
    assert "Choose the checkpoint to compare with" in app.info[0].value


def test_an_empty_page_offers_two_snapshots_of_a_run(open_app: Open) -> None:
    app = open_app("compare")
    button(app, "Compare the first and last snapshot of demo-run").click().run()
    assert not app.exception
    first, *_, last = RUNS["demo-run"]
    assert session_reference(app) == first
    assert app.selectbox(key="other").value == last


def session_reference(app: AppTest) -> str:
    return app.session_state["opened"].reference


def test_a_checkpoint_with_itself_is_said_to_be_that(open_app: Open) -> None:
    app = open_app("compare", other="demo-bert")
    assert not app.exception
    assert "is compared with itself" in said(app)
    assert set(table(app, "status")["status"]) == {"equal"}
    assert {text for row in heat(app)["data"][0]["text"] for text in row} == {"="}
    assert "No matched row differs." in said(open_app("compare", other="demo-bert", tab="Tokens"))


def test_what_changed_is_measured_and_linked_on(open_app: Open, tuned: str) -> None:
    app = open_app("compare", other=tuned)
    assert not app.exception
    assert "Of 78 tensors: 2 changed and 76 equal" in said(app)
    rows = table(app, "status")
    assert rows["name"].tolist()[:2] == [EMBEDDING, SCALED]
    assert rows["relative_change"].tolist()[1] == pytest.approx(0.1, rel=1e-5)
    drawn = heat(app)
    layer, kind = drawn["layout"]["xaxis"]["ticktext"], drawn["layout"]["yaxis"]["ticktext"]
    text = drawn["data"][0]["text"]
    assert text[kind.index("output.dense.weight")][layer.index("layer 2")] == "10%"
    assert sum(cell != "=" for row in text for cell in row) == 1
    moved = table(open_app("compare", other=tuned, tab="Tokens"), "token")
    assert moved["token_id"].tolist() == [MOVED]
    assert moved["distance"].tolist() == [pytest.approx(160**0.5, rel=1e-5)]
    assert app.code[-1].value.startswith("python -m inspector compare demo-bert upload:")
    app = open_app("compare", other=tuned, tab="Same sentence")
    button(app, "Masked LM: predictions of both for a mask").click().run()
    assert not app.exception
    assert app.title[0].value == "Masked LM"
    assert app.selectbox(key="other").value == tuned
    assert len(app.get("plotly_chart")) == 2


def test_layers_of_another_width_are_no_empty_picture(open_app: Open, narrow: str) -> None:
    app = open_app("compare", other=narrow)
    assert not app.exception
    assert "No layer tensor could be measured" in said(app)
    assert [cast("Any", chart).key for chart in app.get("plotly_chart")] == ["common"]
    assert set(table(app, "status")["status"]) == {"reshaped", "equal"}


def test_two_families_meet_in_their_tokens_alone(open_app: Open) -> None:
    app = open_app("compare", other="demo-gpt2")
    assert "no layer names in common" in said(app)
    assert "160 and 128 numbers cannot be compared" in said(app)
    shown = open_app("compare", other="demo-gpt2", tab="Ties")
    _, _, *rows = next(each.value for each in shown.markdown if "**tied in**" in each.value).splitlines()
    assert [row.split(" | ")[1] for row in rows] == [r"demo\-bert", r"demo\-bert", r"demo\-gpt2"]
    assert app.code[-1].value == "python -m inspector compare demo-bert demo-gpt2"


def test_a_second_checkpoint_that_is_not_there_is_one_sentence(open_app: Open) -> None:
    app = open_app("compare", other="no-such-thing")
    assert not app.exception
    assert len(app.error) == 1


def test_the_filter_finds_by_name_and_by_status(open_app: Open) -> None:
    app = open_app("compare", other="demo-gpt2", find="LAYER.3.output")
    names = table(app, "status")["name"]
    assert len(names) == 4
    assert all("layer.3.output" in name for name in names)
    app.text_input(key="find").set_value("").run()
    app.multiselect(key="status").set_value(["added"]).run()
    assert len(table(app, "status")) == 52
    app.text_input(key="find").set_value("no such tensor").run()
    assert any("No tensor matches" in each.value for each in app.info)


def test_the_base_is_told_from_sampled_matrices(open_app: Open, tuned: str) -> None:
    app = open_app("compare", other=tuned, tab="Base")
    assert not app.exception
    assert "demo-bert was fine-tuned from tuned, or tuned from demo-bert" in said(app)
    sampled = table(app, "coefficient").set_index("name")
    assert sampled[~sampled["equal"]].index.tolist() == [SCALED]
    assert sampled["coefficient"].to_dict()[SCALED] == pytest.approx(1 / 1.1, abs=1e-4)


def test_the_likeliest_base_is_found_among_demos_and_uploads_when_asked(open_app: Open, tuned: str) -> None:
    (fingerprint,) = (each.fingerprint for each in list_checkpoints(settings()) if each.fingerprint[:8] in tuned)
    app = open_app("compare", checkpoint=f"upload:{fingerprint}")
    assert "was fine-tuned from" not in said(app)
    button(app, "Find its base").click().run()
    assert not app.exception
    assert "tuned was fine-tuned from demo-bert, or demo-bert from tuned." in said(app)
    app.button(key="compare with base").click().run()
    assert app.selectbox(key="other").value == "demo-bert"
    assert "Find its base" not in [each.label for each in app.button]


def test_where_nothing_is_related_that_is_said(open_app: Open) -> None:
    app = open_app("compare", checkpoint="demo-gpt2")
    button(app, "Find its base").click().run()
    assert not app.exception
    assert "none is related to demo-gpt2." in said(app)
