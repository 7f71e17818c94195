"""The padding dossier against hand-computed gradients, ordinary backward passes and plain means."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from transformers import (
    AutoModel,
    AutoModelForCausalLM,
    AutoModelForMaskedLM,
    AutoModelForSeq2SeqLM,
    BertConfig,
    BertForMaskedLM,
)

from inspector.analyses.padding.compute import padding
from inspector.analyses.padding.compute_batch import Batch, encode_batch, label_next, mask_some
from inspector.analyses.padding.request import PaddingRequest
from inspector.analyses.padding.result import AS_IT_IS, FRESH, LIFTED, UNMASKED, UNTIED
from inspector.demo import DEMOS
from inspector.errors import RequestError
from inspector.models.checkpoint import Checkpoint
from inspector.results.plain import to_json
from tests.conftest import silent
from tests.families import ENCODER, MODELS, random_model, save_checkpoint, words

TEXT = "w1 w2 w3\nw4 w5 w6 w7 w8 w9 w10\nw11 w12 ##a w13 w14"
PAD, MASK = 0, 4  # rows of the tests' tokenizer
SEQ2SEQ = ("T5ForConditionalGeneration", "MT5ForConditionalGeneration",
           "BartForConditionalGeneration", "MBartForConditionalGeneration", "MarianMTModel",
           "PegasusForConditionalGeneration")  # fmt: skip
CAUSAL = {name for name in MODELS if "Causal" in name or "LMHead" in name}


def batch_of(checkpoint: Checkpoint, text: str) -> Batch:
    return encode_batch(checkpoint, PaddingRequest(text=text).sentences, pad_id=PAD)


def labeled(checkpoint: Checkpoint, architecture: str) -> tuple[dict[str, Any], torch.Tensor]:
    """The inputs and labels of the analysis, for the truth's own backward pass."""
    batch = batch_of(checkpoint, TEXT)
    if architecture in CAUSAL:
        labels = label_next(batch)
    else:
        ordinary = torch.arange(len(words())) >= 8
        batch, labels = mask_some(batch, ordinary, mask_id=MASK)
    return {"input_ids": batch.ids, "attention_mask": batch.mask}, labels


def truth(folder: Any, architecture: str) -> Any:
    """The saved model, as transformers itself loads it."""
    auto: Any = AutoModelForCausalLM if architecture in CAUSAL else AutoModelForMaskedLM
    return auto.from_pretrained(folder, attn_implementation="eager").eval()


def experiment(result: Any, name: str) -> Any:
    frame: Any = result.row.experiments
    return frame[frame["experiment"] == name].iloc[0]


def test_both_paths_by_two_independent_ways(open_model, architecture, tmp_path):
    """Ordinary backward passes of transformers' own model, tied and untied; and by hand."""
    checkpoint = open_model(architecture)
    result = padding(checkpoint, progress=silent, text=TEXT, device="cpu")
    inputs, labels = labeled(checkpoint, architecture)
    assert_as_two_ordinary_backward_passes(result, architecture, inputs, labels, tmp_path)
    assert_as_by_hand(result.gradient, architecture, inputs, labels, tmp_path)


def assert_as_two_ordinary_backward_passes(result, architecture, inputs, labels, tmp_path):
    """First way: give the output layer a parameter of its own, and let PyTorch differentiate."""
    model = truth(tmp_path / architecture, architecture)
    tied = model.get_output_embeddings().weight is model.get_input_embeddings().weight
    model(**inputs, labels=labels).loss.backward()
    total = model.get_input_embeddings().weight.grad[PAD].norm().item()
    model.zero_grad()
    output: Any = model.get_output_embeddings()
    output.weight = nn.Parameter(output.weight.detach().clone())
    loss = model(**inputs, labels=labels).loss
    loss.backward()
    into_look_up = model.get_input_embeddings().weight.grad[PAD].norm().item()
    gradients: Any = output.weight.grad
    into_output = gradients[PAD].norm().item()

    found = result.gradient
    assert found is not None
    assert found.tied == tied == result.tied
    assert found.loss == pytest.approx(loss.item(), rel=1e-5)
    assert found.predicted == int((labels != -100).sum()) - (len(labels) if architecture in CAUSAL else 0)
    assert found.input_path == pytest.approx(into_look_up, rel=1e-4, abs=0)
    assert found.total == pytest.approx(total, rel=1e-4, abs=0)
    assert found.split_error < 1e-6
    assert into_output > 1e-4
    if tied:
        assert found.output_path == pytest.approx(into_output, rel=1e-4)
        assert found.output_matrix is None
    else:
        assert found.output_path == 0.0
        assert found.output_matrix == pytest.approx(into_output, rel=1e-4)
    assert found.rows_output == found.rows == len(words())


