"""One pass over the stored numbers: what it finds, in every type, by pieces and by samples."""

from __future__ import annotations

import pytest
import torch
from safetensors.torch import load_file, save_file

from inspector.analyses.checks import compute_census
from inspector.analyses.checks.command.baseline import Earlier, compare
from inspector.analyses.checks.compute import check, choose_values
from inspector.analyses.checks.compute_census import NumberFacts, look, take_census
from inspector.analyses.checks.result import read_checks
from inspector.analyses.checks.words import reading
from inspector.errors import RequestError
from inspector.results.plain import to_json
from tests.conftest import silent
from tests.families import random_model, save_checkpoint

FLOATS8 = [getattr(torch, f"float8_{kind}") for kind in ("e4m3fn", "e5m2", "e4m3fnuz", "e5m2fnuz", "e8m0fnu")]
WHOLES = [torch.bool, torch.uint8, torch.int8, torch.uint16, torch.int16, torch.uint32, torch.int32, torch.uint64]
OTHERS = [torch.float16, torch.bfloat16, torch.float32, torch.float64]


@pytest.mark.parametrize("dtype", FLOATS8)
def test_every_code_of_every_float_of_eight_bits(dtype):
    for code in range(256):
        for beside in (0, 0x80, 1, 0x81, 0xFF):
            numbers = torch.tensor([beside, code, beside], dtype=torch.uint8).view(dtype)
            plain, found = numbers.float(), look(numbers)
            assert (found.nan, found.infinite) == (int(plain.isnan().sum()), int(plain.isinf().sum()))
            assert found.zero == (not plain.any())


@pytest.mark.parametrize("dtype", OTHERS)
@pytest.mark.parametrize("bad", [torch.nan, -torch.nan, torch.inf, -torch.inf])
def test_numbers_that_are_not_finite_are_counted(dtype, bad):
    numbers = torch.linspace(-1, 1, 1_001).to(dtype)
    assert look(numbers) == NumberFacts(zero=False, squares=look(numbers).squares)
    numbers[[17, 900]] = bad
    found = look(numbers)
    assert (found.nan, found.infinite) == ((2, 0) if bad != bad else (0, 2))  # noqa: PLR0124 - NaN is none of itself
    assert found.first == 17


@pytest.mark.parametrize("dtype", [*WHOLES, torch.int64, *OTHERS, torch.complex64])
def test_zeros_of_every_type(dtype):
    numbers = torch.zeros(100).to(dtype)
    assert look(numbers).zero
    numbers[99] = True
    assert not look(numbers).zero
    if dtype.is_floating_point:
        assert look(-torch.zeros(3).to(dtype)).zero


SQUARED = [*OTHERS, torch.complex64]
LONG = 300_007  # more than are added up at once
CLOSE = 1e-5  # relative error of a sum in float32


@pytest.mark.parametrize("dtype", SQUARED)
@pytest.mark.parametrize("size", [1e-45, 1e-40, 1e-30, 1e-20, 1e-7, 1.0, 6e4, 1e19, 1e25, 3e38, 1e100])
@pytest.mark.parametrize("count", [1, 1_000, LONG])
def test_squares_are_those_that_torch_adds_up_in_float64(dtype, size, count):
    """Subnormal numbers, and squares that are too small or too large for float32."""
    numbers = torch.rand(count, generator=torch.manual_seed(1), dtype=torch.float64).add(0.5).mul(size).to(dtype)
    numbers = numbers[torch.view_as_real(numbers).isfinite().all(dim=1) if dtype.is_complex else numbers.isfinite()]
    if not len(numbers):  # of float16 nothing is that large
        return
    expected = norm_of(numbers)
    found = look(numbers)
    assert found.squares**0.5 == pytest.approx(expected, rel=CLOSE, abs=0)
    assert (found.zero, found.nan, found.infinite) == (not bool((numbers != 0).any()), 0, 0)


def norm_of(numbers: torch.Tensor) -> float:
    wide = torch.complex128 if numbers.is_complex() else torch.float64
    return float(torch.linalg.vector_norm(numbers, dtype=wide))


@pytest.mark.parametrize("dtype", OTHERS)
def test_squares_are_of_the_numbers_that_are_finite(dtype):
    numbers = torch.randn(LONG, generator=torch.manual_seed(2)).to(dtype)
    finite = norm_of(numbers)
    numbers[[5, LONG - 3]] = 0
    expected = norm_of(numbers)
    numbers[5], numbers[LONG - 3] = torch.nan, -torch.inf
    found = look(numbers)
    assert found.squares**0.5 == pytest.approx(expected, rel=CLOSE)
    assert expected < finite
    assert (found.nan, found.infinite, found.first) == (1, 1, 5)


