"""ggml's blocks as numbers: a few codes with the scales that they share, a row of them after the other.

What transformers dequantizes (`transformers.integrations.gguf.dequant`) it does here, too. The rest follows
ggml-quants.c.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch

from inspector.store.readers.ggml import BLOCKS, SIZES

NUMBER_OF = {name: number for number, (name, *_) in BLOCKS.items()}
IQ4 = (-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113)  # ggml's kvalues_iq4nl


class _Codes(NamedTuple):
    """Where the codes of a block lie, and what they are."""

    spans: tuple[tuple[int, int, int], ...]  # first byte, one past the last, and its value where every code is 1
    levels: int  # different codes
    lowest: int = 0


# Blocks whose numbers lie at even steps for any scales: w = step · code + start.
EVEN: dict[str, _Codes] = {
    "Q4_0": _Codes(((2, 18, 0x11),), 16),
    "Q4_1": _Codes(((4, 20, 0x11),), 16),
    "Q5_0": _Codes(((2, 6, 0), (6, 22, 0x11)), 32),
    "Q5_1": _Codes(((4, 8, 0), (8, 24, 0x11)), 32),
    "Q8_0": _Codes(((2, 34, 1),), 256, -128),
    "Q2_K": _Codes(((16, 80, 0x55),), 4),
    "Q3_K": _Codes(((0, 32, 0), (32, 96, 0x55)), 8),
    "Q4_K": _Codes(((16, 144, 0x11),), 16),
    "Q5_K": _Codes(((16, 48, 0), (48, 176, 0x11)), 32),
    "Q6_K": _Codes(((0, 128, 0x11), (128, 192, 0)), 64),
    "Q8_K": _Codes(((4, 260, 1),), 256, -128),
}

# Where the scales of a block lie, in float16; Q8_K's is the one in float32.
SCALES: dict[str, tuple[int, ...]] = {
    "Q4_0": (0,),
    "Q4_1": (0, 2),
    "Q5_0": (0,),
    "Q5_1": (0, 2),
    "Q8_0": (0,),
    "Q2_K": (80, 82),
    "Q3_K": (108,),
    "Q4_K": (0, 2),
    "Q5_K": (0, 2),
    "Q6_K": (208,),
    "IQ4_NL": (0,),
    "IQ4_XS": (0,),
}


def scales_of(rows: torch.Tensor, block: str) -> torch.Tensor:
    """The scales of rows of blocks, (blocks, scales of each): a number is NaN or infinite exactly where one is."""
    blocks = rows.reshape(-1, SIZES[block][1])
    if block not in SCALES:
        return blocks[:, :4].contiguous().view(torch.float32)
    return torch.cat([_half(blocks, begin) for begin in SCALES[block]], dim=1)


def dequantize_blocks(rows: torch.Tensor, block: str) -> torch.Tensor:
    """What rows of blocks stand for.

    Args:
        rows: (rows, bytes of a row) in uint8.
        block: The type of the blocks.

    Returns:
        (rows, columns) in float32.
    """
    size, nbytes = SIZES[block]
    blocks, columns = rows.reshape(-1, nbytes), rows.shape[-1] // nbytes * size
    if own := _OWN.get(block):
        return own(blocks).view(len(rows), columns)
    from transformers.integrations.gguf.dequant import dequantize

    return dequantize(blocks, NUMBER_OF[block]).view(len(rows), columns)


def nearest_in_blocks(rows: torch.Tensor, block: str, numbers: torch.Tensor) -> torch.Tensor:
    """The numbers nearest to others that codes can say, with the scales as they are; both (rows, columns)."""
    if block not in EVEN:
        return _nearest_of_table(rows, block, numbers)
    codes = EVEN[block]
    start, one = (dequantize_blocks(_filled(rows, block, which), block) for which in (0, 1))
    step = one - start
    code = ((numbers - start) / step.where(step != 0, 1.0)).round()
    return code.clamp(codes.lowest, codes.lowest + codes.levels - 1) * step + start


def _filled(rows: torch.Tensor, block: str, code: int) -> torch.Tensor:
    """The same blocks with one code all over."""
    filled = rows.clone().view(-1, SIZES[block][1])
    for begin, end, byte in EVEN[block].spans:
        filled[:, begin:end] = code * byte
    return filled.view(rows.shape)


def _nearest_of_table(rows: torch.Tensor, block: str, numbers: torch.Tensor) -> torch.Tensor:
    """The same for codes that stand for the numbers of a table, times a scale."""
    filled = rows.clone().view(-1, SIZES[block][1])
    filled[:, -SIZES[block][0] // 2 :] = 0x88  # the code of 1 all over
    scale = dequantize_blocks(filled.view(rows.shape), block)
    table = torch.tensor(IQ4, dtype=torch.float32)
    place = torch.bucketize(numbers / scale.where(scale != 0, 1.0), (table[1:] + table[:-1]) / 2)
    return table[place] * scale


def _half(blocks: torch.Tensor, begin: int) -> torch.Tensor:
    return blocks[:, begin : begin + 2].contiguous().view(torch.float16).float()


def _five_bits(blocks: torch.Tensor) -> torch.Tensor:
    """Codes of five bits, (blocks, 32): four bytes of highest bits, then two halves a byte, the lower one first."""
    high = blocks[:, :4, None] >> torch.arange(8, dtype=torch.uint8) & 1
    low = torch.cat([blocks[:, 4:] & 15, blocks[:, 4:] >> 4], dim=1)
    return low | high.reshape(len(blocks), 32) << 4


def _q5_0(blocks: torch.Tensor) -> torch.Tensor:
    return _half(blocks, 0) * (_five_bits(blocks[:, 2:]).to(torch.int8) - 16)


def _q5_1(blocks: torch.Tensor) -> torch.Tensor:
    return _half(blocks, 0) * _five_bits(blocks[:, 4:]) + _half(blocks, 2)


def _q8_k(blocks: torch.Tensor) -> torch.Tensor:
    return blocks[:, :4].contiguous().view(torch.float32) * blocks[:, 4:260].contiguous().view(torch.int8)


_OWN: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {"Q5_0": _q5_0, "Q5_1": _q5_1, "Q8_K": _q8_k}