def assert_as_by_hand(found, architecture, inputs, labels, tmp_path):
    """Second way: the sum of (p - y) h over the predicted positions; the look-up by a hook."""
    model = truth(tmp_path / architecture, architecture)
    seen: dict[str, torch.Tensor] = {}
    model.get_output_embeddings().register_forward_pre_hook(lambda _, given: seen.__setitem__("state", given[0]))

    def keep(_: nn.Module, __: Any, embedded: torch.Tensor) -> None:
        embedded.retain_grad()
        seen["embedded"] = embedded

    model.get_input_embeddings().register_forward_hook(keep)
    output = model(**inputs, labels=labels)
    output.loss.backward()

    logits = output.logits.detach().double()
    y = labels
    if architecture in CAUSAL:
        y = torch.cat([labels[:, 1:], torch.full_like(labels[:, :1], -100)], dim=1)
    counted = y != -100
    push = (logits.softmax(-1)[..., PAD] - (y == PAD).double()) * counted / counted.sum()
    if cap := getattr(model.config, "final_logit_softcapping", None):
        push = push * (1 - (logits[..., PAD] / cap) ** 2)  # the derivative of cap * tanh(z / cap)
    by_hand = torch.einsum("sp,spd->d", push, seen["state"].detach().double()).norm().item()
    assert found is not None
    softmax_path = found.output_path if found.tied else found.output_matrix
    assert softmax_path == pytest.approx(by_hand, rel=1e-3)
    probability = (logits.softmax(-1)[..., PAD])[counted].mean().item()
    assert found.probability == pytest.approx(probability, rel=1e-4)

    gradient = seen["embedded"].grad
    assert gradient is not None
    blocked = model.get_input_embeddings().padding_idx == PAD
    at_padding = gradient[inputs["input_ids"] == PAD].sum(dim=0).norm().item()
    assert found.input_path == pytest.approx(0.0 if blocked else at_padding, rel=1e-4, abs=0)


def test_padding_idx_blocks_exactly_and_without_mask_it_is_all_that_does(open_model, tmp_path):
    checkpoint = open_model("BertForMaskedLM")
    result = padding(checkpoint, progress=silent, text=TEXT)
    assert result.gradient is not None
    assert result.gradient.input_path == 0.0
    assert experiment(result, LIFTED)["input_path"] == 0.0  # the attention mask blocks it as well
    inputs, labels = labeled(checkpoint, "BertForMaskedLM")
    model = truth(tmp_path / "BertForMaskedLM", "BertForMaskedLM")
    decoder, look_up = model.get_output_embeddings(), model.get_input_embeddings()
    decoder.weight = nn.Parameter(decoder.weight.detach().clone())
    look_up.padding_idx = None
    model(input_ids=inputs["input_ids"], labels=labels).loss.backward()
    unmasked = look_up.weight.grad[PAD].norm().item()
    assert unmasked > 1e-4
    assert experiment(result, UNMASKED)["input_path"] == pytest.approx(unmasked, rel=1e-4)


def test_the_analysis_leaves_the_model_as_it_was(open_model):
    checkpoint = open_model("BertForMaskedLM")
    loaded = checkpoint.load("masked_lm", device="cpu", dtype="float32")
    before = {name: value.clone() for name, value in loaded.model.state_dict().items()}
    first = padding(checkpoint, progress=silent, text=TEXT, device="cpu")
    again = padding(checkpoint, progress=silent, text=TEXT, device="cpu")
    assert first.gradient == again.gradient
    look_up: Any = loaded.model.get_input_embeddings()
    assert look_up.padding_idx == PAD
    assert look_up.weight.grad is None
    after = loaded.model.state_dict()
    assert all(value.equal(after[name]) for name, value in before.items())


