"""Checks and training of checkpoints that store codes: no false alarm, every fault found."""

from __future__ import annotations

import math

import pytest
import torch
from transformers import BitsAndBytesConfig

from inspector.analyses.checks.compute import check
from inspector.analyses.training.compute import training
from inspector.analyses.what_if.compute import what_if
from tests.conftest import silent
from tests.families import save_checkpoint
from tests.models.quantized_files import (
    AUTO,
    BITS4,
    FINE_GRAINED,
    IN_GPTQ,
    WEIGHT,
    bert,
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
    assert set(found) == {"Zero tensors"}
    (evidence,) = found["Zero tensors"].evidence
    assert (evidence.subject, evidence.count) == (WEIGHT, bert().get_parameter(WEIGHT).numel())


def test_a_scale_that_is_nan_is_no_matter_of_training(stored):
    found = problems(stored(in_float8(scale=math.nan), quantization=FINE_GRAINED))
    assert set(found) == {"NaN and infinity"}
    numbers = found["NaN and infinity"]
    assert f"used to dequantize {WEIGHT}" in numbers.evidence[0].detail
    assert "quantize" in (numbers.next_step or "")
    assert "learning rate" not in (numbers.next_step or "")


def test_what_trains_says_that_codes_are_not_trained(stored, plain):
    def warned(checkpoint) -> list[bool]:
        plan = training(checkpoint, progress=silent)
        tried = what_if(checkpoint, progress=silent, change="clone", text="", steps=0)
        return ["no optimizer changes quantized weights" in " ".join(found.warnings) for found in (plan, tried)]

    coded = stored(in_float8(), quantization=FINE_GRAINED)
    assert warned(coded) == [True, True]
    assert warned(plain) == [False, False]
    assert training(coded, progress=silent).warnings[0].startswith("1 weight is stored as float8")
