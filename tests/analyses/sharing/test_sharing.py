"""Sharing against hand-made ties, and against what transformers declares."""

from __future__ import annotations

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import nn

from inspector.analyses.sharing.compute import sharing
from inspector.analyses.sharing.compute_folding import fold_rows
from inspector.models.execution import reused_modules
from tests.conftest import silent
from tests.families import random_model, save_checkpoint


def share(checkpoint):
    return sharing(checkpoint, progress=silent)


def test_ties_are_those_of_the_model(open_model, architecture):
    result = share(open_model(architecture))
    model = random_model(architecture)
    by_pointer: dict[int, set[str]] = {}
    for name, parameter in model.named_parameters(remove_duplicate=False):
        by_pointer.setdefault(parameter.data_ptr(), set()).add(name)
    truth = {frozenset(names) for names in by_pointer.values() if len(names) > 1}
    assert {frozenset(g.names) for g in result.groups if g.verdict == "tied"} == truth
    assert all(g.in_memory == (g.verdict == "tied") for g in result.groups)
    unique = {p.data_ptr(): p for p in model.parameters()}.values()
    listed = [p for _, p in model.named_parameters(remove_duplicate=False)]
    assert result.unique_parameters == sum(p.numel() for p in unique)
    assert result.listed_parameters == sum(p.numel() for p in listed)
    assert result.unique_nbytes == sum(p.nbytes for p in unique)
    assert result.listed_nbytes == sum(p.nbytes for p in listed)
    assert sum(result.tensors["parameters"]) == result.listed_parameters
    assert sum(result.rows["parameters"]) == result.listed_parameters


def test_bert_ties_matrix_and_bias(open_model):
    matrix, bias = share(open_model("BertForPreTraining")).groups
    assert matrix.names == ("bert.embeddings.word_embeddings.weight", "cls.predictions.decoder.weight")
    assert bias.names == ("cls.predictions.bias", "cls.predictions.decoder.bias")
    assert (matrix.shape, matrix.nbytes) == ((60, 32), 60 * 32 * 4)
    assert matrix.declared
    assert matrix.in_file == ("bert.embeddings.word_embeddings.weight",)
    assert "the file stores one copy" in matrix.reason


def test_another_decoder_in_the_file_breaks_the_declared_tie(tmp_path, open_path):
    folder = save_checkpoint(random_model("BertForMaskedLM"), tmp_path / "broken")
    tensors = load_file(folder / "model.safetensors")
    tensors["cls.predictions.decoder.weight"] = torch.randn(60, 32)
    save_file(tensors, folder / "model.safetensors")
    group = next(g for g in share(open_path(folder)).groups if len(g.shape) == 2)
    assert (group.verdict, group.declared, group.in_memory) == ("declared only", True, False)
    assert group.in_file == group.names
    assert group.reason.startswith("Declared, but broken")


def test_untied_with_equal_and_with_other_numbers(tmp_path, open_path):
    equal = random_model("GPT2LMHeadModel", tie_word_embeddings=False)
    other = random_model("GPT2LMHeadModel", tie_word_embeddings=False)
    with torch.no_grad():
        equal.lm_head.weight.copy_(equal.transformer.wte.weight)
    for model, verdict in ((equal, "equal copies"), (other, "diverged")):
        folder = save_checkpoint(model, tmp_path / verdict.replace(" ", "-"))
        (group,) = share(open_path(folder)).groups
        assert (group.verdict, group.declared, group.in_memory) == (verdict, False, False)
        assert "tie_word_embeddings to false" in group.reason


def test_albert_runs_one_layer_for_all(open_model):
    result = share(open_model("AlbertForMaskedLM"))
    assert [(module.name, module.uses) for module in result.reused_modules] == [
        ("albert.encoder.albert_layer_groups.0", 2)
    ]
    assert share(open_model("BertForMaskedLM")).reused_modules == ()


def test_reused_modules_of_a_plain_module():
    class Twice(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Sequential(nn.Linear(2, 2))
            self.once = nn.Linear(2, 2)

        def forward(self, x):
            return self.once(self.inner(self.inner(x)))

    assert reused_modules(Twice(), {"x": torch.ones(1, 2)}) == [("inner", 2)]


def test_folding_keeps_every_parameter_and_its_order(open_model):
    result = share(open_model("BertForPreTraining"))
    labels = result.rows["label"].tolist()
    assert labels[0] == "bert.embeddings.word_embeddings.weight"
    assert "bert.encoder.layer.[0–1]" in labels
    folded = result.rows.set_index("label")
    assert folded.loc["bert.encoder.layer.[0–1]", "tensors"] == 32
    assert folded.loc["bert.encoder.layer.[0–1]", "shape"] == ""
    assert sum(folded["tensors"]) == len(result.tensors)


def test_folding_nothing():
    import pandas as pd

    empty = pd.DataFrame({c: [] for c in ("name", "kind", "shape", "parameters", "nbytes", "group")})
    rows, row_of = fold_rows(empty)
    assert rows.empty
    assert row_of == []


@pytest.mark.parametrize("half", [torch.float16, torch.bfloat16])
def test_bytes_follow_the_stored_dtype(tmp_path, open_path, half):
    folder = save_checkpoint(random_model("BertForMaskedLM").to(half), tmp_path / "half")
    result = share(open_path(folder))
    assert result.unique_nbytes == 2 * result.unique_parameters
    assert set(result.tensors["dtype"]) == {str(half).removeprefix("torch.")}