def test_untied_leaves_the_embedding_row_alone(open_model):
    result = padding(open_model("BertForMaskedLM", tie_word_embeddings=False), progress=silent,
                     text=TEXT)  # fmt: skip
    assert result.tied is False
    assert result.gradient is not None
    assert (result.gradient.input_path, result.gradient.output_path) == (0.0, 0.0)
    assert result.gradient.total == 0.0
    assert (result.gradient.output_matrix or 0) > 1e-4
    assert "no gradient reaches it now" in result.verdict
    model = random_model("BertForMaskedLM", tie_word_embeddings=False)
    row = model.get_output_embeddings().weight[PAD]
    assert result.output_row is not None
    assert result.output_row.norm == pytest.approx(row.norm().item(), rel=1e-5)
    assert UNTIED not in set(result.experiments["experiment"])


def test_tied_llama_and_the_same_untied(open_model):
    result = padding(open_model("LlamaForCausalLM", tie_word_embeddings=True), progress=silent,
                     text=TEXT)  # fmt: skip
    assert result.gradient is not None
    assert result.gradient.tied
    assert result.gradient.input_path == 0.0
    assert result.gradient.output_path == result.gradient.total > 1e-4
    untied = experiment(result, UNTIED)
    assert (untied["input_path"], untied["output_path"], untied["total"]) == (0.0, 0.0, 0.0)


@pytest.mark.parametrize("name", ["BertForMaskedLM", "LlamaForCausalLM", "GPT2LMHeadModel"])
def test_the_fresh_control_is_a_model_of_the_same_config(open_model, name, tmp_path):
    checkpoint = open_model(name)
    result = padding(checkpoint, progress=silent, text=TEXT)
    fresh = experiment(result, FRESH)
    inputs, labels = labeled(checkpoint, name)
    trained = truth(tmp_path / name, name)
    torch.manual_seed(0)
    model = type(trained)(trained.config).eval()
    weight = model.get_input_embeddings().weight
    assert fresh["row_norm"] == pytest.approx(weight[PAD].norm().item(), rel=1e-6, abs=0)
    assert (fresh["row_norm"] == 0) == (name != "GPT2LMHeadModel")
    model(**inputs, labels=labels).loss.backward()
    assert fresh["total"] == pytest.approx(weight.grad[PAD].norm().item(), rel=1e-4, abs=0)


def test_at_the_start_of_training_padding_is_pushed_like_any_unseen_token(tmp_path, open_path):
    torch.manual_seed(0)
    sizes: dict[str, Any] = ENCODER | {"hidden_size": 64, "num_attention_heads": 4}
    config: Any = BertConfig(**sizes)
    checkpoint = open_path(save_checkpoint(BertForMaskedLM(config), tmp_path / "start"))
    result = padding(checkpoint, progress=silent, text=TEXT)
    assert result.is_zero
    assert result.gradient is not None
    rows = result.experiments[result.experiments["experiment"] == AS_IT_IS].set_index("role")
    unseen = rows.loc["not in the text"]
    assert unseen["input_path"] == 0.0
    assert 0.01 < result.gradient.output_path < 0.3
    assert result.gradient.output_path == pytest.approx(unseen["output_path"], rel=0.2)
    assert rows.loc["in the text"]["input_path"] > 1e-5
    assert "was not trained in this form, or was set to zero" in result.verdict


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


