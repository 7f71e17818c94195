"""Checks and training of checkpoints that store codes: no false alarm, every fault found."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import BitsAndBytesConfig

from inspector.analyses.checks import compute_numbers
from inspector.analyses.checks.compute import check
from inspector.analyses.checks.compute_census import take_census
from inspector.analyses.checks.words_numbers import NO_SCALES
from inspector.analyses.training.compute import training
from inspector.analyses.what_if.compute import what_if
from tests.conftest import silent
from tests.families import save_checkpoint
from tests.models.quantized_files import (
    AUTO,
    BITS4,
    FINE_GRAINED,
    IN_GPTQ,
    LAYER,
    WEIGHT,
    bert,
    by_bitsandbytes,
    in_float8,
    in_four_bits_by_gptq,
    problems,
    wide_model,
)


@pytest.mark.parametrize("architecture", ["BertForMaskedLM", "LlamaForCausalLM"])
@pytest.mark.parametrize(
    ("options", "dtype"),
    [(BITS4["double"], torch.bfloat16), (BITS4["nf4"], torch.float16),
     ({"load_in_8bit": True}, torch.float16)],
)  # fmt: skip
def test_no_false_alarm_of_bitsandbytes(tmp_path, open_path, architecture, options, dtype):
    """Scales are kept in float32 beside weights of half the width: that is as it should be."""
    whole = save_checkpoint(wide_model(architecture).to(dtype), tmp_path / "a")
    made = AUTO[architecture].from_pretrained(
        whole, quantization_config=BitsAndBytesConfig(**options), device_map="cpu", dtype=dtype
    )
    save_checkpoint(wide_model(architecture), tmp_path / "b")
    made.save_pretrained(tmp_path / "b")
    coded = open_path(tmp_path / "b")
    assert problems(coded) == {}
    (types,) = (each for each in check(coded, progress=silent).checks
                if each.name == "Number types")  # fmt: skip
    assert types.detail.startswith("Quantized: ")
    assert types.detail.endswith(f"; all others are stored as {str(dtype).removeprefix('torch.')}.")
    (codes,) = (each for each in types.evidence if each.problem == "codes")
    assert codes.count == len(coded.quantized)


@pytest.mark.parametrize(
    ("change", "said"),
    [(in_four_bits_by_gptq(zero=1), IN_GPTQ), (in_four_bits_by_gptq(zero=8), IN_GPTQ),
     (in_four_bits_by_gptq(zero=8, code=7), IN_GPTQ), (in_float8(), FINE_GRAINED)],
)  # fmt: skip
def test_no_false_alarm_of_other_codes(stored, change, said):
    """Zeros that are stored as 0, and codes that are all the same, are no weights of zero."""
    assert problems(stored(change, quantization=said)) == {}


@pytest.mark.parametrize(
    ("change", "said"),
    [(in_four_bits_by_gptq(zero=8, code=8), IN_GPTQ), (in_float8(number=0), FINE_GRAINED),
     (in_float8(scale=0.0), FINE_GRAINED)],
)  # fmt: skip
def test_codes_that_all_stand_for_zero_are_found(stored, change, said):
    found = problems(stored(change, quantization=said))
    assert set(found) - {"Quantization scales"} == {"Zero tensors"}
    (evidence,) = found["Zero tensors"].evidence
    assert (evidence.subject, evidence.count) == (WEIGHT, bert().get_parameter(WEIGHT).numel())


def scaled_by_nothing(weight: torch.Tensor) -> dict[str, torch.Tensor]:
    """Codes of float8, and a scale of 0 for each row."""
    return {WEIGHT: weight.sign().to(torch.float8_e4m3fn), f"{WEIGHT}_scale_inv": torch.zeros(len(weight), 1)}


@pytest.mark.parametrize(
    ("change", "read", "said"),
    [(in_float8(number=0), 2_048, "every weight"), (in_float8(scale=0.0), 2_048, "every weight"),
     (in_float8(number=0), 2_000, "every one of 2,000 codes read"),
     (scaled_by_nothing, 5, "every one of 5 scales read")],
)  # fmt: skip
def test_codes_times_scales_are_zero_with_either_and_are_not_opened(stored, monkeypatch, change, read, said):
    monkeypatch.setattr(compute_numbers, "open_codes", None)
    coded = stored(change, quantization=FINE_GRAINED)
    census = [replace(each, read=min(read, each.read)) for each in take_census(coded.manifest, silent)]
    evidence = compute_numbers.check_zero_tensors(census, coded).evidence
    assert [each.subject for each in evidence] == [WEIGHT]
    assert evidence[0].detail.startswith("64 × 32, float8_e4m3fn, ")
    assert evidence[0].detail.endswith(f", and {said} is 0.")


@pytest.mark.parametrize("number", [0, 1])
def test_a_weight_whose_codes_were_not_read_is_opened(stored, number):
    """A sample leaves out what lies in memory with gaps, as a pickle can."""
    coded = stored(in_float8(number=number), quantization=FINE_GRAINED)
    census = [each for each in take_census(coded.manifest, silent) if each.tensor.name != WEIGHT]
    evidence = compute_numbers.check_zero_tensors(census, coded).evidence
    assert [each.subject for each in evidence] == [WEIGHT] * (number == 0)


@pytest.mark.parametrize("values", ["all", "sample"])
def test_bytes_of_zero_that_stand_for_a_power_of_two_are_no_zeros(stored, values):
    def change(weight: torch.Tensor) -> dict[str, torch.Tensor]:
        bytes_of_zero = torch.zeros(1, 1, dtype=torch.uint8).view(torch.float8_e8m0fnu)
        return {WEIGHT: weight.sign().to(torch.float8_e4m3fn), f"{WEIGHT}_scale_inv": bytes_of_zero}

    checks = check(stored(change, quantization=FINE_GRAINED), progress=silent, values=values).checks
    assert [each.found for each in checks if each.name == "Zero tensors"] == [0]


def test_a_scale_that_is_nan_is_no_matter_of_training(stored):
    found = problems(stored(in_float8(scale=math.nan), quantization=FINE_GRAINED))
    assert set(found) == {"NaN and infinity"}
    numbers = found["NaN and infinity"]
    assert f"used to dequantize {WEIGHT}" in numbers.evidence[0].detail
    assert "quantize" in (numbers.next_step or "")
    assert "learning rate" not in (numbers.next_step or "")


def scales_of(checkpoint, values: str = "all"):
    checks = check(checkpoint, progress=silent, values=values).checks
    return next(each for each in checks if each.name == "Quantization scales")


def signed(scales: torch.Tensor) -> torch.Tensor:
    """Scales of which two are 0 and one is negative."""
    flat = scales.clone().reshape(-1)
    flat[[0, 5]], flat[7] = 0, -flat[7].abs()
    return flat.view_as(scales)


def in_int8(weight: torch.Tensor) -> dict[str, torch.Tensor]:
    """Bitsandbytes' LLM.int8."""
    largest = weight.abs().amax(dim=1)
    codes = (127 * weight / largest[:, None]).round().to(torch.int8)
    return {
        WEIGHT: codes,
        f"{LAYER}.SCB": signed(largest),
        f"{LAYER}.weight_format": torch.tensor(0, dtype=torch.uint8),
    }


