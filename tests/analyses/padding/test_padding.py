"""The padding dossier against hand-computed gradients, ordinary backward passes and plain means."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn
from transformers import AutoModelForSeq2SeqLM, BertConfig, BertForMaskedLM

from inspector.analyses.padding.compute import padding
from inspector.analyses.padding.compute_batch import label_next
from inspector.analyses.padding.result import AS_IT_IS, FRESH, LIFTED, UNMASKED, UNTIED
from inspector.models.loading import load
from tests.analyses.padding.padding_truth import CAUSAL, PAD, SEQ2SEQ, TEXT, batch_of, experiment, labeled, truth
from tests.conftest import silent
from tests.families import ENCODER, random_model, save_checkpoint, words


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
    loaded = load(checkpoint, "masked_lm", device="cpu", dtype="float32")
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
    assert "was not trained in this form or was set to zero" in result.verdict


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
    assert ("The decoder starts with padding" in result.gradient_note) == (start == PAD)
    if start == PAD and result.padding_idx is None:
        assert found.input_path > 0