@pytest.mark.parametrize(
    "name",
    ["BertModel", "DistilBertForMaskedLM", "MPNetForMaskedLM", "AlbertForMaskedLM",
     "GPT2LMHeadModel", "LlamaForCausalLM"],
)  # fmt: skip
def test_the_masked_mean_is_that_of_the_sentence_alone(open_model, name, tmp_path):
    """Padding with its mask changes no hidden state; a plain mean is off by what padding adds."""
    checkpoint = open_model(name)
    averaging = padding(checkpoint, progress=silent, text=TEXT, device="cpu").averaging
    model: Any = AutoModel.from_pretrained(tmp_path / name, attn_implementation="eager").eval()
    batch = batch_of(checkpoint, TEXT)
    with torch.inference_mode():
        together = model(input_ids=batch.ids, attention_mask=batch.mask).last_hidden_state
    for number, sentence in enumerate(TEXT.splitlines()):
        ids = torch.tensor([checkpoint.require_tokens().encode(sentence).ids])
        with torch.inference_mode():
            alone = model(input_ids=ids).last_hidden_state[0].mean(dim=0)
        plain = together[number].mean(dim=0)
        row = averaging.iloc[number]
        assert row["sentence"] == sentence
        assert (row["tokens"], row["tokens"] + row["padding"]) == (ids.shape[1], len(together[0]))
        assert row["difference"] == pytest.approx((plain - alone).norm().item(), abs=2e-5)
        assert row["cosine"] == pytest.approx(torch.cosine_similarity(plain, alone, dim=0).item(), abs=1e-5)
        assert row["relative"] == pytest.approx(row["difference"] / alone.norm().item(), abs=1e-5)
        if row["padding"]:
            of_padding = together[number, ids.shape[1] :].mean(dim=0)
            assert row["padding_norm"] == pytest.approx(of_padding.norm().item(), rel=1e-4)
            apart = row["padding_share"] * (of_padding - alone).norm().item()
            assert row["difference"] == pytest.approx(apart, abs=2e-5)  # k/(n+k) of the way
        else:
            assert row["difference"] == 0


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
        "The model has no padding_idx, and the tokenizer names no padding token: nothing is set apart for padding."
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
        "text); the look-up path is blocked by padding_idx (gradient 0 on your text)."
    )


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
    assert "so that no gradient moves it" in result.verdict


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
    assert "padding has id 60 and there are 60 rows" in result.verdict
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
    assert "its padding_idx is not known" in result.agreement
    assert "has no config.json" in result.gradient_note


@pytest.mark.parametrize("name", [*SEQ2SEQ, "untied T5"])
def test_encoder_decoder_by_ordinary_backward_passes(tmp_path, open_path, name):
    """The decoder writes the sentence again; both stacks look up in the one matrix."""
    architecture = "T5ForConditionalGeneration" if name == "untied T5" else name
    changes = {"tie_word_embeddings": False} if name == "untied T5" else {}
    folder = save_checkpoint(random_model(architecture, **changes), tmp_path / "two")
    checkpoint = open_path(folder)
    result = padding(checkpoint, progress=silent, text=TEXT, device="cpu")
    batch = batch_of(checkpoint, TEXT)
    labels = label_next(batch)
    start = checkpoint.config.decoder_start_token_id
    decoder = torch.cat([torch.full((len(labels), 1), start), batch.ids[:, :-1]], dim=1)
    inputs = {"input_ids": batch.ids, "attention_mask": batch.mask, "decoder_input_ids": decoder}
    model: Any = AutoModelForSeq2SeqLM.from_pretrained(folder, attn_implementation="eager").eval()
    matrix = model.get_input_embeddings().weight
    tied = model.get_output_embeddings().weight is matrix
    loss = model(**inputs, labels=labels).loss
    loss.backward()
    total = matrix.grad[PAD].norm().item()
    model.zero_grad()
    model.get_output_embeddings().weight = nn.Parameter(
        matrix.detach().clone() if tied else model.get_output_embeddings().weight
    )
    model(**inputs, labels=labels).loss.backward()
    look_up = matrix.grad[PAD].norm().item()

    found = result.gradient
    assert found is not None, result.gradient_note
    assert (found.task, found.tied, found.predicted) == ("seq2seq_lm", tied, int(batch.mask.sum()))
    assert found.loss == pytest.approx(loss.item(), rel=1e-5)
    assert found.input_path == pytest.approx(look_up, rel=1e-4, abs=1e-9)
    assert found.total == pytest.approx(total, rel=1e-4)
    assert found.split_error < 1e-6
    assert ("The decoder is started with padding" in result.gradient_note) == (start == PAD)
    if start == PAD and result.padding_idx is None:
        assert found.input_path > 0