def test_a_stretch_of_zeros_is_no_tensor_of_zeros():
    numbers = torch.zeros(LONG, dtype=torch.bfloat16)
    numbers[-1] = 0.5
    assert look(numbers) == NumberFacts(zero=False, squares=0.25)
    numbers[-1] = -0.0
    assert look(numbers) == NumberFacts(zero=True)


@pytest.mark.parametrize("dtype", [*WHOLES, torch.int64, *FLOATS8])
def test_what_may_be_codes_is_not_squared(dtype):
    assert look(torch.ones(10).to(dtype)).squares == 0


def test_answers_are_the_same_with_any_number_of_threads(tmp_path, open_path):
    generator = torch.manual_seed(3)
    state = {f"model.{place}.weight": torch.randn(90, 70, generator=generator) for place in range(9)}
    state["model.4.weight"][11] = torch.nan
    state |= {f"model.{place}.half": torch.randn(70, 30, generator=generator).bfloat16() for place in range(9)}
    save_file(state, tmp_path / "model.safetensors")
    manifest = open_path(tmp_path).manifest
    scales = [each for each in manifest.tensors if each.name.endswith("half")]
    one, two, five, some = (
        take_census(manifest, silent, scales=scales, threads=threads, piece=10_000) for threads in (1, 2, 5, None)
    )
    assert one == two == five == some
    for each in one:
        numbers = state[each.tensor.name]
        finite = numbers[numbers.isfinite()].double()
        assert each.rms == pytest.approx(float(finite.square().mean().sqrt()), rel=1e-6)
        assert (each.zeros, each.negative) == (0, int((numbers < 0).sum()) if each.tensor in scales else 0)


def test_the_first_number_that_is_none_is_found_in_whichever_piece(tmp_path, open_path):
    state = {name: torch.randn(40, 50, generator=torch.manual_seed(5)) for name in ("model.a", "model.b", "model.c")}
    state["model.b"][31, 7] = state["model.b"][39, 49] = torch.inf
    save_file(state, tmp_path / "model.safetensors")
    told = []
    census = take_census(open_path(tmp_path).manifest, lambda share, text: told.append((share, text)), piece=256)
    found = {each.tensor.name: each for each in census}
    assert (found["model.b"].first, found["model.b"].infinite) == (31 * 50 + 7, 2)
    assert [each.read for each in census] == [2_000] * 3
    assert found["model.a"].first is found["model.c"].first is None
    assert told[-1] == (1.0, "Reading every number: 0.0 of 0.0 GB")


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float8_e4m3fn, torch.int64])
@pytest.mark.parametrize("piece", [8, 200, 1_000, 1 << 24])
def test_rows_of_one_number_are_counted_in_whichever_piece(tmp_path, open_path, dtype, piece):
    numbers = torch.arange(40 * 20).remainder(97).reshape(40, 20)
    numbers[3], numbers[4], numbers[39], numbers[17] = 0, 5, 7, 9
    numbers[17, 11] = 8  # but for one
    narrow = torch.ones(8, 4)  # whose rows may be equal by chance
    state = {"model.wide": numbers.to(dtype), "model.narrow": narrow, "model.vector": torch.ones(64)}
    save_file(state, tmp_path / "model.safetensors")
    census = take_census(open_path(tmp_path).manifest, silent, piece=piece)
    found = {each.tensor.name: each for each in census}
    row_nbytes = 20 * dtype.itemsize
    assert found["model.wide"].constant_rows == (3 if piece >= row_nbytes else 0)
    assert found["model.narrow"].constant_rows == found["model.vector"].constant_rows == 0
    assert found["model.wide"].read == 800


@pytest.mark.parametrize("values", ["all", "sample"])
def test_rows_of_one_number_are_said_and_no_alarm(bert, open_path, values):
    state = load_file(bert / "model.safetensors")
    name = "bert.encoder.layer.1.attention.output.dense.weight"
    state[name][5] = state[name][9] = 0.25
    save_file(state, bert / "model.safetensors", metadata={"format": "pt"})
    found = check(open_path(bert), progress=silent, values=values)
    zeros = next(each for each in found.checks if each.name == "Zero tensors")
    assert zeros.status == "ok"
    assert zeros.detail.endswith("1 matrix has rows of one number.")
    (piece,) = zeros.evidence
    assert (piece.subject, piece.problem, piece.count) == (name, "rows of one number", 2)
    assert (
        piece.detail
        == "2 of 32 rows hold the same number in every column: pruned, untrained, or filled with a constant."
    )


