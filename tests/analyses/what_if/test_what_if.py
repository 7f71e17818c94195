"""What becomes of ties, against transformers' own models, autograd and safetensors' own reading."""

from __future__ import annotations

import dataclasses
import hashlib
import math
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from torch import nn
from torch.func import functional_call

from inspector.analyses.what_if import compute_round_trip as round_trip
from inspector.analyses.what_if.compute import what_if
from inspector.analyses.what_if.compute_changes import NEW_ROWS, RECIPES
from inspector.analyses.what_if.compute_edges import find_pairs, relate
from inspector.analyses.what_if.compute_stepping import Lesson, prepare
from inspector.analyses.what_if.result import CHANGES, RELATIONS
from inspector.errors import RequestError
from inspector.models.checkpoint import StagedCheckpoint
from inspector.models.loading import load
from inspector.models.memory import count_once
from inspector.results.plain import to_json
from tests.conftest import silent
from tests.families import VOCAB, random_model, save_checkpoint

TEXT = "w1 w3 w5 w30 w2 w4 w9 w20"  # eight ordinary tokens: the first and the eighth are masked
RATE = 0.01
TIED = [
    "BertForPreTraining", "AlbertForMaskedLM", "GPT2LMHeadModel", "T5ForConditionalGeneration",
    "BartForConditionalGeneration",
]  # fmt: skip


def ask(checkpoint, change, *, text=TEXT, **options: Any) -> Any:
    options = {"learning_rate": RATE} | options
    return what_if(checkpoint, progress=silent, change=change, text=text, **options)


def truly_shared(model):
    """Names by their parameter's address, as torch itself gives it."""
    named = model.named_parameters(remove_duplicate=False)
    return {name: parameter.data_ptr() for name, parameter in named}


def lesson(checkpoint, architecture):
    """Inputs and labels of TEXT, put together by hand."""
    ids = torch.tensor([checkpoint.tokens.encode(TEXT).ids])
    inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    if not architecture.endswith(("MaskedLM", "PreTraining")):
        return inputs, ids
    places = torch.tensor([1, 8])  # after [CLS]
    labels = torch.full_like(ids, -100)
    labels[0, places] = ids[0, places]
    masked = ids.clone()
    masked[0, places] = checkpoint.tokens.role("mask")[1]
    return inputs | {"input_ids": masked}, labels


def loss_of(model, inputs, labels, leaves):
    output = functional_call(model, leaves, kwargs={**inputs, "labels": labels}, tie_weights=False)
    if output.loss is not None:
        return output.loss
    return nn.functional.cross_entropy(output.prediction_logits[0], labels[0])


@pytest.mark.parametrize("architecture", TIED)
@pytest.mark.parametrize("optimizer", ["sgd", "adamw"])
def test_one_step_is_the_one_computed_by_hand(open_model, architecture, optimizer):
    """Untied, the look-up and the output move by w - lr * g, or Adam's sign-like first step."""
    checkpoint = open_model(architecture)
    (way,) = ask(checkpoint, "untie", optimizer=optimizer).ways
    edge = next(e for e in way.edges if e.after == "equal copies" and e.name.endswith("weight"))
    model = random_model(architecture)
    inputs, labels = lesson(checkpoint, architecture)
    tied = model.get_parameter(edge.name)
    assert tied is model.get_parameter(edge.source)
    inside, outside = (tied.detach().clone().requires_grad_() for _ in range(2))
    leaves = {
        name: outside if name == edge.name else inside
        for name, parameter in model.named_parameters(remove_duplicate=False)
        if parameter is tied
    }
    loss = loss_of(model, inputs, labels, leaves)
    moved = []
    gradients = torch.autograd.grad(loss, (inside, outside))
    for leaf, gradient in zip((inside, outside), gradients, strict=True):
        step = gradient if optimizer == "sgd" else gradient / (gradient.abs() + 1e-8)
        moved.append((leaf - RATE * step).detach().double().flatten())
    apart = moved[1] - moved[0]
    assert way.training.loss == pytest.approx(loss.item(), rel=1e-5)
    assert way.training.loss_after < way.training.loss
    assert edge.drift.max_abs == 0
    assert edge.trained_drift.max_abs == pytest.approx(apart.abs().max().item(), rel=1e-3)
    assert edge.trained_drift.relative == pytest.approx((apart.norm() / moved[0].norm()).item(), rel=1e-3)
    assert edge.trained_drift.cosine == pytest.approx(nn.functional.cosine_similarity(*moved, dim=0).item(), abs=1e-6)