def in_blocks(weight: torch.Tensor) -> dict[str, torch.Tensor]:
    """Float8 with a scale a row."""
    largest = weight.abs().amax(dim=1, keepdim=True) / 448
    return {WEIGHT: (weight / largest).to(torch.float8_e4m3fn), f"{WEIGHT}_scale": signed(largest)}


def in_gptq(weight: torch.Tensor) -> dict[str, torch.Tensor]:
    parts = in_four_bits_by_gptq(zero=8)(weight)
    return parts | {f"{LAYER}.scales": signed(parts[f"{LAYER}.scales"])}


def in_awq(weight: torch.Tensor) -> dict[str, torch.Tensor]:
    outputs, inputs = weight.shape
    words = torch.randint(-(2**31), 2**31 - 1, (inputs + 1, outputs // 8), dtype=torch.int32)
    scales = signed(torch.rand(1, outputs).half() + 0.1)
    return {f"{LAYER}.qweight": words[1:], f"{LAYER}.qzeros": words[:1], f"{LAYER}.scales": scales}


def in_nvfp4(weight: torch.Tensor) -> dict[str, torch.Tensor]:
    """ModelOpt's: a float8 for 16 numbers, and one number for all."""
    outputs, inputs = weight.shape
    codes = torch.randint(0, 256, (outputs, inputs // 2), dtype=torch.uint8)
    scales = signed(torch.rand(outputs, inputs // 16) + 1).to(torch.float8_e4m3fn)
    return {WEIGHT: codes, f"{WEIGHT}_scale": scales, f"{WEIGHT}_scale_2": torch.tensor(0.1)}


WAYS = {
    "int8": (in_int8, None), "float8": (in_blocks, None), "gptq": (in_gptq, IN_GPTQ),
    "awq": (in_awq, {"quant_method": "awq", "bits": 4}), "nvfp4": (in_nvfp4, {"quant_method": "modelopt"}),
}  # fmt: skip


@pytest.mark.parametrize("values", ["all", "sample"])
@pytest.mark.parametrize("way", WAYS)
def test_scales_that_are_zero_or_negative_are_counted(stored, way, values):
    change, said = WAYS[way]
    coded = stored(change, quantization=said)
    assert WEIGHT in coded.quantized
    found = scales_of(coded, values)
    name = coded.quantized[WEIGHT].parts["scale"].name
    assert [(each.subject, each.problem, each.severity, each.count) for each in found.evidence] == [
        (name, "scales of 0", "minor", 2), (name, "negative scales", "note", 1),
    ]  # fmt: skip
    assert found.status == "warn"
    assert found.detail.endswith("scales in 1 tensor of quantized weights: 2 are 0 and 1 is negative.")
    assert f"used to dequantize {WEIGHT}" in found.evidence[0].detail


def test_blocks_of_bitsandbytes_have_scales_too(tmp_path, open_path):
    whole = save_checkpoint(wide_model("BertForMaskedLM"), tmp_path / "a")
    by_bitsandbytes(whole, "BertForMaskedLM", **BITS4["nf4"]).save_pretrained(tmp_path / "a")
    file = tmp_path / "a" / "model.safetensors"
    state = load_file(file)
    name = f"{WEIGHT}.absmax"
    assert scales_of(open_path(tmp_path / "a")).severity == "none"
    save_file(state | {name: signed(state[name])}, file, metadata={"format": "pt"})
    found = scales_of(open_path(tmp_path / "a"))
    assert [(each.subject, each.count) for each in found.evidence] == [(name, 2), (name, 1)]


def test_mlx_writes_negative_scales_and_zeros_leave_the_bias(stored):
    def change(weight):
        outputs, inputs = weight.shape
        words = torch.randint(-(2**31), 2**31 - 1, (outputs, inputs // 8), dtype=torch.int32).view(torch.uint32)
        scales = signed(torch.rand(outputs, 1) + 1)
        return {WEIGHT: words, f"{LAYER}.scales": scales, f"{LAYER}.biases": torch.ones(outputs, 1)}

    coded = stored(change, quantization={"group_size": 32, "bits": 4})
    assert coded.quantized[WEIGHT].kind == "affine"
    (zeros,) = scales_of(coded).evidence
    assert (zeros.problem, zeros.count) == ("scales of 0", 2)
    assert zeros.detail.endswith("all numbers of a group equal its bias.")


def test_powers_of_two_have_no_zero(stored, plain):
    def change(weight):
        outputs, inputs = weight.shape
        codes = torch.randint(0, 256, (outputs, inputs // 2), dtype=torch.uint8)
        return {f"{LAYER}.weight_packed": codes, f"{LAYER}.weight_scale": torch.zeros(outputs, inputs // 32).byte()}

    coded = stored(change, quantization={"quant_method": "compressed-tensors"})
    assert coded.quantized[WEIGHT].scheme.startswith("MXFP4")
    for checkpoint in (coded, plain):
        found = scales_of(checkpoint)
        assert (found.severity, found.detail) == ("none", NO_SCALES)
    assert not scales_of(plain, "none").checked


def test_what_trains_says_that_codes_are_not_trained(stored, plain):
    def warned(checkpoint) -> list[bool]:
        plan = training(checkpoint, progress=silent)
        tried = what_if(checkpoint, progress=silent, change="clone", text="", steps=0)
        return ["no optimizer changes quantized weights" in " ".join(found.warnings) for found in (plan, tried)]

    coded = stored(in_float8(), quantization=FINE_GRAINED)
    assert warned(coded) == [True, True]
    assert warned(plain) == [False, False]
    assert training(coded, progress=silent).warnings[0].startswith("1 weight is stored as float8")
