"""What is found in few passes over many tensors is what each tensor, looked at by itself, says."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from inspector.analyses.overview.result_tensors import StoredTensors
from inspector.errors import CheckpointError
from inspector.models.checkpoint import StagedCheckpoint, prepare
from inspector.models.quantized.formats import CONVENTIONS
from inspector.models.quantized.layout import find_layout, find_quantized
from inspector.store.manifests.columns import (
    Tensors,
    count_by_dtype,
    count_nbytes,
    count_numbers,
    is_buffer,
    stored_once,
)
from inspector.store.readers.safetensors import read_safetensors
from inspector.store.sizes import BLOCK, stacks_of
from inspector.text import shape_text
from tests.families import random_model, save_checkpoint
from tests.models.quantized_files import (
    BITS4,
    FINE_GRAINED,
    IN_GPTQ,
    WEIGHT,
    by_bitsandbytes,
    in_float8,
    in_four_bits_by_gptq,
    save_coded,
    wide_model,
)

LLAMA = "LlamaForCausalLM"


def in_float8_alone(weight: torch.Tensor) -> dict[str, torch.Tensor]:
    """Codes with scales that nobody here reads."""
    return {WEIGHT: weight.to(torch.float8_e4m3fn), f"{WEIGHT}_scale_x": torch.ones(3, 3)}


def in_bits(folder: Path) -> Path:
    plain = save_checkpoint(wide_model(LLAMA), folder / "plain")
    by_bitsandbytes(plain, LLAMA, **BITS4["double"]).save_pretrained(folder / "coded")
    return folder / "coded"


def strided(folder: Path) -> Path:
    whole = torch.rand(8, 10)
    parts = {"turned": whole.t(), "rows": whole[2:], "whole": whole, "none": torch.zeros(0, 3), "twin": whole}
    folder.mkdir()
    torch.save(parts, folder / "pytorch_model.bin")
    return folder


KINDS: dict[str, Callable[[Path], Path]] = {
    "plain": lambda folder: save_checkpoint(random_model("GPT2LMHeadModel"), folder),
    "two stacks": lambda folder: save_checkpoint(random_model("T5ForConditionalGeneration"), folder),
    "experts": lambda folder: save_checkpoint(random_model("DeepseekV3ForCausalLM"), folder),
    "tied": lambda folder: save_checkpoint(random_model(LLAMA, tie_word_embeddings=True), folder),
    "sharded": lambda folder: save_checkpoint(random_model(LLAMA), folder, max_shard_size="20KB"),
    "archive": strided,
    "GPTQ": lambda folder: save_coded(folder, in_four_bits_by_gptq(0), IN_GPTQ),
    "float8": lambda folder: save_coded(folder, in_float8(), FINE_GRAINED),
    "float8 that nobody reads": lambda folder: save_coded(folder, in_float8_alone),
    "bitsandbytes": in_bits,
}


@pytest.fixture(params=KINDS)
def checkpoint(request, tmp_path, open_path) -> StagedCheckpoint:
    return open_path(KINDS[request.param](tmp_path / "made"))


def test_few_passes_find_what_each_tensor_says(checkpoint):
    tensors, found = checkpoint.manifest.tensors, checkpoint.quantized
    first = {each.parts["codes"].name: each for each in found.values()}
    parts = {part.name for each in found.values() for part in each.parts.values()}
    stands_for = [first[each.name].info if each.name in first else each for each in tensors]
    assert list(checkpoint.tensors) == [
        logical
        for logical, each in zip(stands_for, tensors, strict=True)
        if each.name in first or each.name not in parts
    ]
    assert list(checkpoint.unread.codes) == [
        each.name for each in tensors if each.name not in parts and f"{each.name}_scale_x" in tensors.numbers
    ]

    layers = {(each.name[: match.start(1)], match[1]) for each in tensors if (match := BLOCK.search(each.name))}
    assert {(stack, number) for stack, numbers in stacks_of(tensors).items() for number in numbers} == layers

    places = {}
    for each in tensors:
        if not is_buffer(each):
            places.setdefault((each.file, each.storage, each.begin, each.nbytes), each)
    stored = list(places.values())
    assert stored == stored_once(each for each in tensors if not is_buffer(each))
    kinds = tensors.stored
    assert kinds == Counter((*each[1:5], each.nbytes) for each in stored)
    assert tensors.weights == Counter((*each[1:5], each.nbytes) for each in tensors if not is_buffer(each))
    dtypes = {each.dtype for each in stored}
    assert count_by_dtype(kinds) == {
        dtype: sum(math.prod(each.shape) for each in stored if each.dtype == dtype) for dtype in dtypes
    }
    assert count_nbytes(kinds) == sum(each.nbytes for each in stored)
    assert count_numbers(kinds) == sum(math.prod(each.shape) for each in stored)

    listed = StoredTensors.of(tensors)
    assert listed.names == tuple(each.name for each in tensors)
    columns = [listed.frame[name] for name in ("dtype", "shape", "nbytes", "file")]
    assert list(zip(*columns, strict=True)) == [
        (each.dtype, shape_text(each.shape), each.nbytes, each.file) for each in tensors
    ]
    assert len(set(listed.kinds)) == len(listed.kinds)


def test_what_was_prepared_is_used_for_the_same_checkpoint_alone(checkpoint):
    opened = checkpoint.manifest
    prepare(opened, settings=checkpoint.settings)
    stored = replace(opened, fingerprint="0" * 64, name="renamed")
    assert find_layout(stored) is find_layout(opened)
    others = (
        replace(opened, tensors=Tensors.of(tuple(opened.tensors))),
        replace(opened, config={**(opened.config or {}), "torch_dtype": "float16"}),
        replace(opened, quantization={"bits": 3}),
        replace(opened, files=tuple(replace(file, stamp=(1, 2, 3)) if file.stamp else file for file in opened.files)),
    )
    for other in others:
        before, after = find_layout(opened), find_layout(other)
        assert after is not before
        assert after.quantized == find_quantized(other)


def test_tensors_of_one_kind_are_each_as_their_header_says(checkpoint):
    for path in checkpoint.manifest.paths.values():
        if path.suffix != ".safetensors":
            continue
        data = path.read_bytes()
        start = 8 + int.from_bytes(data[:8], "little")
        header = json.loads(data[8:start])
        for each in checkpoint.manifest.tensors:
            if each.file == path.name:
                told = header[each.name]
                begin, end = told["data_offsets"]
                assert (list(each.shape), each.begin, each.nbytes) == (told["shape"], start + begin, end - begin)
                outline = torch.empty(each.shape, dtype=getattr(torch, each.dtype), device="meta")
                assert each.strides == outline.stride()
                assert each.nbytes == outline.nbytes == each.storage_nbytes
                assert each.storage == f"{each.file}:{each.name}"


@pytest.mark.parametrize("shape", [[True, 2], [1.0, 2], [[1], 2], {"1": 2}, [-1, -2]], ids=str)
def test_a_shape_is_no_size_although_it_equals_one_that_was_read_before(tmp_path, shape):
    told = {"dtype": "F32", "shape": [1, 2], "data_offsets": [0, 8]}
    header = json.dumps({"a": told, "b": told | {"shape": shape, "data_offsets": [8, 16]}}).encode()
    path = tmp_path / "model.safetensors"
    path.write_bytes(len(header).to_bytes(8, "little") + header + bytes(16))
    with pytest.raises(CheckpointError, match=r"'b' in .* has a shape or offsets that are not sizes"):
        read_safetensors(path, path.name)


def test_no_stored_name_has_two_endings_of_conventions():
    assert not [(one, other) for one in CONVENTIONS for other in CONVENTIONS if one != other and one.endswith(other)]
