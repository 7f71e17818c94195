"""Rounding once, held against exact arithmetic and against the libraries that made the numbers."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import torch
from bitsandbytes.functional import dequantize_4bit, quantize_4bit

from inspector.models.adapters.rounding import rounded, through_nf4


def numbers() -> torch.Tensor:
    """Ordinary numbers, ties of either dtype, and ties that are off by less than a float32 can tell."""
    generator = torch.Generator().manual_seed(0)
    ordinary = torch.randn(4000, generator=generator, dtype=torch.float64)
    ties = torch.cat([1 + (2 * torch.arange(64).double() + 1) * 2.0**-exponent for exponent in (8, 9, 11, 12)])
    near = torch.cat([ties * (1 + side * 2.0**-40) for side in (-1, 1)])
    return torch.cat([ordinary, ordinary * 1e-6, ties, near, -near, torch.zeros(1, dtype=torch.float64)])


def nearest_bfloat16(number: float) -> float:
    """The nearest number of 8 significant bits, of two the even one; by fractions."""
    if number == 0:
        return number
    exact = Fraction(number)
    exponent = int(np.frexp(number)[1]) - 8
    return float(Fraction(round(exact / Fraction(2) ** exponent)) * Fraction(2) ** exponent)


def test_bfloat16_is_rounded_once():
    exact = [nearest_bfloat16(number) for number in numbers().tolist()]
    assert rounded(numbers(), torch.bfloat16).tolist() == exact
    assert numbers().to(torch.bfloat16).double().tolist() != exact  # which torch's own rounds twice


def test_float16_is_rounded_once():
    exact = numbers().numpy().astype(np.float16).astype(np.float64)  # NumPy rounds it in one step
    assert rounded(numbers(), torch.float16).tolist() == exact.tolist()


@pytest.mark.parametrize("rows", [1, 5])
def test_nf4_is_what_bitsandbytes_makes(rows):
    weight = torch.randn(rows, 192, generator=torch.Generator().manual_seed(rows))
    weight[0, :64] = 0
    made = dequantize_4bit(*quantize_4bit(weight, blocksize=64, quant_type="nf4"))
    assert torch.equal(through_nf4(weight.double()).float(), made)
