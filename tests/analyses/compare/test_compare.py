"""Comparisons against brute force over state dicts, and planted changes."""

from __future__ import annotations

import json
import math

import pytest
import torch
from safetensors.torch import load_file, save_file

from inspector.analyses.compare.compute import compare
from inspector.errors import RequestError
from inspector.results.plain import to_json
from tests.analyses.compare.compare_truth import BIAS, EMBEDDING, ask, by_name, truth
from tests.conftest import silent
from tests.families import ENCODER_DECODER, MODELS, WITHOUT_HEAD, random_model, save_checkpoint
from tests.sentences import TIES_NOT_COMPARED

EVERY = sorted(MODELS | WITHOUT_HEAD | ENCODER_DECODER)


@pytest.mark.parametrize("name", EVERY)
def test_every_number_is_that_of_the_state_dicts(name, tmp_path, open_path):
    folders = [save_checkpoint(random_model(name, seed=seed), tmp_path / str(seed)) for seed in (1, 2)]
    result = ask(*map(open_path, folders))
    first, second = (load_file(folder / "model.safetensors") for folder in folders)
    rows = by_name(result)
    assert set(rows) == set(first) == set(second)
    apart = squares = 0.0
    for tensor, row in rows.items():
        a, b = first[tensor], second[tensor]
        if not a.is_floating_point() or torch.equal(a, b):
            assert row["status"] == "equal"
            continue
        relative, cosine, largest = truth(a, b)
        assert row["status"] == "changed"
        assert row["relative_change"] == pytest.approx(relative, rel=1e-9)
        assert row["cosine"] == pytest.approx(cosine, abs=1e-9)
        assert row["max_abs"] == pytest.approx(largest, rel=1e-12)
        apart += (b.double() - a.double()).square().sum().item()
    squares = sum(a.double().square().sum().item() for a in first.values() if a.is_floating_point())
    assert result.overall["relative_change"] == pytest.approx(math.sqrt(apart / squares))
    assert result.ties_changed == ()
    assert result.ties_compared
    assert not result.same


@pytest.mark.parametrize("name", ["BertForMaskedLM", "GPT2LMHeadModel"])
def test_a_few_steps_of_training_move_what_they_trained(name, tmp_path, open_path):
    model = random_model(name)
    before = open_path(save_checkpoint(model, tmp_path / "before"))
    frozen = [p for n, p in model.named_parameters() if "norm" in n.lower() or "ln_" in n]
    for parameter in frozen:
        parameter.requires_grad_(False)
    ids = torch.tensor([[8, 9, 10, 11]])
    optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.05)
    for _ in range(3):
        optimizer.zero_grad()
        model(input_ids=ids, labels=ids).loss.backward()
        optimizer.step()
    after = open_path(save_checkpoint(model, tmp_path / "after"))
    result = ask(before, after)
    rows = by_name(result)
    assert frozen
    for tensor, row in rows.items():
        untrained = "norm" in tensor.lower() or "ln_" in tensor
        if untrained:
            assert row["status"] == "equal", tensor
    changed = [row for row in rows.values() if row["status"] == "changed"]
    assert changed
    a = load_file(tmp_path / "before" / "model.safetensors")
    b = load_file(tmp_path / "after" / "model.safetensors")
    assert {row["name"] for row in changed} == {n for n in a if not torch.equal(a[n], b[n])}
    largest = max(changed, key=lambda row: row["relative_change"])
    assert any(largest["name"] in sentence for sentence in result.summary)
    # Tied: the softmax pushes on every row, so every token moved, and the trained ones furthest.
    assert result.vocabulary.moved == 60
    trained = set(result.tokens_moved["token_id"].head(4).tolist())
    assert trained == {8, 9, 10, 11}


def test_equal_files_under_two_names_keep_both(open_model):
    checkpoint = open_model("BertForMaskedLM")
    checkpoint.called = ("ours", "theirs")
    result = ask(checkpoint, checkpoint)
    assert (result.same, result.name, result.other_name) == (True, "ours", "theirs")
    assert result.summary[0].startswith("ours and theirs are the same files, byte for byte")