@pytest.mark.parametrize("architecture", TIED)
def test_tied_copies_cannot_drift(open_model, architecture):
    """The original's loss after a plain step is that of p - lr * p.grad, tensor by tensor."""
    checkpoint = open_model(architecture)
    original = ask(checkpoint, "untie", optimizer="sgd").original
    assert {edge.trained for edge in original.edges} == {"one tensor"}
    assert {edge.trained_drift.max_abs for edge in original.edges} == {0.0}
    model = random_model(architecture)
    inputs, labels = lesson(checkpoint, architecture)
    loss = loss_of(model, inputs, labels, {})
    loss.backward()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.grad is not None:
                parameter.sub_(RATE * parameter.grad)
        after = loss_of(model, inputs, labels, {})
    assert original.training.loss == pytest.approx(loss.item(), rel=1e-5)
    assert original.training.loss_after == pytest.approx(after.item(), rel=1e-4)


def test_every_family_starts_from_the_ties_that_torch_has(architecture):
    model = random_model(architecture)
    pairs, warnings = find_pairs(model, frozenset())
    relations = relate(model, pairs, frozenset())
    pointers = truly_shared(model)
    for name, source in pairs.items():
        assert (relations[name] == "one tensor") == (pointers[name] == pointers[source])
    by_pointer = {}
    for name, pointer in pointers.items():
        by_pointer.setdefault(pointer, set()).add(name)
    truth = [names for names in by_pointer.values() if len(names) > 1]
    joined = [{n, s} for n, s in pairs.items() if relations[n] == "one tensor"]
    assert set().union(*truth) == set().union(*joined)
    assert warnings == ()


@pytest.mark.parametrize("architecture", TIED)
@pytest.mark.parametrize("change", ["untie", "clone"])
def test_the_file_and_its_reload_are_transformers_own(open_model, tmp_path, architecture, change):
    (way,) = ask(open_model(architecture), change, steps=0).ways
    model = random_model(architecture)
    ties = dict(model.all_tied_weights_keys)
    output = model.get_output_embeddings()
    if change == "untie":
        model.config.tie_word_embeddings = False
        for key, parameter in list(output.named_parameters(recurse=False)):
            setattr(output, key, nn.Parameter(parameter.detach().clone()))
    else:
        for name in ties:
            module = model.get_submodule(name.rpartition(".")[0])
            parameter = getattr(module, name.rpartition(".")[2])
            setattr(module, name.rpartition(".")[2], nn.Parameter(parameter.detach().clone()))
    model.save_pretrained(tmp_path / "by-hand")
    file = tmp_path / "by-hand" / "model.safetensors"
    with safe_open(file, "pt") as saved:
        names = set(saved.keys())
    asked = {*ties, *ties.values()}
    assert {held.name for held in way.file.held} == names & asked
    assert set(way.file.lacking) == asked - names
    assert way.file.tensors == len(names)
    assert abs(way.file.nbytes - file.stat().st_size) < 64
    loaded, info = type(model).from_pretrained(tmp_path / "by-hand", output_loading_info=True)
    assert set(way.file.random) == set(info["missing_keys"])
    pointers = truly_shared(loaded)
    assert [edge.reloaded == "one tensor" for edge in way.edges] == [
        pointers[edge.name] == pointers[edge.source] for edge in way.edges
    ]
    assert way.unique_parameters == sum(p.numel() for p in model.parameters())
    assert way.nbytes == sum(p.nbytes for p in model.parameters())


def test_clones_are_tied_again_by_a_loader_until_they_are_trained(open_model):
    (way,) = ask(open_model("GPT2LMHeadModel"), "clone").ways
    (edge,) = way.edges
    assert (edge.before, edge.after, edge.reloaded) == ("one tensor", "equal copies", "one tensor")
    assert (edge.trained, edge.trained_reloaded) == ("different numbers", "different numbers")
    assert "tied once more, but not if saved after training" in way.answer


def test_untying_bart_leaves_a_file_that_random_numbers_would_complete(open_model):
    (way,) = ask(open_model("BartForConditionalGeneration"), "untie").ways
    lost = ("model.decoder.embed_tokens.weight", "model.encoder.embed_tokens.weight")
    assert way.file.random == lost
    assert {e.name for e in way.edges if e.reloaded == "random"} == set(lost)
    assert "random numbers" in way.answer


