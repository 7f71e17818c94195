"""Every page with the real engine: what it says of the demo, and what when something is missing."""

from __future__ import annotations

import base64
import io
import json
import math
import re
from array import array
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pandas as pd
import pytest
import streamlit as st
import torch
from safetensors.numpy import load_file
from streamlit.testing.v1 import AppTest

from inspector.catalog import CATALOG, PAGES
from inspector.demo import DEMOS
from inspector.results.checkpoint import Opened
from inspector.serving.storing import registry
from inspector.settings import settings
from inspector.store.reference import CheckpointRef
from pages._ui import parts, session, table_files
from pages._ui.client import figure_files
from tests.app.looking import button, facts, metrics, said, titles
from tests.families import random_model, save_checkpoint

Open = Callable[..., AppTest]
SHOWS = {"snapshots": "demo-run"}  # pages whose pictures are not of the open checkpoint
SLUGS = tuple(dict.fromkeys(analysis.slug for analysis in CATALOG.values()))
LEAST_POINTS = 7  # that letters of a saved figure have on paper to be read
PAPER_POINTS = 17 / 2.54 * 72  # width of a page's text, of which a figure takes all
FIGURES = {
    ("classes", "demo-bert"), ("heads", "demo-gpt2"),
    ("lens", "demo-bert"), ("masked_lm", "demo-bert"), ("padding", "demo-bert"),
    ("sharing", "demo-bert"), ("training", "demo-gpt2"),
}  # fmt: skip
PHONE = "Mozilla/5.0 (iPhone; CPU iPhone OS 26_0 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Mobile/15E148"
DOWNLOAD = "a__b"  # a checkpoint's name, as downloads are often called
BESIDE = [(slug, {"view": "Two checkpoints"}) for slug in ("compare", "lens", "masked_lm")]
BERT = DEMOS["demo-bert"].folder
TENSORS = load_file(BERT / "model.safetensors")


@pytest.fixture
def offered(monkeypatch: pytest.MonkeyPatch) -> list[pd.DataFrame]:
    """The tables that a page offers as files."""
    found: list[pd.DataFrame] = []
    offer = table_files.offer

    def noted(frame: pd.DataFrame, **options: str) -> None:
        found.append(frame)
        offer(frame, **options)

    monkeypatch.setattr(table_files, "offer", noted)
    _begin_anew(found, monkeypatch)
    return found


