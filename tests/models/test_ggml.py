"""Blocks of GGUF files are the numbers that gguf makes of them, to the bit."""

from __future__ import annotations

from pathlib import Path

import gguf
import numpy as np
import pytest
import torch
from gguf import GGMLQuantizationType

from inspector.models.quantized.codes import read_quantized
from inspector.models.quantized.ggml import EVEN, dequantize_blocks, nearest_in_blocks
from inspector.models.tensors import StoredReader
from inspector.store.readers.ggml import READ, SIZES
from tests.gguf_files import random_blocks, write_gguf

OLD = sorted(READ - {"Q8_K"})  # gguf itself has no Q8_K, which llama.cpp keeps for sums


@pytest.mark.parametrize("kind", OLD)
def test_blocks_stand_for_what_gguf_says(kind):
    rows = random_blocks(kind, 300, 512)
    truth = torch.from_numpy(gguf.quants.dequantize(rows, GGMLQuantizationType[kind]))
    found = dequantize_blocks(torch.from_numpy(rows), kind)
    assert torch.equal(found.view(torch.int32), truth.view(torch.int32))


def test_q8_k_by_hand():
    """A scale in float32, and 256 codes of eight bits; sixteen sums after them change nothing."""
    codes = np.arange(-128, 128, dtype=np.int8)
    block = np.concatenate(
        [np.array([0.5], np.float32).view(np.uint8), codes.view(np.uint8), np.full(32, 255, np.uint8)]
    )
    assert dequantize_blocks(torch.from_numpy(block)[None], "Q8_K")[0].tolist() == (codes * 0.5).tolist()


@pytest.mark.parametrize("kind", sorted(READ))
def test_the_nearest_number_is_the_nearest_of_all_codes(kind):
    """By trying each code in each place."""
    rows = torch.from_numpy(random_blocks(kind, 8, 512, seed=1))
    numbers = dequantize_blocks(rows, kind)
    sought = numbers + torch.randn(numbers.shape, generator=torch.manual_seed(0)) * numbers.std()
    near = nearest_in_blocks(rows, kind, sought)
    torch.testing.assert_close(nearest_in_blocks(rows, kind, numbers), numbers, rtol=1e-4, atol=1e-5)
    assert ((near - sought).abs() <= (numbers - sought).abs() * (1 + 1e-5) + 1e-6).all()
    if kind in ("Q4_0", "Q4_1", "Q4_K", "IQ4_NL"):  # two codes a byte, of all bytes the same
        begin = EVEN[kind].spans[0][0] if kind in EVEN else 2
        each = []
        for code in range(16):
            filled = rows.clone().view(-1, SIZES[kind][1])
            filled[:, begin:] = 17 * code
            each.append((dequantize_blocks(filled.view(rows.shape), kind) - sought).abs())
        torch.testing.assert_close((near - sought).abs(), torch.stack(each).amin(0), rtol=1e-4, atol=1e-5)


def test_a_file_of_every_type_is_read(tmp_path, open_path):
    """Through the store, as every question reads."""
    tensors = {f"blk.0.{kind}.weight": random_blocks(kind, 5, 512) for kind in OLD}
    plain = np.arange(12, dtype=np.float32).reshape(3, 4)
    path: Path = tmp_path / "model.gguf"
    write_gguf(path, {**tensors, "plain.weight": plain}, blocks={name: name.split(".")[2] for name in tensors})
    checkpoint = open_path(path)
    assert {name: tuple(each.shape) for name, each in checkpoint.state.items()} == {
        **dict.fromkeys(tensors, (5, 512)), "plain.weight": (3, 4),
    }  # fmt: skip
    for name, rows in tensors.items():
        truth = gguf.quants.dequantize(rows, GGMLQuantizationType[name.split(".")[2]])
        assert np.array_equal(checkpoint.state[name].numpy(), truth)
        coded = checkpoint.quantized[name]
        assert torch.equal(read_quantized(StoredReader(checkpoint.manifest), coded), torch.from_numpy(truth))