@pytest.fixture
def bert(tmp_path):
    return save_checkpoint(random_model("BertForMaskedLM"), tmp_path / "bert")


def test_without_values_headers_alone_decide(bert, open_path, monkeypatch):
    state = load_file(bert / "model.safetensors")
    state["bert.embeddings.LayerNorm.bias"][3] = torch.nan
    save_file(state | {"spare": torch.ones(2)}, bert / "model.safetensors", metadata={"format": "pt"})
    checkpoint = open_path(bert)
    whole = check(checkpoint, progress=silent)
    monkeypatch.setattr(compute_census, "stream", None)
    found = check(open_path(bert), progress=silent, values="none")
    assert (whole.values, found.values) == ("all", "none")
    assert reading(whole) == ""
    assert reading(found).startswith("Only headers were read")
    unread = {each.name for each in found.checks if not each.checked}
    assert unread == {
        "NaN and infinity", "Zero tensors", "Weight magnitudes", "Quantization scales", "Tokenizer and rows",
        "Zero rows", "Duplicated rows", "Under-trained tokens", "Padding",
    }  # fmt: skip
    by_name = {each.name: each for each in whole.checks}
    assert [each.name for each in found.checks] == list(by_name)
    assert all(each == by_name[each.name] for each in found.checks if each.checked)
    assert found.counts == {"ok": 17, "warn": 1, "fail": 0}
    assert by_name["NaN and infinity"].status == "fail"


def test_headers_are_looked_at_once_for_both_questions(bert, open_path, monkeypatch):
    checkpoint = open_path(bert)
    checkpoint.called = ("mine",)
    first = check(checkpoint, progress=silent, values="none")
    monkeypatch.setattr("inspector.analyses.checks.compute.check_files", None)
    assert check(checkpoint, progress=silent).checks[-1] == first.checks[-1]
    checkpoint.called = ("somebody else's",)  # whose name is in the sentences
    with pytest.raises(TypeError):
        check(checkpoint, progress=silent)


SAMPLED = 262_144  # numbers of float32 in the pages that are read of a large tensor


def test_a_sample_says_that_it_is_one(tmp_path, open_path):
    folder = save_checkpoint(random_model("BertForMaskedLM", intermediate_size=9_000), tmp_path / "wide")
    state = load_file(folder / "model.safetensors")
    name = "bert.encoder.layer.1.intermediate.dense.weight"
    state[name].zero_()
    save_file(state, folder / "model.safetensors", metadata={"format": "pt"})
    checkpoint = open_path(folder)
    found = check(checkpoint, progress=silent, values="sample")
    assert found.values == "sample"
    assert "Only a sample of the stored numbers was read" in reading(found)
    by_name = {each.name: each for each in found.checks}
    numbers = sum(tensor.numel() for tensor in state.values())
    read = sum(min(tensor.numel(), SAMPLED) for tensor in state.values())
    assert by_name["NaN and infinity"].detail.startswith(f"A sample of {read:,} of the {numbers:,} numbers of")
    (zero,) = by_name["Zero tensors"].evidence
    assert (zero.subject, zero.detail) == (name, "9,000 × 32, and every one of 262,144 numbers read is 0.")
    assert check(checkpoint, progress=silent, values="all").values == "all"


def test_numbers_are_read_in_full_unless_they_are_many(bert, open_path):
    checkpoint = open_path(bert)
    manifest = checkpoint.manifest
    gigabytes = sum(tensor.nbytes for tensor in manifest.tensors) / 1e9
    assert choose_values(manifest, "auto") == check(checkpoint, progress=silent).values == "all"
    assert choose_values(manifest, "auto", whole_gb=1.001 * gigabytes) == "all"
    assert choose_values(manifest, "auto", whole_gb=0.999 * gigabytes) == "sample"
    assert choose_values(manifest, "all", whole_gb=0) == "all"


def test_runs_that_read_other_numbers_are_not_compared(bert, open_path):
    found = check(open_path(bert), progress=silent, values="none")
    assert read_checks(to_json(found)) == found
    plain = to_json(found)
    known = {each["name"]: each for each in plain["checks"]}
    assert compare(found, Earlier("bert", "", "none", known)).changes == ()
    with pytest.raises(RequestError, match="add --values all, or write a new baseline"):
        compare(found, Earlier("bert", "", "all", known))