def test_both_have_the_names_of_who_asks(open_model):
    first = open_model("BertForMaskedLM")
    second = open_model("GPT2LMHeadModel")
    first.called = ("ours", "theirs")
    result = ask(first, second)
    assert (result.name, result.other_name) == ("ours", "theirs")
    assert not any("LMHead" in sentence for sentence in result.summary)


def test_with_itself_it_says_so(open_model):
    checkpoint = open_model("BertForMaskedLM")
    result = ask(checkpoint, checkpoint)
    assert result.same
    assert result.summary[0].startswith("BertForMaskedLM is compared with itself")
    assert result.counts == {"equal": len(checkpoint.manifest.tensors)}
    assert set(result.tensors["relative_change"]) == {0.0}
    assert set(result.tensors["cosine"]) == {1.0}
    assert (result.overall["relative_change"], result.overall["cosine"]) == (0.0, 1.0)
    assert result.vocabulary.moved == len(result.tokens_moved) == 0
    assert len(result.tokens) == 60


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("backwards", [False, True])
def test_a_cast_copy_is_exactly_its_rounding(dtype, backwards, saved):
    model = random_model("LlamaForCausalLM")
    wide = saved(model, "wide")
    narrow = saved(model, "narrow", lambda t: {name: each.to(dtype) for name, each in t.items()})
    result = ask(narrow, wide) if backwards else ask(wide, narrow)
    assert result.counts == {"dtype changed": len(wide.manifest.tensors)}
    for name, row in by_name(result).items():
        a = wide.state[name]
        pair = (a.to(dtype), a) if backwards else (a, a.to(dtype))
        relative, cosine, largest = truth(*pair)
        assert row["relative_change"] == pytest.approx(relative, rel=1e-9)
        assert 0 < row["relative_change"] < 2**-7
        assert row["cosine"] == pytest.approx(cosine, abs=1e-12)
        assert row["max_abs"] == largest
        assert "exactly" in row["note"]


def test_widening_changes_no_number(saved):
    model = random_model("LlamaForCausalLM").to(torch.bfloat16)
    result = ask(saved(model, "a"), saved(model, "b", lambda t: {n: e.float() for n, e in t.items()}))
    assert set(result.tensors["note"]) == {"the same numbers, as float32"}
    assert set(result.tensors["relative_change"]) == {0.0}
    assert result.vocabulary.moved == 0


def test_a_cast_that_is_no_rounding_is_a_change(saved):
    model = random_model("LlamaForCausalLM")

    def shifted(tensors):
        return {name: (each + 0.25).to(torch.float16) for name, each in tensors.items()}

    result = ask(saved(model, "a"), saved(model, "b", shifted))
    assert result.counts == {"changed": len(result.tensors)}
    assert set(result.tensors["note"]) == {"and is float16 instead of float32"}


def test_numbers_that_are_none_are_counted_and_left_out(saved):
    model = random_model("BertForMaskedLM")

    def broken(tensors):
        tensors[EMBEDDING][3, 4] = math.nan
        tensors[EMBEDDING][5, 6] = math.inf
        tensors[BIAS][:] = math.nan
        return tensors

    first, second = (saved(model, "whole"), saved(random_model("BertForMaskedLM", seed=3), "b", broken))
    result = ask(first, second)
    row = by_name(result)[EMBEDDING]
    a, b = first.embedding_matrix(), second.embedding_matrix()
    keep = b.isfinite()
    relative, cosine, largest = truth(a[keep], b[keep])
    assert (row["not_finite"], row["other_not_finite"]) == (0, 2)
    assert row["relative_change"] == pytest.approx(relative, rel=1e-9)
    assert row["cosine"] == pytest.approx(cosine, abs=1e-9)
    assert row["max_abs"] == pytest.approx(largest)
    bias = by_name(result)[BIAS]
    assert (bias["status"], bias["other_not_finite"]) == ("changed", 60)
    assert all(math.isnan(bias[name]) for name in ("relative_change", "cosine", "max_abs"))
    (said,) = [each for each in result.warnings if "NaN" in each]
    assert said.startswith("b holds NaN or infinity in ")
    assert EMBEDDING in said
    assert BIAS in said
    assert result.vocabulary.not_finite == 2
    gone = result.tokens.loc[result.tokens["token_id"].isin([3, 5])]
    assert gone["distance"].isna().all()
    assert not {3, 5} & set(result.tokens_moved["token_id"])
    plain = json.dumps(to_json(result), allow_nan=False)
    assert "NaN" in plain
    same = ask(second, second)  # NaN in the same places: equal, and still named
    assert same.counts == {"equal": len(same.tensors)}
    assert "holds NaN" in " ".join(same.warnings)


