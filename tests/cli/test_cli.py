"""The command line: exactly the JSON that others rely on, for both demos and a real encoder."""

from __future__ import annotations

import json
import math
from typing import Any
from urllib.parse import unquote

import pandas as pd
import pytest
from markdown_it import MarkdownIt
from PIL import Image

from inspector.results.plain import to_json
from tests.cli.conftest import MINILM, NO_HEAD, NO_SUCH

CHECKPOINTS = {"demo-bert": "demo-bert", "demo-gpt2": "demo-gpt2", "MiniLM": str(MINILM)}
EVERY = pytest.mark.parametrize("name", sorted(CHECKPOINTS))

GROUP = {"names", "verdict", "shape", "nbytes", "declared", "in_file", "in_memory", "reason"}
HEADS = {
    "masked_lm", "causal_lm", "next_sentence", "sequence_classification", "token_classification",
    "question_answering", "multiple_choice",
}  # fmt: skip


@pytest.fixture
def answer(call):
    """Run a verb with --json and read what it printed."""

    def answered(verb: str, checkpoint: str, *options: str) -> dict[str, Any]:
        status, stdout, stderr = call(verb, CHECKPOINTS[checkpoint], *options, "--json")
        assert status == 0, stderr
        assert stdout.count("\n") == 1
        return json.loads(stdout, parse_constant=pytest.fail)

    return answered


@EVERY
def test_overview(answer, name):
    found = answer("overview", name)
    assert set(found) >= {
        "name", "fingerprint", "model_type", "architecture", "files", "dtypes",
        "listed_parameters", "unique_parameters", "nbytes_on_disk", "nbytes_in_memory",
        "vocab_rows", "d_model", "layers", "heads", "tokenizer", "warnings",
    }  # fmt: skip
    assert set(found["heads"]) == HEADS
    assert set(found["heads"].values()) <= {"present", "absent"}
    assert all(set(file) >= {"name", "format", "nbytes"} for file in found["files"])
    assert set(found["tokenizer"]) >= {
        "kind", "size", "pad_token", "pad_id", "mask_token", "mask_id"
    }  # fmt: skip
    present = {head for head, state in found["heads"].items() if state == "present"}
    assert present == {"demo-bert": {"masked_lm", "next_sentence"}, "demo-gpt2": {"causal_lm"}, "MiniLM": set()}[name]
    if name == "MiniLM":
        assert (found["vocab_rows"], found["d_model"], found["layers"]) == (30522, 384, 6)
        assert found["architecture"] == "BertModel"


@EVERY
def test_sharing(answer, name):
    found = answer("sharing", name)
    assert set(found) >= {
        "listed_parameters", "unique_parameters", "listed_nbytes", "unique_nbytes", "groups",
        "reused_modules",
    }  # fmt: skip
    assert all(set(group) >= GROUP for group in found["groups"])
    names = [group["names"] for group in found["groups"] if group["verdict"] == "tied"]
    assert (
        names
        == {
            "demo-bert": [
                ["bert.embeddings.word_embeddings.weight", "cls.predictions.decoder.weight"],
                ["cls.predictions.bias", "cls.predictions.decoder.bias"],
            ],
            "demo-gpt2": [["lm_head.weight", "transformer.wte.weight"]],
            "MiniLM": [],
        }[name]
    )
    saved = sum(group["nbytes"] for group in found["groups"])
    assert found["listed_nbytes"] - found["unique_nbytes"] == saved


@EVERY
def test_classes(answer, name):
    found = answer("classes", name, "--text", "the dog")
    assert set(found) >= {
        "model_class", "config_class", "parameters", "hierarchy", "siblings", "used_classes",
        "modules", "output", "warnings",
    }  # fmt: skip
    assert all(set(each) >= {"name", "module", "kind", "via", "summary", "adds"} for each in found["hierarchy"])
    assert all(set(each) >= {"name", "head", "present", "note"} for each in found["siblings"])
    assert all(
        set(each) >= {"name", "class_name", "parameters", "own_parameters", "shapes", "uses"}
        for each in found["modules"]
    )
    assert all(
        set(each) >= {"field", "returned", "count", "shape", "dtype", "axes", "note"}
        for each in found["output"]["fields"]
    )
    assert found["modules"][0]["parameters"] == found["parameters"]
    output = {
        "demo-bert": ("BertForPreTraining", "BertForPreTrainingOutput"),
        "demo-gpt2": ("GPT2LMHeadModel", "CausalLMOutputWithCrossAttentions"),
        "MiniLM": ("BertModel", "BaseModelOutputWithPoolingAndCrossAttentions"),
    }[name]
    assert (found["model_class"], found["output"]["class_name"]) == output