@pytest.mark.parametrize("name", ["T5ForConditionalGeneration", "BartForConditionalGeneration"])
def test_of_two_stacks_the_encoder_is_averaged(tmp_path, open_path, name):
    folder = save_checkpoint(random_model(name), tmp_path / "two")
    checkpoint = open_path(folder)
    averaging = padding(checkpoint, progress=silent, text=TEXT, device="cpu").averaging
    encoder: Any = AutoModelForSeq2SeqLM.from_pretrained(folder).eval().get_encoder()
    for number, sentence in enumerate(TEXT.splitlines()):
        ids = torch.tensor([checkpoint.require_tokens().encode(sentence).ids])
        with torch.inference_mode():
            alone = encoder(input_ids=ids).last_hidden_state[0].mean(dim=0)
        row = averaging.iloc[number]
        assert row["tokens"] == ids.shape[1]
        assert row["relative"] == pytest.approx(row["difference"] / alone.norm().item(), abs=1e-5)


def test_what_would_not_fit_is_refused_in_one_sentence(open_model):
    checkpoint = open_model("BertForMaskedLM")
    checkpoint.settings = dataclasses.replace(checkpoint.settings, worker_nbytes=100_000)
    result = padding(checkpoint, progress=silent, text=TEXT)
    assert result.gradient is None
    assert "A backward pass through BertForMaskedLM needs about" in result.gradient_note
    assert "would need too much memory" in result.verdict


def test_the_fresh_control_is_left_out_where_two_models_would_not_fit(open_model):
    checkpoint = open_model("BertForMaskedLM")
    checkpoint.settings = dataclasses.replace(checkpoint.settings, worker_nbytes=440_000)
    result = padding(checkpoint, progress=silent, text=TEXT)
    assert result.gradient is not None
    assert FRESH not in set(result.experiments["experiment"])
    assert "The control with a fresh model was left out" in result.warnings[0]


def test_without_text_nothing_is_run(open_model):
    result = padding(open_model("BertForMaskedLM"), progress=silent)
    assert result.gradient is None
    assert result.gradient_note == "Enter a text, one sentence per line, to measure it."
    assert "nothing was run" in result.verdict


def test_masking_takes_ordinary_tokens_alone_and_keeps_their_labels(open_model):
    checkpoint = open_model("BertForMaskedLM")
    batch = batch_of(checkpoint, "w1 w2 w3 w4 w5 w6 w7 w8 w9\n[MASK]\n[UNK] w1")
    ordinary = torch.arange(60) >= 8
    read, labels = mask_some(batch, ordinary, mask_id=MASK)
    assert (labels != -100).sum(dim=1).tolist() == [2, 0, 1]  # ceil(0.15 * 9), none, ceil(0.15)
    chosen = labels != -100
    assert (read.ids[chosen] == MASK).all()
    assert batch.ids[chosen].equal(labels[chosen])
    assert read.ids[~chosen].equal(batch.ids[~chosen])
    assert ordinary[labels[chosen]].all()


def test_batches_always_hold_padding(open_model):
    checkpoint = open_model("BertForMaskedLM")
    batch = batch_of(checkpoint, "w1 w2\n\n  \nw3 w4")
    assert batch.ids.tolist() == [[2, 9, 10, 3, 0, 0, 0, 0], [2, 11, 12, 3, 0, 0, 0, 0]]
    assert batch.mask.sum(dim=1).tolist() == [4, 4]
    assert batch.padding == 8
    uneven = batch_of(checkpoint, "w1\nw1 w2 w3")
    assert uneven.ids.shape == (2, 5)
    assert label_next(uneven).tolist() == [[2, 9, 3, -100, -100], [2, 9, 10, 11, 3]]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (" \n ", "There is no sentence: type one or more, each on its own line."),
        ("w1\n" * 65, "There are 65 sentences: give at most 64."),
        ("w1 " * 62, "The sentences fill all 64 positions, so there is no room for padding: "
         "shorten them."),
        ("w1 " * 70, "The text has 72 tokens and BertForMaskedLM takes 64: shorten it."),
    ],
)  # fmt: skip
def test_refusals(open_model, text, sentence):
    with pytest.raises(RequestError) as error:
        padding(open_model("BertForMaskedLM"), progress=silent, text=text)
    assert str(error.value) == sentence
