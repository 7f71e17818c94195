"""How large weights are: their root mean squares by pattern of names, and matrices unlike their siblings."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest
import torch
from safetensors.torch import load_file, save_file

from inspector.analyses.checks.compute import check
from inspector.analyses.checks.compute_census import Census
from inspector.analyses.checks.compute_magnitudes import MOST, find_siblings, list_norms
from inspector.analyses.checks.frames import norm_frame
from inspector.analyses.checks.request import CheckRequest
from inspector.analyses.checks.result import read_checks
from inspector.analyses.checks.view import view
from inspector.analyses.checks.words_magnitudes import table
from inspector.results.plain import to_json
from inspector.store.manifests.columns import TensorInfo
from tests.conftest import silent
from tests.families import random_model, save_checkpoint
from tests.models.quantized_files import WEIGHT, in_float8
from tools.bench._sparse import DEEPSEEK_V3, tensors_of

QUERY = "bert.encoder.layer.{}.attention.self.query.weight"


@pytest.fixture
def deep(tmp_path):
    """Six layers, so that each matrix has siblings."""
    return save_checkpoint(random_model("BertForMaskedLM", num_hidden_layers=6), tmp_path / "bert")


def changed(folder, **tensors):
    file = folder / "model.safetensors"
    state = load_file(file)
    save_file(state | {name: change(state[name]) for name, change in tensors.items()}, file, metadata={"format": "pt"})
    return state


def magnitudes(found):
    return next(each for each in found.checks if each.name == "Weight magnitudes")


@pytest.mark.parametrize("values", ["all", "sample"])
def test_norms_are_those_of_torch(deep, open_path, values):
    state = load_file(deep / "model.safetensors")
    found = check(open_path(deep), progress=silent, values=values)
    matrices = {name for name, tensor in state.items() if tensor.dim() > 1 and "position_ids" not in name}
    assert sum(row.tensors for row in found.norms) == len(matrices)
    (row,) = (each for each in found.norms if "query" in each.pattern)
    rms = {
        name: float(torch.linalg.vector_norm(state[name], dtype=torch.float64) / state[name].numel() ** 0.5)
        for name in map(QUERY.format, range(6))
    }
    ordered = sorted(rms, key=lambda name: rms[name])
    assert row.pattern == QUERY.format("[0–5]")
    assert (row.tensors, row.shape, row.lowest_tensor, row.highest_tensor) == (6, (32, 32), ordered[0], ordered[-1])
    assert [row.lowest_rms, row.highest_rms] == pytest.approx([rms[ordered[0]], rms[ordered[-1]]], rel=1e-5)
    assert row.median_rms == pytest.approx((rms[ordered[2]] + rms[ordered[3]]) / 2, rel=1e-5)
    assert table(found).endswith("Only a sample of the numbers was read.") == (values == "sample")


@pytest.mark.parametrize("values", ["all", "sample"])
@pytest.mark.parametrize(("factor", "problem"), [(10, "larger than its siblings"), (0.1, "smaller than its siblings")])
def test_a_matrix_that_was_scaled_is_a_note(deep, open_path, factor, problem, values):
    assert magnitudes(check(open_path(deep), progress=silent, values=values)).evidence == ()
    name = QUERY.format(3)
    changed(deep, **{name: lambda weight: weight * factor})
    found = magnitudes(check(open_path(deep), progress=silent, values=values))
    (piece,) = found.evidence
    assert (piece.subject, piece.problem, piece.severity) == (name, problem, "note")
    assert (found.status, found.severity) == ("ok", "note")
    assert "with this name pattern and shape" in piece.detail
    assert f"(such as {name})" not in found.detail
    assert f"({name})" in found.detail
    assert found.detail.endswith("Only a sample of the numbers was read.") == (values == "sample")


def test_what_has_few_siblings_or_is_zero_is_not_compared(tmp_path, deep, open_path):
    few = save_checkpoint(random_model("BertForMaskedLM", num_hidden_layers=3), tmp_path / "few")
    changed(few, **{QUERY.format(1): lambda weight: weight * 100})
    found = check(open_path(few), progress=silent)
    assert (magnitudes(found).checked, magnitudes(found).status) == (False, "ok")
    assert max(row.highest_rms / row.median_rms for row in found.norms) > 50
    changed(deep, **{QUERY.format(1): torch.zeros_like})
    assert magnitudes(check(open_path(deep), progress=silent)).evidence == ()  # it is among the zero tensors


@pytest.mark.parametrize("exponent", [-200, -160, 160])
def test_numbers_whose_squares_no_float_holds_are_answered(deep, open_path, exponent):
    """1e-200 is not 0, but its square is; the square of 1e160 is infinite."""
    name = QUERY.format(2)
    changed(deep, **{name: lambda weight: torch.full(weight.shape, 10.0**exponent, dtype=torch.float64)})
    found = check(open_path(deep), progress=silent)
    (row,) = (each for each in found.norms if "query" in each.pattern)
    pieces = {piece.subject: piece.detail for piece in magnitudes(found).evidence}
    if exponent > 0:
        assert (row.tensors, pieces) == (5, {})
    else:
        assert (row.tensors, row.lowest_tensor) == (6, name)
        assert pieces.keys() == {name}
        assert pieces[name].startswith("RMS 0: 0 times" if exponent == -200 else "RMS 1e-160: 1/")


def test_numbers_that_are_not_finite_do_not_count(deep, open_path):
    def spoil(weight):
        weight[0, 0], weight[1] = torch.inf, torch.nan
        return weight

    state = changed(deep, **{QUERY.format(0): spoil, QUERY.format(1): lambda weight: weight * torch.nan})
    found = check(open_path(deep), progress=silent)
    (row,) = (each for each in found.norms if "query" in each.pattern)
    assert row.tensors == 5
    assert row.pattern == QUERY.format("[0…5]")
    finite = state[QUERY.format(0)][state[QUERY.format(0)].isfinite()]
    assert row.lowest_rms <= float(finite.square().mean().sqrt()) * 1.001
    assert "warnings" not in to_json(found)


def test_without_numbers_there_is_no_table(deep, open_path):
    found = check(open_path(deep), progress=silent, values="none")
    assert found.norms == ()
    assert not magnitudes(found).checked


def test_each_matrix_is_measured_as_its_pattern_is(deep, open_path):
    checkpoint = open_path(deep)
    found = check(checkpoint, progress=silent)
    rms = dict(zip(checkpoint.manifest.tensors.names, found.rms, strict=True))
    for row in found.norms:
        assert (rms[row.lowest_tensor], rms[row.highest_tensor]) == (row.lowest_rms, row.highest_rms)
    assert sum(map(math.isfinite, rms.values())) == sum(row.tensors for row in found.norms)
    assert check(checkpoint, progress=silent, values="none").rms == ()


def test_quantized_weights_have_no_norm(stored):
    found = check(stored(in_float8()), progress=silent)
    listed = {row.lowest_tensor for row in found.norms} | {row.highest_tensor for row in found.norms}
    assert listed
    assert not {name for name in listed if name.startswith(WEIGHT)}


def test_norms_survive_json_and_are_in_the_report(deep, open_path):
    found = check(open_path(deep), progress=silent)
    plain = json.loads(json.dumps(to_json(found), allow_nan=False))
    assert read_checks(plain) == replace(found, measured=b"")  # for pages alone
    assert set(plain["norms"][0]) == {
        "pattern", "shape", "tensors", "lowest_rms", "median_rms", "highest_rms", "lowest_tensor", "highest_tensor",
    }  # fmt: skip
    del plain["norms"]  # of an earlier version
    assert read_checks(plain).norms == ()
    (norms,) = (each for each in view(found, CheckRequest(), name="x").tables if each.name == "norms")
    assert norms.frame.equals(norm_frame(found.norms))
    assert norms.frame["shape"].iloc[0] == "64 × 32"


def counted(name: str, shape: tuple[int, ...]) -> Census:
    numbers = shape[0] * shape[-1]
    info = TensorInfo(name, "bfloat16", shape, (shape[-1], 1), "a.safetensors", 0, 2 * numbers, name, 2 * numbers)
    return Census(info, read=numbers, squares=float(numbers), zero=False)


def test_ninety_thousand_names_are_a_few_rows():
    """As if DeepSeek-V3 were stored in bfloat16."""
    named = [(name, shape) for name, _, shape in tensors_of(DEEPSEEK_V3) if len(shape) > 1]
    census = [counted(name, shape) for name, shape in named]
    assert len(census) > 90_000
    rows = list_norms(find_siblings(census, ()))
    assert len(rows) < 60
    assert sum(row.tensors for row in rows) == len(census)


def test_of_very_many_patterns_the_largest_are_listed():
    census = [counted(f"w{place}.weight", (2 + place % 7, 8)) for place in range(2 * MOST)]
    rows = list_norms(find_siblings(census, ()))
    assert len(rows) == MOST
    listed = {row.pattern for row in rows}
    assert {f"w{place}.weight" for place in range(2 * MOST) if place % 7 > 3} <= listed
    assert [row.pattern for row in rows] == [each.tensor.name for each in census if each.tensor.name in listed]