def test_a_bin_file_keeps_storage_identity_and_safetensors_one_name(open_model):
    safe, plain = ask(open_model("BertForMaskedLM"), "reload").ways
    matrix, bias = "cls.predictions.decoder.weight", "cls.predictions.decoder.bias"
    assert set(safe.file.lacking) == {matrix, bias}
    assert plain.file.lacking == ()
    storage = {held.name: held.storage for held in plain.file.held}
    assert storage[matrix] == storage["bert.embeddings.word_embeddings.weight"]
    assert storage[bias] == storage["cls.predictions.bias"]
    assert storage[matrix] != storage[bias]
    assert plain.file.tensors == safe.file.tensors + 2
    for way in (safe, plain):
        assert {edge.after for edge in way.edges} == {"one tensor"}
        assert way.training == ask(open_model("BertForMaskedLM"), "reload").original.training


@pytest.mark.parametrize("architecture", TIED)
def test_resizing_keeps_ties_and_replacing_one_matrix_breaks_them(open_model, architecture):
    whole, alone = ask(open_model(architecture), "resize").ways
    assert {edge.after for edge in whole.edges} == {edge.reloaded for edge in whole.edges}
    assert {edge.after for edge in whole.edges} == {"one tensor"}
    assert "another shape" in {edge.after for edge in alone.edges}
    assert alone.file.refused.endswith("sizes differ from those in config.json")
    model = random_model(architecture)
    model.resize_token_embeddings(VOCAB + NEW_ROWS)
    assert whole.unique_parameters == sum(p.numel() for p in model.parameters())


def test_new_rows_are_the_mean_of_the_old_and_not_random():
    for recipe in RECIPES["resize"]:
        model = random_model("BertForMaskedLM")
        old = model.bert.embeddings.word_embeddings.weight.detach().clone()
        recipe.apply(model, find_pairs(model, frozenset())[0])
        new = model.bert.embeddings.word_embeddings.weight
        assert torch.equal(new[:VOCAB], old)
        assert torch.allclose(new[VOCAB:], old.mean(dim=0).expand(NEW_ROWS, -1))


def test_casting_all_keeps_ties_and_casting_one_matrix_breaks_its_tie(open_model):
    result = ask(open_model("BertForMaskedLM"), "half")
    half, brain, alone = result.ways
    for way in (half, brain):
        assert {edge.after for edge in way.edges} == {"one tensor"}
        assert 2 * way.nbytes == result.unique_nbytes
        assert {held.dtype for held in way.file.held} <= {"float16", "bfloat16"}
    after = {edge.name: edge.after for edge in alone.edges}
    assert after == {"cls.predictions.decoder.weight": "another dtype", "cls.predictions.decoder.bias": "one tensor"}
    weight = random_model("BertForMaskedLM").bert.embeddings.word_embeddings.weight
    rounded = (weight.double() - weight.half().double()).abs().max().item()
    edge = next(e for e in alone.edges if e.after == "another dtype")
    assert edge.drift.max_abs == rounded
    assert alone.training is None
    assert "no longer runs" in alone.not_trained


def test_an_untied_model_is_asked_the_reverse(open_model):
    checkpoint = open_model("LlamaForCausalLM")
    result = ask(checkpoint, "untie")
    (way,) = result.ways
    (edge,) = way.edges
    assert not result.tied
    assert (edge.before, edge.after, edge.reloaded) == (
        "different numbers", "one tensor", "one tensor",
    )  # fmt: skip
    model = random_model("LlamaForCausalLM")
    (original,) = result.original.edges
    one, other = (w.detach() for w in (model.lm_head.weight, model.model.embed_tokens.weight))
    assert original.drift.max_abs == pytest.approx((one - other).abs().max().item())
    model.lm_head.weight = model.model.embed_tokens.weight
    ids = torch.tensor([checkpoint.tokens.encode(TEXT).ids])
    assert way.training.loss == pytest.approx(model(ids, labels=ids).loss.item(), rel=1e-5)
    assert way.unique_parameters == sum(p.numel() for p in model.parameters())
    clone = ask(checkpoint, "clone")
    assert clone.ways == ()
    assert clone.answer.startswith("There is nothing tied to clone")


