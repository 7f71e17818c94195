"""The padding row itself: what is known of it without a gradient, and how it is explained."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch

from inspector.analyses.padding.compute import padding
from inspector.analyses.padding.result import LIFTED, Padding
from inspector.demo import DEMOS
from inspector.errors import CheckpointError
from inspector.results.plain import to_json
from inspector.serving.encoding import decode, encode
from inspector.serving.engine.wire import MAX_PARTIAL
from tests.analyses.padding.padding_truth import PAD, TEXT
from tests.conftest import silent
from tests.families import random_model, save_checkpoint, words
from tests.models import alike


def test_row_facts_by_numpy(open_model):
    result = padding(open_model("BertForMaskedLM"), progress=silent)
    matrix = random_model("BertForMaskedLM").get_input_embeddings().weight.detach().double().numpy()
    norms = np.linalg.norm(matrix, axis=1)
    assert (result.pad_token, result.pad_id, result.padding_idx) == ("[PAD]", 0, 0)
    assert result.norm == pytest.approx(norms[0], rel=1e-5)
    assert result.median_norm == pytest.approx(np.median(norms), rel=1e-5)
    assert result.percentile == pytest.approx(100 * (norms < norms[0]).mean(), abs=1e-3)
    assert result.is_zero is False
    cosines = matrix @ matrix[0] / norms / norms[0]
    cosines[0] = -2
    best = cosines.argsort()[::-1][:10]
    assert result.nearest["token_id"].tolist() == best.tolist()
    assert result.nearest["cosine"].tolist() == pytest.approx(cosines[best].tolist(), abs=1e-5)
    places = result.places.set_index("place")
    means = {"mean of all rows": matrix.mean(axis=0), "[UNK]": matrix[1],
             "mean of the unused rows": matrix[5:8].mean(axis=0)}  # fmt: skip
    assert set(places.index) == set(means)
    for place, mean in means.items():
        assert places.loc[place, "distance"] == pytest.approx(np.linalg.norm(matrix[0] - mean),
                                                              rel=1e-4)  # fmt: skip
        cosine = matrix[0] @ mean / norms[0] / np.linalg.norm(mean)
        assert places.loc[place, "cosine"] == pytest.approx(cosine, abs=1e-4)


def test_weights_that_are_cut_short_after_they_were_opened_are_one_sentence(open_model):
    checkpoint = open_model("BertForMaskedLM")
    with checkpoint.manifest.paths["model.safetensors"].open("r+b") as file:
        file.truncate(5_000)
    with pytest.raises(CheckpointError, match=r"^model\.safetensors has changed since it was opened: open it again\.$"):
        padding(checkpoint, progress=silent)


def test_without_a_head_nothing_is_measured_but_the_mean(open_model):
    result = padding(open_model("BertModel"), progress=silent, text=TEXT)
    assert result.gradient is None
    assert result.experiments.empty
    assert result.tied is None
    assert "has no language-model head" in result.gradient_note
    assert "the file has no language-model head, so its gradient cannot be measured" in (result.verdict)
    assert len(result.averaging) == 3


def test_a_classifier_without_a_language_model_head_gives_no_gradient(open_model):
    result = padding(open_model("BertForSequenceClassification"), progress=silent, text=TEXT)
    assert result.gradient is None
    assert len(result.averaging) == 3


def test_gpt2_has_no_padding_and_end_of_text_stands_in(open_path):
    checkpoint = open_path(DEMOS["demo-gpt2"].folder)
    result = padding(checkpoint, progress=silent, text="a dog.\nthe capital of a country.")
    assert (result.pad_token, result.pad_id, result.padding_idx) == (None, None, None)
    assert (result.norm, result.percentile, result.is_zero) == (None, None, None)
    assert result.nearest.empty
    assert result.gradient is None
    assert "There is no padding vector" in result.verdict
    assert result.agreement == (
        "The model has no padding_idx, and the tokenizer names no padding token: no row is reserved for padding."
    )
    assert result.stand_in is not None
    assert result.stand_in.token == "<|endoftext|>"
    row = checkpoint.embedding_matrix()[0]
    assert result.stand_in.norm == pytest.approx(row.norm().item(), rel=1e-5)
    assert result.stand_in.gradient is not None
    assert result.stand_in.gradient.output_path > 0
    assert result.stand_in.gradient.input_path == 0  # nothing looks back at padding on the right
    assert to_json(result)["stand_in"]["gradient"]["task"] == "causal_lm"


def test_roberta_with_a_foreign_tokenizer_differs(open_model):
    """The tests' tokenizer pads with row 0, RoBERTa's padding_idx is 1."""
    result = padding(open_model("RobertaForMaskedLM"), progress=silent, text=TEXT)
    assert (result.pad_id, result.padding_idx) == (0, 1)
    assert result.agreement.startswith("They differ: the tokenizer pads with id 0")
    assert "no padding_idx set it to zero at the start" in result.verdict
    assert LIFTED not in set(result.experiments["experiment"])


def test_the_verdict_of_a_tied_model_names_both_paths_with_their_numbers(open_model):
    result = padding(open_model("BertForMaskedLM"), progress=silent, text=TEXT)
    assert result.gradient is not None
    assert result.verdict == (
        f"The padding vector is not zero (norm {result.norm:.3f}, "
        f"percentile {result.percentile:.1f}): it is tied to the output matrix, "
        f"whose softmax pushes on every row (gradient {result.gradient.output_path:.3g} on your "
        f"text, in proportion to the probability of {result.gradient.probability:.3g} that the model gives this token "
        "there); the look-up path is blocked by padding_idx (gradient 0 on your text)."
    )


def test_one_position_is_one_position(open_model):
    result = padding(open_model("BertForMaskedLM"), progress=silent, text=TEXT.split()[0])
    assert result.gradient is not None
    assert result.gradient.predicted == 1
    assert ": 1 position, plus " in result.gradient_note


def set_row(model: Any, row: int, value: float) -> Any:
    with torch.no_grad():
        model.get_input_embeddings().weight[row] = value
    return model


def test_a_zero_row_that_is_untied_is_explained_as_never_moved(tmp_path, open_path):
    model = set_row(random_model("LlamaForCausalLM"), PAD, 0.0)
    result = padding(open_path(save_checkpoint(model, tmp_path / "zero")), progress=silent,
                     text=TEXT)  # fmt: skip
    assert result.is_zero
    assert result.norm == 0.0
    assert result.nearest.empty
    assert np.isnan(result.places["cosine"]).all()
    assert to_json(result)["places"][0]["cosine"] is None
    assert "so no gradient moves it" in result.verdict


def test_a_nan_row_is_damaged(tmp_path, open_path):
    model = set_row(random_model("BertForMaskedLM"), PAD, math.nan)
    result = padding(open_path(save_checkpoint(model, tmp_path / "nan")), progress=silent)
    assert "holds NaN" in result.verdict
    assert "[PAD] (id 0)" in result.warnings[0]
    assert result.nearest.empty


def test_a_padding_id_past_the_matrix(tmp_path, open_path):
    folder = save_checkpoint(random_model("BertForMaskedLM"), tmp_path / "past")
    vocabulary = [word for word in words() if word != "[PAD]"]
    (folder / "vocab.txt").write_text("\n".join([*vocabulary, "w90", "[PAD]"]) + "\n", "utf-8")
    result = padding(open_path(folder), progress=silent, text="w1")
    assert (result.pad_id, result.norm, result.gradient) == (60, None, None)
    assert "padding has id 60, but the matrix has 60 rows" in result.verdict
    assert "until the matrix is resized" in result.agreement


def test_without_tokenizer_the_config_names_the_row(tmp_path, open_path):
    folder = save_checkpoint(random_model("BertForMaskedLM"), tmp_path / "bare", tokenizer=False)
    result = padding(open_path(folder), progress=silent, text=TEXT)
    assert (result.pad_id, result.padding_idx, result.gradient) == (0, 0, None)
    assert "There is no tokenizer" in result.gradient_note
    assert result.averaging.empty


def test_without_config_the_row_is_still_described(tmp_path, open_path):
    folder = save_checkpoint(random_model("BertForMaskedLM"), tmp_path / "bare")
    (folder / "config.json").unlink()
    result = padding(open_path(folder), progress=silent, text=TEXT)
    assert result.norm is not None
    assert result.padding_idx is None
    assert "its padding_idx is unknown" in result.agreement
    assert "has no config.json" in result.gradient_note


def test_without_text_nothing_is_run(open_model):
    result = padding(open_model("BertForMaskedLM"), progress=silent)
    assert result.gradient is None
    assert result.gradient_note == "Enter a text, one sentence per line, to measure it."
    assert "nothing was run" in result.verdict


def test_the_row_is_shown_before_a_block_is_read(open_model):
    """Of a streamed model its pass takes minutes, and the row is there already."""
    checkpoint = open_model("BertForMaskedLM")
    told: list[str] = []
    shown: list[Padding] = []

    def show(known: Padding) -> None:
        assert not [text for text in told if text.startswith("Block")]
        shown.append(known)

    found = padding(checkpoint, progress=lambda _, text: told.append(text), show=show, text=TEXT, device="stream")
    assert any(text.startswith("Block 2 of ") for text in told)
    assert "Streamed in float32: every pass reads " in found.averaging_note
    (known,) = shown
    assert known.gradient is None
    assert known.averaging.empty
    assert not found.averaging.empty
    unsaid = {"verdict", "tied", "averaging", "averaging_note", "gradient_note", "device", "dtype"}
    alike.same(known, found, leaving=unsaid)
    assert decode(encode(known), Padding) is not None
    assert len(encode(known)) < MAX_PARTIAL


def test_without_sentences_there_is_nothing_to_wait_for(open_model):
    shown: list[Padding] = []
    padding(open_model("BertForMaskedLM"), progress=silent, show=shown.append)
    assert not shown