@EVERY
def test_embeddings(answer, name):
    found = answer("embeddings", name, "--token", "dog", "-k", "4", "--metric", "euclidean")
    assert set(found) >= {
        "rows", "columns", "norms", "special", "undertrained", "neighbours"
    }  # fmt: skip
    assert set(found["norms"]) == {"min", "median", "max"}
    assert all(set(row) == {"token", "token_id", "norm"} for row in found["special"])
    assert all(set(row) >= {"token", "token_id", "score"} for row in found["undertrained"])
    assert len(found["neighbours"]) == 4
    distances = [row["similarity"] for row in found["neighbours"]]
    assert distances == sorted(distances)
    if name == "MiniLM":
        special = {row["token"]: row["norm"] for row in found["special"]}
        assert special["[PAD]"] == pytest.approx(0.767, abs=5e-4)
        assert special["[MASK]"] == pytest.approx(found["norms"]["min"])
        assert found["norms"]["min"] == pytest.approx(0.245, abs=5e-4)


@EVERY
@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_project(answer, name, suffix, tmp_path):
    path = tmp_path / f"points{suffix}"
    found = answer("project", name, "--method", "pca", "--dimensions", "3", "-o", str(path))
    assert set(found) >= {"method", "dimensions", "rows", "seconds", "kept_neighbours", "file"}
    assert (found["method"], found["dimensions"], found["file"]) == ("pca", 3, str(path))
    points = pd.read_csv(path, keep_default_na=False) if suffix == ".csv" else pd.read_parquet(path)
    assert list(points.columns) == ["token_id", "token", "x", "y", "z", "norm", "kind", "trust"]
    if suffix == ".parquet":
        assert points.attrs["Command"].endswith(" --dimensions=3")
    judged = [float(share) for share in points["trust"] if share != "" and float(share) >= 0]
    assert len(judged) == found["judged_rows"]  # an empty field, or NaN: not judged
    assert sum(judged) / len(judged) == pytest.approx(found["kept_neighbours"], rel=1e-4)
    assert len(points) == found["rows"]
    assert 0 < found["kept_neighbours"] < 1


@EVERY
def test_padding(answer, name):
    found = answer("padding", name, "--text", "the dog is an animal.\nthe dog.")
    assert set(found) >= {
        "pad_token", "pad_id", "padding_idx", "norm", "median_norm", "percentile", "is_zero",
        "nearest", "gradient", "verdict",
    }  # fmt: skip
    assert all(set(row) >= {"token", "token_id", "cosine"} for row in found["nearest"])
    assert found["verdict"].endswith(".")
    assert [row["padding"] > 0 for row in found["averaging"]] == [False, True]
    if name == "demo-bert":
        assert found["gradient"]["input_path"] == 0
        assert found["gradient"]["output_path"] > 0
    else:
        assert found["gradient"] is None
    if name == "MiniLM":
        assert (found["pad_token"], found["pad_id"], found["padding_idx"]) == ("[PAD]", 0, 0)
        assert found["norm"] == pytest.approx(0.767, abs=5e-4)
        assert found["median_norm"] == pytest.approx(1.110, abs=1e-3)
    if name == "demo-gpt2":
        assert (found["pad_token"], found["norm"]) == (None, None)
        assert found["stand_in"]["gradient"]["output_path"] > 0


@EVERY
def test_lens(answer, name):
    found = answer("lens", name, "--text", "the dog is an animal.", "-k", "2", "--layers", "0,1")
    assert set(found) >= {"tokens", "rungs", "cells", "max_abs_error"}
    assert all(
        set(cell) >= {
            "layer", "position", "rung", "rank", "token", "token_id", "score", "probability"
        }
        for cell in found["cells"]
    )  # fmt: skip
    assert len(found["cells"]) == 2 * len(found["tokens"]) * len(found["rungs"]) * 2
    assert found["rungs"][:2] == ["dot", "cosine"]
    assert (found["rungs"][-1] == "logits") == (name != "MiniLM")
    chances = {cell["probability"] for cell in found["cells"] if cell["rung"] == "cosine"}
    assert chances == {None}


def test_lens_error_is_measured_at_the_last_layer(answer):
    for name in ("demo-bert", "demo-gpt2"):
        found = answer("lens", name, "--text", "the dog is an animal.", "-k", "1")
        assert 0 <= found["max_abs_error"] < 1e-3
    assert answer("lens", "MiniLM", "--text", "dog", "-k", "1")["max_abs_error"] is None