@pytest.mark.parametrize("change", sorted(CHANGES))
def test_without_ties_there_is_nothing_to_do_and_no_loss(open_model, change):
    result = ask(open_model("BertModel"), change)
    assert (result.ways, result.original.edges, result.original.training) == ((), (), None)
    assert result.answer.startswith("There is no")
    assert "no language-model head" in result.original.not_trained
    assert result.table.empty


def test_nothing_is_trained_where_the_file_lacks_the_head(tmp_path, open_path):
    folder = save_checkpoint(random_model("BertForMaskedLM"), tmp_path / "lacking")
    tensors = load_file(folder / "model.safetensors")
    gone = [name for name in tensors if name.startswith("cls.")]
    save_file({n: t for n, t in tensors.items() if n not in gone}, folder / "model.safetensors")
    result = ask(open_path(folder), "untie")
    for way in (result.original, *result.ways):
        assert way.training is None
        assert "training does not start from random numbers" in way.not_trained
        assert [edge.name for edge in way.edges] == ["cls.predictions.decoder.weight"]
        assert all(edge.trained_drift is None for edge in way.edges)
    assert "cls.predictions.decoder.bias" in result.warnings[0]


def test_without_a_tokenizer_the_rest_is_answered(tmp_path, open_path):
    model = random_model("GPT2LMHeadModel")
    folder = save_checkpoint(model, tmp_path / "bare", tokenizer=False)
    (way,) = ask(open_path(folder), "untie").ways
    assert way.edges[0].after == "equal copies"
    assert way.training is None
    assert "no tokenizer" in way.not_trained


@pytest.mark.parametrize("change", sorted(CHANGES))
def test_nothing_is_changed_and_nothing_is_left(open_model, settings, change):
    """The loaded model, the mapped tensors and the file stay as they are; so does the disk."""
    checkpoint = open_model("GPT2LMHeadModel")
    loaded = load(checkpoint, "causal_lm", device="cpu").model
    before = {name: tensor.clone() for name, tensor in loaded.state_dict().items()}
    stored = {name: tensor.clone() for name, tensor in checkpoint.state.items()}
    (file,) = (f.path for f in checkpoint.manifest.files if f.format == "safetensors")
    digest = hashlib.sha256(Path(file).read_bytes()).hexdigest()
    result = ask(checkpoint, change)
    assert result.original.training is not None
    for name, tensor in loaded.state_dict().items():
        assert torch.equal(tensor, before[name])
    for name, tensor in checkpoint.state.items():
        assert torch.equal(tensor, stored[name])
    assert checkpoint.config.tie_word_embeddings
    assert hashlib.sha256(Path(file).read_bytes()).hexdigest() == digest
    assert list((settings.home / "temporary").iterdir()) == []
    again = ask(checkpoint, change)
    assert to_json(again) == to_json(result)


@pytest.mark.parametrize("half", [torch.bfloat16, torch.float16])
def test_a_half_file_is_saved_as_it_is_and_trained_in_float32(tmp_path, open_path, half):
    folder = save_checkpoint(random_model("GPT2LMHeadModel").to(half), tmp_path / "half")
    result = ask(open_path(folder), "untie")
    (way,) = result.ways
    assert {held.dtype for held in way.file.held} == {str(half).removeprefix("torch.")}
    assert way.nbytes == 2 * way.unique_parameters
    assert math.isfinite(way.training.loss_after)


@pytest.mark.parametrize("change", sorted(CHANGES))
def test_the_table_holds_every_edge_of_every_way(open_model, change):
    result = ask(open_model("BertForPreTraining"), change)
    ways = (result.original, *result.ways)
    assert len(result.table) == sum(len(way.edges) for way in ways)
    assert set(result.table["after"]) <= set(RELATIONS)
    assert result.table["way"].unique().tolist() == [way.title for way in ways]
    assert (result.vocab, result.d_model) == (VOCAB, 32)
    assert all(way.answer.endswith(".") for way in result.ways)
    assert "warnings" in to_json(result)


REFUSED = {
    "Change must be untie, clone, resize, half or reload, not 'melt'": {"change": "melt"},
    "Steps must be between 0 and 20, not 21": {"steps": 21},
    "Steps must be between 0 and 20, not -1": {"steps": -1},
    "Learning rate must be above 0 and at most 1, not 0": {"learning_rate": 0},
    "Learning rate must be above 0 and at most 1, not nan": {"learning_rate": math.nan},
    "Optimizer must be adamw or sgd, not 'lion'": {"optimizer": "lion"},
    "shorten it": {"text": "w1 " * 100},
    "no token to predict": {"text": "[unused0]"},
}