def test_a_zero_tensor_has_neither_direction_nor_share(saved):
    def zeroed(tensors):
        tensors[BIAS] = torch.zeros(60)
        return tensors

    model = random_model("BertForMaskedLM")
    row = by_name(ask(saved(model, "zero", zeroed), saved(model, "whole")))[BIAS]
    assert row["status"] == "changed"
    assert math.isnan(row["relative_change"])
    assert math.isnan(row["cosine"])
    assert row["max_abs"] == model.cls.predictions.bias.abs().max().item()


@pytest.mark.parametrize(("factor", "told"), [(7_567.0, "756,600 %"), (1.5, "50 %"), (1 + 2**-13, "0.0122 %")])
def test_shares_are_told_in_digits(saved, factor, told):
    """A row that hardly existed before may grow by any number of times."""

    def scaled(tensors):
        tensors[BIAS] = tensors[BIAS] * factor
        return tensors

    model = random_model("BertForMaskedLM")
    said = " ".join(ask(saved(model, "before"), saved(model, "after", scaled)).summary)
    assert f"own length is {told}, in {BIAS}" in said


def test_what_cannot_be_read_as_floats_is_named(saved):
    model = random_model("BertForMaskedLM")
    dense = "bert.encoder.layer.0.output.dense.weight"
    query = "bert.encoder.layer.1.attention.self.query.weight"

    def quantised(tensors):
        tensors[dense] = tensors[dense].mul(10).to(torch.int8)
        tensors[query.removesuffix(".weight") + ".qweight"] = torch.zeros(4, 32, dtype=torch.int32)
        del tensors[query]
        return tensors

    whole, packed = saved(model, "a"), saved(model, "b", quantised)
    rows = by_name(ask(whole, packed))
    assert rows[dense]["status"] == "not compared"
    assert "int8" in rows[dense]["note"]
    assert rows[query]["status"] == "not compared"
    assert "qweight" in rows[query]["note"]
    assert math.isnan(rows[dense]["relative_change"])
    again = by_name(ask(packed, packed))
    assert again[dense]["status"] == "equal"

    def other_codes(tensors):
        tensors = quantised(tensors)
        tensors[dense][0, 0] += 1
        return tensors

    changed = by_name(ask(packed, saved(model, "c", other_codes)))[dense]
    assert (changed["status"], changed["note"]) == ("changed", "int8: compared for equality only")


def test_weights_alone_are_compared_without_ties(tmp_path, open_path):
    folder = save_checkpoint(random_model("BertForMaskedLM"), tmp_path / "a")
    file = folder / "model.safetensors"
    tensors = load_file(file)
    other = tmp_path / "other.safetensors"
    save_file({name: 2 * each for name, each in tensors.items()}, other)
    result = ask(open_path(file), open_path(other))
    assert result.counts == {"changed": len(tensors)}
    assert result.overall["relative_change"] == pytest.approx(1.0)
    assert not result.ties_compared
    assert any(each.startswith(TIES_NOT_COMPARED) for each in result.warnings)


def test_a_second_checkpoint_that_is_gone_is_one_sentence(open_model):
    checkpoint = open_model("BertForMaskedLM")
    with pytest.raises(RequestError) as refusal:
        compare(checkpoint, progress=silent, other="0" * 64)
    assert str(refusal.value) == (
        "The second checkpoint cannot be read. This checkpoint is no longer in the store: open it again."
    )
    with pytest.raises(RequestError, match="Tokens that moved most must be between 1 and 1,000, not 0"):
        ask(checkpoint, checkpoint, moved=0)