def test_whatif(answer):
    found = answer("whatif", "demo-gpt2", "--change", "clone", "--optimizer", "sgd")
    assert set(found) >= {"change", "model_class", "answer", "tied", "original", "ways", "steps"}
    assert (found["change"], found["steps"], found["tied"]) == ("clone", 1, True)
    (way,) = found["ways"]
    (edge,) = way["edges"]
    assert (edge["name"], edge["source"]) == ("lm_head.weight", "transformer.wte.weight")
    assert (edge["before"], edge["after"], edge["reloaded"]) == (
        "one tensor", "equal copies", "one tensor",
    )  # fmt: skip
    assert way["unique_parameters"] == found["listed_parameters"]
    assert edge["trained_drift"]["max_abs"] > 0
    assert {held["name"] for held in way["file"]["held"]} == {edge["name"], edge["source"]}


def test_predict(answer):
    found = answer("predict", "demo-bert", "--text", "a [MASK] is an [MASK].", "-k", "3")
    assert set(found) >= {"device", "dtype", "milliseconds", "tokens", "masks", "joint"}
    assert [mask["position"] for mask in found["masks"]] == [2, 5]
    for mask in found["masks"]:
        assert all(set(row) == {"token", "token_id", "probability", "logit"} for row in mask["predictions"])
        assert len(mask["predictions"]) == 3
    assert all(len(answered["tokens"]) == 2 for answered in found["joint"])
    chosen = answer("predict", "demo-bert", "--text", "a [MASK].", "--targets", "dog,cat")
    assert {row["token"] for row in chosen["masks"][0]["predictions"]} == {"dog", "cat"}
    assert chosen["masks"][0]["words"][0].keys() == {
        "word", "tokens", "pieces", "log_probability", "probability",
    }  # fmt: skip
    commas = answer("predict", "demo-bert", "--text", "a [MASK].", "--targets", '","',
                    "--targets", "dog")  # fmt: skip
    assert {row["token"] for row in commas["masks"][0]["predictions"]} == {",", "dog"}
    clicked = answer("predict", "demo-bert", "--text", "a dog is an animal.", "--mask", "2",
                     "--mask", "5", "--order", "sure")  # fmt: skip
    assert clicked["text"] == "a [MASK] is an [MASK]."
    assert [mask["position"] for mask in clicked["masks"]] == [2, 5]
    assert clicked["joint"][0].keys() == {
        "tokens", "log_probability", "independent", "pseudo_log_likelihood",
    }  # fmt: skip


def test_embeddings_name_their_tensor(answer, call):
    assert answer("embeddings", "demo-gpt2")["tensor"] == "transformer.wte.weight"
    shown = call("embeddings", "demo-bert")[1]
    assert "Matrix bert.embeddings.word_embeddings.weight, 5,120 × 160" in " ".join(shown.split())


def test_sharing_is_readable_in_80_columns(call):
    _, shown, _ = call("sharing", "demo-bert")
    lines = shown.splitlines()
    assert len(lines) < 40
    assert all(len(line) <= 80 for line in lines)
    assert lines[0] == "✓ Input and output embeddings are tied: one tensor of 5,120 × 160 under 2 names."
    assert "cls.predictions.decoder.weight ─────────┴─ A: 5,120 × 160, 3.3 MB, tied" in lines
    assert any("cls.predictions.decoder.weight" in line for line in lines)
    text = " ".join(shown.split())
    assert "One block of memory under 2 names: config.json and the class declare it, and the file stores" in text


def test_plausibility(answer):
    found = answer("plausibility", "demo-bert", "--text", "a dog is an [MASK].", "--by", "word")
    assert set(found) >= {
        "device", "dtype", "milliseconds", "by", "tokens", "judged", "pseudo_log_likelihood",
        "pseudo_perplexity", "warnings",
    }  # fmt: skip
    assert set(found["tokens"][0]) >= {
        "position", "token", "token_id", "special", "word", "probability", "log_probability",
        "rank", "best_token", "best_probability", "bits",
    }  # fmt: skip
    judged = [row for row in found["tokens"] if not row["special"]]
    assert [row["token"] for row in judged] == ["a", "dog", "is", "an", "."]
    assert all(isinstance(row["rank"], int) for row in judged)
    assert found["tokens"][0]["rank"] is None
    assert found["pseudo_log_likelihood"] == pytest.approx(sum(math.log(row["probability"]) for row in judged))
    assert found["warnings"] == []