@pytest.mark.parametrize("sentence", REFUSED)
def test_refusals_are_one_sentence(open_model, sentence):
    options = {"change": "untie"} | REFUSED[sentence]
    with pytest.raises(RequestError, match=sentence.replace("[", r"\[")):
        ask(open_model("BertForMaskedLM"), **options)


def test_what_does_not_fit_is_refused_before_it_is_tried(open_model, monkeypatch):
    checkpoint = open_model("BertForMaskedLM")
    _, nbytes = count_once(dict(random_model("BertForMaskedLM").named_parameters()))
    small = dataclasses.replace(checkpoint.settings, worker_nbytes=5 * nbytes)
    monkeypatch.setattr(checkpoint, "settings", small)
    with pytest.raises(RequestError, match="ask for 0 training steps, or raise INSPECTOR_WORKER_MB"):
        ask(checkpoint, "untie")
    monkeypatch.setattr(checkpoint, "settings", dataclasses.replace(small, worker_nbytes=3_000_000, upload_nbytes=9))
    with pytest.raises(RequestError, match=r"As one \.bin file"):
        ask(checkpoint, "reload")
    full = round_trip.shutil.disk_usage("/")._replace(free=1000)
    monkeypatch.setattr(round_trip.shutil, "disk_usage", lambda _: full)
    with pytest.raises(RequestError, match="make room in the INSPECTOR_HOME folder"):
        ask(checkpoint, "untie")


@pytest.mark.parametrize("change", [change for change in CHANGES if change != "reload"])
@pytest.mark.parametrize("tied", [True, False])
def test_ties_of_a_model_whose_copies_do_not_fit_are_those_of_its_copies(open_model, architecture, change, tied):
    plain = open_model(architecture, tie_word_embeddings=tied)
    small = StagedCheckpoint(plain.manifest, settings=dataclasses.replace(plain.settings, worker_nbytes=1))
    found, whole = ask(small, change), ask(plain, change, steps=0)
    assert "nothing is saved or trained" in found.warnings[0]
    assert "raise INSPECTOR_WORKER_MB" in found.warnings[0]
    assert (found.tied, found.unique_parameters, found.unique_nbytes) == (
        whole.tied, whole.unique_parameters, whole.unique_nbytes
    )  # fmt: skip
    for one, other in zip((found.original, *found.ways), (whole.original, *whole.ways), strict=True):
        assert (one.title, one.unique_parameters, one.nbytes) == (other.title, other.unique_parameters, other.nbytes)
        assert [(edge.name, edge.source, edge.shape, edge.before, edge.after) for edge in one.edges] == [
            (edge.name, edge.source, edge.shape, edge.before, edge.after) for edge in other.edges
        ]
        assert one.file is None
        assert one.not_trained
    to_json(found)


def test_saving_needs_the_copies(open_model):
    plain = open_model("BertForMaskedLM")
    small = StagedCheckpoint(plain.manifest, settings=dataclasses.replace(plain.settings, worker_nbytes=1))
    with pytest.raises(RequestError, match=r"GB for copies of .* raise INSPECTOR_WORKER_MB"):
        ask(small, "reload")


def test_large_models_are_saved_in_shards(open_model, monkeypatch):
    checkpoint = open_model("GPT2LMHeadModel")
    monkeypatch.setattr(checkpoint, "settings", dataclasses.replace(checkpoint.settings, upload_nbytes=50_000))
    (way,) = ask(checkpoint, "untie").ways
    model = random_model("GPT2LMHeadModel")
    assert way.file.tensors == len(list(model.named_parameters(remove_duplicate=False)))
    assert {held.name for held in way.file.held} == {"lm_head.weight", "transformer.wte.weight"}
    assert way.file.nbytes > 50_000


def test_every_family_has_a_lesson(open_model, architecture):
    """Every seventh ordinary token masked, or every next token."""
    checkpoint = open_model(architecture)
    found = prepare(checkpoint, random_model(architecture), TEXT)
    inputs, labels = lesson(checkpoint, architecture)
    assert isinstance(found, Lesson)
    assert torch.equal(found.inputs["input_ids"], inputs["input_ids"])
    assert torch.equal(found.labels, labels)
    assert found.counted == (2 if "Masked" in architecture or "Pre" in architecture else 9)
