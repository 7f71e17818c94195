"""Codes that were written by hand, bit by bit, and parts that contradict each other."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import save_file
from transformers.integrations.finegrained_fp8 import _dequantize_fp8_weight

from inspector.models.quantized.codes import OPENERS, read_quantized, unpack
from inspector.models.quantized.layout import Quantized, find_quantized
from inspector.models.tensors import StoredReader
from inspector.store.manifests.manifest import FileInfo, Manifest
from inspector.store.readers.safetensors import read_safetensors
from tests.models.quantized_files import words_of


@pytest.mark.parametrize("bits", range(1, 9))
def test_unpack_bit_by_bit(bits):
    torch.manual_seed(bits)
    codes = torch.randint(0, 2**bits, (5, 37))
    words = torch.tensor([words_of(row, bits) for row in codes.tolist()], dtype=torch.int32)
    assert unpack(words, bits, 37).tolist() == codes.tolist()


def test_every_float_of_4_bits():
    """All 16 codes in either half of a byte, by hand, with a scale of each kind."""
    codes = torch.arange(256, dtype=torch.uint8).reshape(16, 16)
    magnitudes = [0, 0.5, 1, 1.5, 2, 3, 4, 6]
    table = [*magnitudes, *(-each for each in magnitudes)]
    truth = torch.tensor([[table[half] for byte in row for half in (byte % 16, byte // 16)]
                          for row in codes.tolist()])  # fmt: skip
    powers = torch.arange(120, 136, dtype=torch.uint8)[:, None]
    for parts, how, size in (
        ({"scale": powers}, "", [2.0 ** (each - 127) for each in range(120, 136)]),
        ({"scale": powers.view(torch.float8_e8m0fnu)}, "",
         [2.0 ** (each - 127) for each in range(120, 136)]),
        ({"scale": torch.full((16, 2), 1.5).to(torch.float8_e4m3fn), "whole": torch.tensor([4.0])},
         "divide", [1.5 / 4] * 16),
        ({"scale": torch.full((16, 2), 1.5).to(torch.float8_e4m3fn), "whole": torch.tensor(4.0)},
         "multiply", [1.5 * 4] * 16),
    ):  # fmt: skip
        group = 32 // parts["scale"].shape[1]
        held = Quantized("w", (16, 32), "float32", "float4", "", {}, {"group": group, "how": how})
        opened = OPENERS["float4"]({"codes": codes, **parts}, held)
        assert torch.equal(opened.rows(slice(0, 16)), truth * torch.tensor(size)[:, None])
        assert torch.equal(opened.rows(slice(3, 5)), opened.rows(slice(0, 16))[3:5])
        best = opened.nearest(slice(0, 16), opened.rows(slice(0, 16)) * 1.01)
        assert torch.equal(best, opened.rows(slice(0, 16)))


def test_experts_in_float8():
    """Three axes: the experts in front, each with blocks of its own."""
    from inspector.models.quantized.formats import Codes, scaled
    from inspector.store.manifests.columns import TensorInfo, Tensors
    from inspector.store.manifests.manifest import Manifest

    codes = torch.randn(3, 20, 32).to(torch.float8_e4m3fn)
    scale = torch.rand(3, 3, 2)
    infos = {
        name: TensorInfo(name, dtype, tuple(t.shape), (), "", 0, 0, "", 0)
        for name, t, dtype in (
            ("w", codes, "float8_e4m3fn"), ("w_scale_inv", scale, "float32"),
        )
    }  # fmt: skip
    manifest = Manifest("", "", "", Path(), (), Tensors.of(()), {}, None, (), {"weight_block_size": [8, 16]})
    found: Codes = scaled("w", infos, manifest)
    held = Quantized("w", found.shape, "float32", found.kind, "", {}, found.options)
    opened = OPENERS["scaled"]({"codes": codes, "scale": scale}, held)
    truth = _dequantize_fp8_weight(codes, scale, [8, 16], torch.float32)
    parts = [opened.rows(slice(0, 7)), opened.rows(slice(7, 60))]
    torch.testing.assert_close(torch.cat(parts).view(3, 20, 32), truth, rtol=0, atol=0)


def sound(kind: str) -> dict[str, torch.Tensor]:
    """The parts of a weight of (64, 32), as they should be."""
    state = {"shape": [64, 32], "blocksize": 64, "nested_blocksize": 16, "nested_offset": 0.5}
    words = torch.zeros(64, 32, dtype=torch.int32)
    return {
        "gptq": {"w.qweight": words[:4].T[:4].repeat(1, 16), "w.qzeros": words[:2, :8],
                 "w.scales": torch.ones(2, 64), "w.g_idx": words[0]},
        "awq": {"w.qweight": words[:32, :8], "w.qzeros": words[:2, :8],
                "w.scales": torch.ones(2, 64)},
        "packed": {"w.weight_packed": words[:, :4], "w.weight_scale": torch.ones(64, 2),
                   "w.weight_shape": torch.tensor([64, 32]), "w.weight_zero_point": words[:8, :2],
                   "w.weight_g_idx": words[0]},
        "scaled": {"w.weight": words.to(torch.float8_e4m3fn), "w.weight_scale": torch.ones(64, 1)},
        "blocks": {"w.weight": words.to(torch.float8_e4m3fn),
                   "w.weight_scale_inv": torch.ones(64, 5)},
        "zeros": {"w.weight": words.to(torch.int8), "w.weight_scale": torch.ones(64),
                  "w.weight_zero_point": words[:, 0].to(torch.int8)},
        "mxfp4": {"w.weight_packed": words[:, :16].to(torch.uint8),
                  "w.weight_scale": words[:, :1].to(torch.uint8)},
        "nvfp4": {"w.weight_packed": words[:, :16].to(torch.uint8),
                  "w.weight_scale": torch.ones(64, 2).to(torch.float8_e4m3fn),
                  "w.weight_global_scale": torch.ones(1)},
        "modelopt": {"w.weight": words[:, :16].to(torch.uint8),
                     "w.weight_scale": torch.ones(64, 2).to(torch.float8_e4m3fn),
                     "w.weight_scale_2": torch.ones(())},
        "experts": {"w_blocks": torch.zeros(2, 64, 1, 16, dtype=torch.uint8),
                    "w_scales": torch.zeros(2, 64, 1, dtype=torch.uint8)},
        "int8": {"w.weight": words.to(torch.int8), "w.SCB": torch.ones(64),
                 "w.weight_format": torch.zeros((), dtype=torch.uint8)},
        "nf4": {"w.weight": torch.zeros(1024, 1, dtype=torch.uint8),
                "w.weight.absmax": torch.zeros(32, dtype=torch.uint8),
                "w.weight.quant_map": torch.ones(16), "w.weight.nested_absmax": torch.ones(2),
                "w.weight.nested_quant_map": torch.ones(256),
                "w.weight.quant_state.bitsandbytes__nf4": torch.frombuffer(
                    bytearray(json.dumps(state).encode()), dtype=torch.uint8)},
    }[kind]  # fmt: skip


KINDS = ("gptq", "awq", "packed", "scaled", "blocks", "zeros", "int8", "nf4", "mxfp4", "nvfp4",
         "modelopt", "experts")  # fmt: skip
DTYPES = ("float32", "float16", "int32", "int64", "uint8", "int8", "float8_e4m3fn")
SIZES = st.sampled_from([0, 1, 2, 4, 8, 16, 32, 64, 256])
STATES = st.one_of(
    st.binary(max_size=40),
    st.fixed_dictionaries(
        {},
        optional={
            "shape": st.lists(st.integers(-1, 64), max_size=3),
            "blocksize": st.integers(-1, 64),
            "nested_blocksize": st.one_of(st.none(), st.integers(-1, 64)),
            "nested_offset": st.one_of(st.text(max_size=2), st.floats()),
            "dtype": st.one_of(st.integers(), st.just("float16")),
        },
    ).map(lambda told: json.dumps(told).encode()),
)


@st.composite
def hostile_tensors(draw) -> dict[str, torch.Tensor]:
    """Parts of a weight, some of them gone or of another dtype, shape or content."""
    made = dict(sound(draw(st.sampled_from(KINDS))))
    for name in draw(st.lists(st.sampled_from(sorted(made)), max_size=2, unique=True)):
        change = draw(st.sampled_from(["gone", "dtype", "shape", "content"]))
        if change == "gone":
            del made[name]
        elif change == "dtype":
            made[name] = made[name].to(getattr(torch, draw(st.sampled_from(DTYPES))))
        elif change == "shape":
            made[name] = made[name].new_zeros(draw(st.lists(SIZES, max_size=3)))
        elif "quant_state" in name:
            made[name] = torch.frombuffer(bytearray(draw(STATES) or b" "), dtype=torch.uint8)
        else:
            made[name] = torch.full_like(made[name].float(), draw(st.integers(-128, 127))).to(made[name].dtype)
    return made | {"other": torch.ones(2)}


def manifest_of(path: Path, tensors: dict[str, torch.Tensor], said: dict[str, Any]) -> Manifest:
    save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, path)
    header = read_safetensors(path, path.name)
    files = (FileInfo(path.name, "safetensors", path.stat().st_size, "", path),)
    return Manifest("", "any", "upload", path.parent, files, header.tensors, {}, None, (), said)


@pytest.mark.parametrize("kind", KINDS)
def test_sound_parts_are_read(tmp_path, kind):
    manifest = manifest_of(tmp_path / "w.safetensors", sound(kind), {"weight_block_size": [1, 7]})
    (quantized,) = find_quantized(manifest).values()
    shape = (2, 32, 64) if kind == "experts" else (64, 32)
    assert quantized.info.shape == shape
    assert read_quantized(StoredReader(manifest), quantized).shape == shape


@settings(max_examples=400, deadline=None, derandomize=True)
@given(tensors=hostile_tensors(), said=st.sampled_from([{}, {"weight_block_size": [1, 7]}, {"group_size": 20}]))
def test_any_parts_are_read_or_left_alone(tmp_path_factory, tensors, said):
    """Parts that contradict each other are no weight, and what is found can be read in full."""
    path = tmp_path_factory.mktemp("codes") / "w.safetensors"
    manifest = manifest_of(path, tensors, said)
    for quantized in find_quantized(manifest).values():
        numbers = read_quantized(StoredReader(manifest), quantized)
        assert numbers.shape == quantized.info.shape
        assert numbers.numel() <= 32 * path.stat().st_size