def test_plausibility_of_a_causal_model(answer, call):
    text = "the river flows to the sea."
    found = answer("plausibility", "demo-gpt2", "--text", text, "-k", "2")
    judged = [row for row in found["tokens"] if row["judged"]]
    assert [row["judged"] for row in found["tokens"]] == [False] + [True] * len(judged)
    assert found["log_likelihood"] == pytest.approx(sum(math.log(row["probability"]) for row in judged))
    assert found["perplexity"] == pytest.approx(math.exp(-found["log_likelihood"] / found["judged"]))
    assert (found["method"], found["pseudo_log_likelihood"]) == ("causal", None)
    assert [row["rank"] for row in found["alternatives"]] == [1, 2] * len(judged)
    assert found["warnings"] == []
    _, shown, _ = call("plausibility", "demo-gpt2", "--text", text)
    assert "has no context and is not judged" in " ".join(shown.split())
    assert all(len(line) <= 80 for line in shown.splitlines())
    assert all(f"\n{row['token']} " in shown for row in judged)


def test_contrast(answer, tmp_path):
    path = tmp_path / "contrast.parquet"
    texts = ("--first", "a dog is an [MASK].", "--second", "a car is an [MASK].")
    found = answer("contrast", "demo-bert", *texts, "-k", "3", "-o", str(path))
    assert set(found) >= {
        "first_text", "second_text", "rows", "jensen_shannon", "floor", "favours_first",
        "favours_second", "file", "device", "dtype", "milliseconds", "warnings",
    }  # fmt: skip
    assert [len(found[name]) for name in ("favours_first", "favours_second")] == [3, 3]
    assert 0 < found["jensen_shannon"] < 1
    frame = pd.read_parquet(path)
    assert len(frame) == found["rows"] == 5120
    for side in ("first", "second"):  # probabilities of the whole vocabulary
        assert sum(map(math.exp, frame[side].tolist())) == pytest.approx(1, abs=1e-5)


def test_heads(answer):
    texts = ("--text", "a large plant with a thick trunk.", "--pair", "a person of law.")
    found = answer("heads", "demo-bert", *texts)
    assert set(found) >= {"architecture", "head", "output", "result"}
    assert (found["architecture"], found["head"]) == (
        "BertForNextSentencePrediction", "next_sentence",
    )  # fmt: skip
    assert found["output"] == {"logits": [1, 2]}
    assert 0 < found["result"]["is_next"] < 1
    assert found["result"]["is_next"] + found["result"]["not_next"] == pytest.approx(1)
    begun = answer("heads", "demo-gpt2", "--text", "family Rosaceae is a", "-k", "3",
                   "--new-tokens", "4")  # fmt: skip
    assert begun["head"] == "causal_lm"
    assert [len(begun["result"][name]) for name in ("next", "steps")] == [3, 4]
    assert begun["result"]["steps"][0]["token"] == begun["result"]["next"][0]["token"]


def test_pretrain(answer):
    found = answer("pretrain", "demo-bert", "--text", "a large plant with a thick trunk.",
                   "--pair", "it has leaves.", "--share", "0.4", "--seed", "3")  # fmt: skip
    assert found["architecture"] == "BertForPreTraining"
    assert found["loss"] == pytest.approx(found["masked_lm_loss"] + found["next_sentence_loss"])
    chosen = [row for row in found["tokens"] if row["label"] != -100]
    assert len(chosen) == found["chosen"] == sum(found["counts"].values())
    assert sum(row["loss"] for row in chosen) / len(chosen) == pytest.approx(found["masked_lm_loss"], rel=1e-4)
    assert {row["loss"] for row in found["tokens"] if row["label"] == -100} == {None}
    assert found["warnings"] == []


def test_compare(answer, call, tmp_path):
    found = answer("compare", "demo-bert", "demo-gpt2", "--moved", "3")
    assert all(set(row) >= {"name", "status", "cosine", "relative_change", "max_abs"} for row in found["tensors"])
    assert found["counts"] == {"added": 52, "removed": 78}
    assert len(found["tensors"]) == 130
    assert [tie["names"] for tie in found["ties_changed"] if tie["tied_in"] == "second"] == [
        ["lm_head.weight", "transformer.wte.weight"]
    ]
    assert found["tokens_moved"] == []  # rows of other widths have no distance
    steps = ("demo-run-checkpoint-0", "demo-run-checkpoint-1000")
    status, stdout, _ = call("compare", *steps, "--moved", "3", "--json")
    moved = json.loads(stdout)["tokens_moved"]
    assert [set(row) >= {"token", "token_id", "distance", "cosine"} for row in moved] == [True] * 3
    same = answer("compare", "demo-bert", "demo-bert")
    assert same["same"]
    assert same["counts"] == {"equal": 78}
    assert (same["ties_changed"], same["tokens_moved"], same["warnings"]) == ([], [], [])
    status, stdout, _ = call("compare", "demo-bert", "demo-bert")
    assert status == 0
    assert "byte for byte" in " ".join(stdout.split())
    status, stdout, stderr = call("compare", "demo-bert", "no-such-thing", "--json")
    assert (status, stdout, stderr) == (2, "", f"{NO_SUCH}\n")


