"""Round float64 to what files store, once: by way of float32, torch would round twice."""

from __future__ import annotations

import torch

# Half the distance between 1 and the next number.
UNIT = {torch.float64: 2.0**-53, torch.float32: 2.0**-24, torch.float16: 2.0**-11, torch.bfloat16: 2.0**-8}
SHORT = (torch.bfloat16, torch.float16)
NF4_BLOCK = 64
NF4 = (
    *(-1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453),
    *(-0.28444138169288635, -0.18477343022823334, -0.09105003625154495, 0.0),
    *(0.07958029955625534, 0.16093020141124725, 0.24611230194568634, 0.33791524171829224),
    *(0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1.0),
)


def rounded(numbers: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Round to the nearest number of a dtype, of two the even one; float64 again.

    Rounding to odd first (Boldo and Melquiond, 2008) keeps in the last bit of a float32 that something was cut off, so
    the second rounding cannot take it for a tie.
    """
    if dtype == torch.float64:
        return numbers
    nearest = numbers.to(torch.float32)
    if dtype == torch.float32:
        return nearest.double()
    off = numbers - nearest.double()
    even = (nearest.view(torch.int32) & 1) == 0
    toward = torch.where(off > 0, torch.inf, -torch.inf).to(torch.float32)
    odd = torch.where((off != 0) & even & nearest.isfinite(), torch.nextafter(nearest, toward), nearest)
    return odd.to(dtype).double()


def through_nf4(numbers: torch.Tensor) -> torch.Tensor:
    """Quantize rows to NF4 and back, as bitsandbytes does without its double quantization (Dettmers et al. 2023).

    Args:
        numbers: (rows, columns), columns a multiple of `NF4_BLOCK`: no block is in two rows.
    """
    table = torch.tensor(NF4)
    blocks = numbers.float().reshape(-1, NF4_BLOCK)
    largest = blocks.abs().amax(1, keepdim=True)
    shares = blocks / largest.where(largest != 0, 1.0)
    codes = torch.bucketize(shares.contiguous(), (table[1:] + table[:-1]) / 2)
    return (table[codes] * largest).double().reshape(numbers.shape)