@pytest.fixture
def pictures(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the picture files of a page are called."""
    found: list[str] = []
    name = figure_files.file_name

    def noted(title: str) -> str:
        found.append(name(title))
        return found[-1]

    monkeypatch.setattr(figure_files, "file_name", noted)
    _begin_anew(found, monkeypatch)
    return found


def _begin_anew(found: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget what was found when a page is drawn once more, as one is that waited for an answer."""
    heading = parts.heading

    def begun(slug: str, checkpoint: Opened) -> None:
        found.clear()
        heading(slug, checkpoint)

    monkeypatch.setattr(parts, "heading", begun)


@pytest.mark.parametrize("slug", SLUGS)
@pytest.mark.parametrize("checkpoint", sorted(DEMOS))
def test_a_page_names_its_question_and_the_open_checkpoint(
    slug: str, checkpoint: str, open_app: Open, offered: list[pd.DataFrame], pictures: list[str]
) -> None:
    app = open_app(slug, checkpoint=checkpoint)
    assert not app.exception
    assert not app.error
    assert app.title[0].value == PAGES[slug].title
    assert PAGES[slug].question in said(app)
    assert checkpoint.replace("-", r"\-") in app.caption[0].value
    shown = SHOWS.get(slug, checkpoint)
    charts = [json.loads(chart.proto.spec) for chart in app.get("plotly_chart")]
    assert charts or (slug, checkpoint) not in FIGURES
    for chart in charts:  # a saved picture says in itself what it is of
        title = chart["layout"]["title"]
        assert shown in title["text"] + title.get("subtitle", {}).get("text", "")
        assert title["font"]["size"] * PAPER_POINTS / figure_files.WIDTH >= LEAST_POINTS
    assert [name for name in pictures if shown not in name] == []
    assert len(pictures) == len(charts)
    files = [str(each.proto.label) for each in app.get("download_button")]
    for ending in ("CSV", "Parquet"):
        assert sum(label.endswith(ending) for label in files) == len(offered)
    for table in offered:
        read = pd.read_parquet(io.BytesIO(table_files.as_parquet(table, {})))
        assert list(read) == list(table)
        assert len(read) == len(table)


@pytest.fixture(scope="module")
def downloads() -> dict[str, str]:
    """Demo -> reference of an upload of its files, under a name as people give downloads."""
    found = {}
    for demo in DEMOS:
        upload, folder = registry.new_upload(settings())
        for path in DEMOS[demo].folder.iterdir():
            registry.write_upload(folder, f"{DOWNLOAD}/{path.name}", path.read_bytes())
        opened = session.engine().open(CheckpointRef("incoming", upload)).result(120)
        found[demo] = f"upload:{opened.fingerprint}"
    return found


@pytest.mark.parametrize("demo", sorted(DEMOS))
@pytest.mark.parametrize(("slug", "query"), [*((slug, {}) for slug in (*SLUGS, "report", "server", "tour")), *BESIDE])
def test_a_page_takes_every_name_of_a_checkpoint(
    slug: str, query: dict[str, str], demo: str, open_app: Open, downloads: dict[str, str]
) -> None:
    reference = downloads[demo]
    other = {"other": f"{DOWNLOAD} ({reference.partition(':')[2][:8]})"} if query else {}
    app = open_app(slug, checkpoint=demo if other else reference, **(query | other))
    assert not app.exception
    assert not app.error
    assert DOWNLOAD in titles(app) or (slug, demo) not in FIGURES


@pytest.mark.parametrize("slug", ["overview", "sharing", "classes"])
def test_a_phone_shows_the_drawing_for_phones_and_saves_the_wide_one(
    slug: str, open_app: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    def first() -> dict[str, Any]:
        return json.loads(open_app(slug).get("plotly_chart")[0].proto.spec)

    wide = first()
    monkeypatch.setattr(type(st.context), "headers", {"User-Agent": PHONE})
    narrow = first()
    assert narrow["layout"]["meta"]["least"] < 360 < wide["layout"]["meta"]["least"]
    paper = narrow["layout"]["meta"].pop("paper")
    for path, value in paper:
        holder = narrow
        for step in path[:-1]:
            holder = holder[step]
        holder[path[-1]] = value
    assert narrow == wide


def test_a_png_is_sharp_on_paper() -> None:
    dots = figure_files.WIDTH * figure_files.SCALE / (PAPER_POINTS / 72)
    assert dots >= 300


def test_overview_counts_what_the_file_holds(open_app: Open) -> None:
    app = open_app()
    shown = metrics(app)
    config = json.loads((BERT / "config.json").read_text())
    parameters = sum(tensor.size for tensor in TENSORS.values())
    assert shown["Layers"] == str(config["num_hidden_layers"])
    assert shown["Vocabulary rows"] == f"{config['vocab_size']:,}"
    assert shown["Parameters"] == f"{parameters / 1e6:.1f}M"
    table = app.dataframe[0].value
    assert sorted(table["name"]) == sorted(TENSORS)
    assert "absent" in said(app)


def test_overview_finds_tensors_as_they_are_typed(open_app: Open) -> None:
    app = open_app(find="LayerNorm.bias")
    wanted = sorted(name for name in TENSORS if "LayerNorm.bias" in name)
    assert sorted(app.dataframe[0].value["name"]) == wanted
    app.text_input(key="find").set_value("no such tensor").run()
    assert "No tensor matches" in app.info[0].value


def choices(app: AppTest) -> list[Any]:
    """The input that says what colors tell."""
    return [group for group in cast("list[Any]", app.get("button_group")) if group.key == "colored"]


def test_the_portrait_is_colored_by_what_there_is_more_than_one_of(open_app: Open, roots: Path) -> None:
    (choice,) = choices(open_app())
    assert choice.options == ["By kind", "By RMS"]  # one file, one dtype
    folder = save_checkpoint(random_model("BertModel"), roots / "sharded", max_shard_size="20KB")
    shards = {path.name for path in folder.glob("*.safetensors")}
    app = open_app(agreed=f"path:{folder}", checkpoint=f"path:{folder}", colored="By file")
    assert choices(app)
    chart = json.loads(app.get("plotly_chart")[0].proto.spec)
    named = {trace["name"] for trace in chart["data"]}
    assert len(shards) > 1
    assert named & shards
    assert named <= shards | {"several files"}


def test_the_portrait_is_colored_by_numbers_that_were_read(open_app: Open, roots: Path) -> None:
    model = random_model("BertModel")
    tensor = "encoder.layer.1.intermediate.dense.weight"
    with torch.no_grad():
        model.get_parameter(tensor)[0, 0] = math.nan
        rms = float(model.embeddings.word_embeddings.weight.pow(2).mean().sqrt())
    folder = save_checkpoint(model, roots / "broken")
    inputs = {"agreed": f"path:{folder}", "checkpoint": f"path:{folder}"}

    def drawn(app: AppTest) -> dict[str, Any]:
        return {trace["name"]: trace for trace in json.loads(app.get("plotly_chart")[0].proto.spec)["data"]}

    app = open_app(**inputs)
    assert "NaN or infinity" not in drawn(app)  # nobody has looked
    app = open_app(**inputs, colored="By RMS")
    traces = drawn(app)
    assert any(f"RMS {rms:.3g}" in text for text in traces["measured"]["hovertext"])
    assert all(tensor in text for text in traces["NaN or infinity"]["hovertext"])
    (choice,) = choices(app)
    choice.set_value("kind").run()
    assert "NaN or infinity" in drawn(app)


def test_sharing_explains_the_tie_with_its_own_numbers(open_app: Open) -> None:
    app = open_app("sharing", checkpoint="demo-gpt2", tab="Why")
    assert "lm_head.weight not among" in said(app)
    rows, columns = load_file(DEMOS["demo-gpt2"].folder / "model.safetensors")["transformer.wte.weight"].shape
    assert f"{rows:,} × {columns:,}" in said(app)
    assert f"{rows * columns:,} are second names" in said(app)


def test_the_norms_are_drawn_in_their_tab(open_app: Open) -> None:
    assert "demo-bert" in titles(open_app("embeddings", tab="Norms"))
    assert not titles(open_app("embeddings"))


def test_embeddings_explain_the_padding_row_by_its_norm(open_app: Open) -> None:
    app = open_app("embeddings", tab="Why")
    matrix = TENSORS["bert.embeddings.word_embeddings.weight"]
    norm = float((matrix[0] ** 2).sum() ** 0.5)
    assert "Why is [PAD] not zero?" in said(app)
    assert f"Row 0 has norm {norm:.3f}, " in said(app)


@pytest.mark.parametrize(("checkpoint", "drawn"), [("demo-bert", True), ("demo-gpt2", False)])
def test_padding_grew_from_zero_where_a_log_tells(open_app: Open, checkpoint: str, drawn: bool) -> None:
    charts = open_app("padding", checkpoint=checkpoint, tab="Growth").get("plotly_chart")
    curves = [chart for chart in charts if "Growth of the padding row" in chart.proto.spec]
    assert len(curves) == drawn
    if drawn:
        lines = {line["name"]: line for line in json.loads(curves[0].proto.spec)["data"]}
        norms = array("d", base64.b64decode(lines["padding"]["y"]["bdata"]))
        row = TENSORS["bert.embeddings.word_embeddings.weight"][0]
        assert norms[0] == 0
        assert norms[-1] == pytest.approx(float((row**2).sum() ** 0.5), rel=1e-4)


def test_embeddings_list_the_exact_neighbors(open_app: Open) -> None:
    app = open_app("embeddings", token="id 700", metric="dot")
    matrix = TENSORS["bert.embeddings.word_embeddings.weight"]
    scores = matrix @ matrix[700]
    scores[700] = float("-inf")
    neighbors = app.dataframe[0].value
    assert neighbors["token_id"].tolist() == scores.argsort()[::-1][:10].tolist()


def test_an_unknown_token_is_one_sentence_and_the_page_stays(open_app: Open) -> None:
    app = open_app("embeddings", token="nosuchtoken")
    assert not app.error
    (warning,) = (each.value for each in app.warning if "No single token" in each.value)
    assert "nosuchtoken" in warning
    assert facts(app)["Median norm"]


def test_several_words_are_found_and_the_first_has_its_neighbors(open_app: Open) -> None:
    app = open_app("embeddings", token="city, king nosuchtoken")
    vocabulary = json.loads((BERT / "tokenizer.json").read_text())["model"]["vocab"]
    city, king = vocabulary["city"], vocabulary["king"]
    assert "2 tokens found" in said(app)
    assert f"Nearest to city (id {city})" in said(app)
    assert "nosuchtoken" in said(app)
    app.pills(key="found token").set_value(king).run()
    assert f"Nearest to king (id {king})" in said(app)
    assert app.query_params["row"] == str(king)


def test_a_link_names_the_row_that_was_clicked(open_app: Open) -> None:
    matrix = TENSORS["bert.embeddings.word_embeddings.weight"]
    app = open_app("embeddings", token="city", row="700", metric="euclidean")
    distances = ((matrix - matrix[700]) ** 2).sum(axis=1)
    distances[700] = float("inf")
    assert app.dataframe[0].value["token_id"].tolist() == distances.argsort()[:10].tolist()
    # What a link names and the vocabulary lacks falls back to the search.
    far = open_app("embeddings", token="city", row="99999999")
    assert "Nearest to city (id " in said(far)


def test_a_method_that_is_not_there_is_one_sentence(open_app: Open) -> None:
    app = open_app("embeddings", method="tsne")
    (error,) = app.error
    assert error.value.replace("\\", "") == "Map must be pca or umap, not 'tsne'."


@pytest.mark.parametrize("dimensions", ["2", "3"])
def test_the_map_says_how_much_it_keeps(open_app: Open, dimensions: str) -> None:
    app = open_app("embeddings", dimensions=dimensions)
    assert "15 true neighbors are still neighbors" in said(app)
    shown = [json.loads(each.proto.json) for each in app.get("bidi_component") if each.proto.json]
    (state,) = (each for each in shown if "digest" in each)
    assert state["title"] == f"PCA of demo-bert, {dimensions}-D"


def test_the_link_holds_color_and_hidden_layers(open_app: Open) -> None:
    app = open_app("embeddings", color="script", hide="unused|subword")
    shown = [json.loads(each.proto.json) for each in app.get("bidi_component") if each.proto.json]
    (state,) = (each for each in shown if "digest" in each)
    assert state["color"]["name"] == "script"
    assert state["hidden"] == ["subword", "unused"]


def test_the_lens_shows_every_rung_of_the_chosen_cell(open_app: Open) -> None:
    text = "the city of london."
    app = open_app("lens", text=text, layer="1", position="2", k="3")
    assert app.header[0].value == "Layer 1, position 2"
    steps = facts(app)
    assert list(steps) == [
        "dot", "cosine", "dot + bias", "dense", "activation", "LayerNorm", "logits",
    ]  # fmt: skip
    assert all(re.fullmatch(r"\S+ [\d.]+( %)?, \S+, \S+", told) for told in steps.values())
    assert "Head steps at city:" in said(app)


def test_a_cell_beyond_a_shorter_text_moves_inside(open_app: Open) -> None:
    app = open_app("lens", text="one two three four five six seven.", position="8")
    assert app.number_input(key="position").value == 8
    app.text_area(key="text").set_value("one.").run()
    assert not app.exception
    assert app.number_input(key="position").value == 3


def test_masked_lm_shows_device_dtype_and_each_mask(open_app: Open) -> None:
    app = open_app("masked_lm", text="the [MASK] of the [MASK].", device="cpu")
    assert re.search(r"Forward pass: [\d.]+ ms on cpu; float32 .*; [\d.]+ MB of memory", said(app))
    assert len(app.get("plotly_chart")) == 2
    assert "All masks together" in said(app)


def test_masked_lm_ranks_only_the_targets_that_were_asked_for(open_app: Open) -> None:
    app = open_app("masked_lm", text="the city of [MASK].", targets="france, england")
    assert sorted(app.dataframe[0].value["token"]) == ["england", "france"]


def test_masked_lm_explains_that_a_head_is_missing(open_app: Open, roots: Path) -> None:
    folder = save_checkpoint(random_model("BertModel"), roots / "encoder")
    app = open_app("masked_lm", agreed=f"path:{folder}", checkpoint=f"path:{folder}")
    assert "encoder has no MLM head" in app.info[0].value
    assert not app.get("plotly_chart")
    button(app, "Open demo-bert, which has this head").click().run()
    assert re.search(r"The mask is most likely “.+”, [\d.]+ %\.", said(app))


def test_an_empty_text_names_the_next_step(open_app: Open) -> None:
    app = open_app("lens", text=" ")
    assert "Type a text" in app.info[0].value


def test_a_device_that_is_not_there_is_one_sentence(open_app: Open) -> None:
    app = open_app("masked_lm", device="mps")
    assert len(app.error) == 1
    assert "no mps device" in app.error[0].value


def test_each_view_gives_its_command_line(open_app: Open) -> None:
    text = 'the "city" of [MASK].'
    app = open_app("masked_lm", text=text, k="3")
    assert f"python -m inspector predict demo-bert '--text={text}' -k 3" in [code.value for code in app.code]


def test_every_page_has_its_file_and_no_other(open_app: Open) -> None:
    pages = Path(__file__).parents[2] / "pages"
    files = {path.stem for path in pages.glob("*.py") if not path.name.startswith("_")}
    assert files == {*SLUGS, "report", "server", "tour"}
    assert {slug for slug, _ in FIGURES} <= {*SLUGS}
