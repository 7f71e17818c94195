"""Gradients on single rows against a whole backward pass, and no tensor as large as the matrix on the way."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from inspector.analyses.padding import compute_taps
from inspector.analyses.padding.compute_batch import PaddedBatch
from inspector.analyses.padding.compute_gradient import Work, is_tied, split, total
from tests.families import random_model

IDS = torch.tensor([[2, 7, 9, 7, 3], [5, 9, 11, 0, 0]])
ROWS = [0, 7, 9, 30, 7]  # padding, twice in a sentence, in both, in none, and one again
CAUSAL = ("GPT2LMHeadModel", "LlamaForCausalLM", "Gemma2ForCausalLM", "OPTForCausalLM")
CASES = [
    *((name, {"tie_word_embeddings": tied}) for name in CAUSAL for tied in (True, False)),
    ("BertForMaskedLM", {}),
    ("BartForConditionalGeneration", {"scale_embedding": True}),
]


def work_of(model: Any) -> Work:
    mask = IDS.ne(0).long()
    decoder = IDS if model.config.is_encoder_decoder else None
    batch = PaddedBatch(("a", "b"), IDS, mask, torch.zeros_like(IDS), decoder)
    shifted = not (decoder is not None or "Masked" in type(model).__name__)
    return Work(model.eval(), torch.device("cpu"), batch, IDS.masked_fill(IDS == 0, -100), shifted)


def truth(work: Work) -> Any:
    """Plain backward pass: the gradients on both matrices."""
    model: Any = work.model
    model.zero_grad()
    model(**work.batch.inputs(model, work.device, masked=True), labels=work.labels, use_cache=False).loss.backward()
    return model.get_input_embeddings().weight.grad, model.get_output_embeddings().weight.grad


@pytest.mark.parametrize(("architecture", "changes"), CASES)
def test_rows_have_the_gradients_of_a_whole_backward_pass(architecture, changes):
    model = random_model(architecture, **changes)
    work = work_of(model)
    found, together = split(work, ROWS), total(work, ROWS)
    inside, outside = truth(work)
    torch.testing.assert_close(together, inside[ROWS])
    if is_tied(model):
        torch.testing.assert_close(found.into_look_up + found.into_output, inside[ROWS])
        assert found.rows_look_up < found.rows_output
    else:
        torch.testing.assert_close(found.into_look_up, inside[ROWS])
        torch.testing.assert_close(found.into_output, outside[ROWS])
        assert found.rows_look_up == int(inside.ne(0).any(dim=1).sum())
        assert found.rows_output == int(outside.ne(0).any(dim=1).sum())
    assert not any(module.sparse for module in model.modules() if isinstance(module, nn.Embedding))


def test_a_matrix_that_has_another_use_is_differentiated_whole(monkeypatch):
    model: Any = random_model("LlamaForCausalLM", tie_word_embeddings=True)
    weight = model.get_input_embeddings().weight
    model.more = nn.Linear(*weight.T.shape, bias=False)
    model.more.weight = weight
    monkeypatch.setattr(compute_taps, "functional_call", None)  # what the other way needs
    work = work_of(model)
    torch.testing.assert_close(total(work, ROWS), truth(work)[0][ROWS])


class Largest(TorchDispatchMode):
    """Notes the most numbers that a new tensor holds; views of the model's own count for nothing."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self._known = {parameter.untyped_storage().data_ptr() for parameter in model.parameters()}
        self.most = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        made = func(*args, **(kwargs or {}))
        for each in tree_leaves(made):
            if isinstance(each, torch.Tensor) and not each.is_sparse and self._is_new(each):
                self.most = max(self.most, each.numel())
        return made

    def _is_new(self, tensor: torch.Tensor) -> bool:
        return tensor.untyped_storage().data_ptr() not in self._known


@pytest.mark.parametrize("tied", [True, False])
def test_nothing_as_large_as_the_matrix_is_made(tied):
    model: Any = random_model("LlamaForCausalLM", vocab_size=20_000, tie_word_embeddings=tied)
    work = work_of(model)
    with Largest(model) as largest:
        split(work, ROWS)
        total(work, ROWS)
    scores = IDS.numel() * 20_000
    assert 0 < largest.most <= scores < model.get_input_embeddings().weight.numel()
    with Largest(model) as whole:
        truth(work)
    assert whole.most >= model.get_input_embeddings().weight.numel()