@EVERY
def test_tokenize(answer, name):
    found = answer("tokenize", name, "--text", "the dog is an animal.", "--text", "dog")
    assert [sequence["tokens"] + sequence["padding"] for sequence in found["batch"]] == [found["padded_to"]] * 2
    first = [row for row in found["tokens"] if row["sequence"] == 0 and row["part"]]
    assert "".join(row["text"].strip() for row in first) == "thedogisananimal."


def test_report(answer, tmp_path):
    path = tmp_path / "report.html"
    found = answer("report", "MiniLM", "-o", str(path), "--sections", "masked_lm,overview")
    assert set(found) >= {"file", "nbytes", "sections", "absent", "figures", "tables"}
    assert found["sections"] == ["overview", "masked_lm"]
    assert found["file"] == str(path)
    assert found["nbytes"] == path.stat().st_size
    assert found["absent"] == [{"section": "masked_lm", "reason": NO_HEAD}]
    assert path.read_text("utf-8").startswith("<!DOCTYPE html>")


@pytest.mark.parametrize("browser", [True, False])
def test_report_as_markdown_has_its_pictures_beside_it(answer, tmp_path, monkeypatch, browser):
    if not browser:
        monkeypatch.setattr("inspector.browser.driving.find_chromium", lambda: None)
    path = tmp_path / "my report.md"
    text = "a | b *[MASK]* <b>"
    found = answer("report", "demo-bert", "-o", str(path), "--sections", "lens,training", "--text", text)
    assert found["nbytes"] == path.stat().st_size
    tokens = MarkdownIt().enable("table").parse(path.read_text("utf-8"))
    inline = [child for token in tokens for child in token.children or ()]
    assert not [token for token in [*tokens, *inline] if token.type.startswith("html")]
    assert text in "".join(child.content for child in inline)
    pictures = [unquote(str(child.attrs["src"])) for child in inline if child.type == "image"]
    assert len(pictures) == (found["figures"] if browser else 0)
    assert sorted(str(each.relative_to(tmp_path)) for each in tmp_path.glob("*/*")) == sorted(pictures)
    for picture in pictures:
        with Image.open(tmp_path / picture) as opened:
            opened.load()
            assert opened.info["Checkpoint"] == "demo-bert"
    assert sum(token.type == "table_open" for token in tokens) >= found["tables"]
    assert bool(found["without_pictures"]) != browser


def test_report_of_a_comparison(answer, call, tmp_path):
    path = tmp_path / "report.html"
    found = answer("report", "demo-bert", "-o", str(path), "--sections", "overview",
                   "--other", "demo-gpt2")  # fmt: skip
    assert (found["sections"], found["absent"]) == (["overview", "compare"], [])
    assert "--other=demo-gpt2" in path.read_text("utf-8")
    status, stdout, stderr = call("report", "demo-bert", "-o", str(path), "--sections", "compare")
    assert (status, stdout) == (2, "")
    assert stderr.startswith("The section compare needs a second checkpoint: name one (--other)")


@EVERY
def test_check(answer, name):
    found = answer("check", name)
    assert set(found) >= {"name", "fingerprint", "counts", "checks", "baseline"}
    assert found["counts"] == {"ok": len(found["checks"]), "warn": 0, "fail": 0}
    assert all(
        set(each) >= {"name", "status", "detail", "severity", "next_step", "evidence"} for each in found["checks"]
    )
    assert {each["status"] for each in found["checks"]} == {"ok"}
    assert len({each["name"] for each in found["checks"]}) == len(found["checks"])


def test_numbers_that_are_none_become_null_with_a_warning():
    from inspector.analyses.embeddings.result import RowNorms
    from inspector.analyses.vocabulary_map.result import Projection

    projection = Projection("pca", 2, 3, math.nan, 0.5, None, (), points=pd.DataFrame())
    plain = to_json(projection)
    assert plain["seconds"] is None
    assert plain["warnings"] == ["1 numbers are NaN or infinite and are given as null, in: seconds."]
    assert "points" not in plain
    assert to_json(RowNorms(1.0, 2.0, 3.0)) == {"min": 1.0, "median": 2.0, "max": 3.0}
