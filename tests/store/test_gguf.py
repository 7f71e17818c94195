"""The header of a GGUF file: as gguf's own reader reads what its writer writes, and refused where it lies."""

from __future__ import annotations

import struct
import tracemalloc
from pathlib import Path

import gguf
import numpy as np
import pytest

from inspector.errors import CheckpointError
from inspector.store.readers.ggml import BLOCKS, PLAIN
from inspector.store.readers.gguf import Array, read_array, read_gguf
from tests.gguf_files import ARCHITECTURE, array, listed, pair, random_blocks, raw, text, write_gguf

GET = "get the file again."


def read(folder: Path, data: bytes):
    path = folder / "model.gguf"
    path.write_bytes(data)
    return read_gguf(path, path.name)


def sentence(folder: Path, data: bytes) -> str:
    with pytest.raises(CheckpointError) as refused:
        read(folder, data)
    return str(refused.value)


def test_every_type_has_the_size_that_ggml_gives_it():
    """Of each type that gguf knows, blocks and plain numbers."""
    for kind, (numbers, nbytes) in gguf.GGML_QUANT_SIZES.items():
        if kind.value in PLAIN:
            assert (numbers, nbytes) == (1, PLAIN[kind.value][1])
        else:
            assert BLOCKS[kind.value] == (kind.name, numbers, nbytes)


def test_a_file_is_read_as_gguf_reads_it(tmp_path):
    rng = np.random.default_rng(0)
    words = [f"word{number} ▁é" for number in range(3000)]
    path = tmp_path / "model.gguf"
    write_gguf(
        path,
        {
            "token_embd.weight": rng.standard_normal((64, 256), dtype=np.float32),
            "blk.0.ffn_down.weight": random_blocks("Q6_K", 6, 512),
            "blk.0.attn_norm.weight": np.ones(256, np.float32),
            "half": np.ones((3, 5), np.float16),
            "whole": np.arange(7, dtype=np.int32),
        },
        blocks={"token_embd.weight": "Q8_0", "blk.0.ffn_down.weight": "Q6_K"},
        metadata={
            "llama.block_count": 1, "llama.rope.freq_base": 1e4, "general.name": "né", "a.flag": True,
            "a.few": [1, 2, 3], "a.many": list(range(5000)), "tokenizer.ggml.tokens": words,
        },
    )  # fmt: skip
    header, theirs = read_gguf(path, path.name), gguf.GGUFReader(path)
    assert {each.name: (each.begin, each.nbytes) for each in header.tensors} == {
        each.name: (each.data_offset, each.n_bytes) for each in theirs.tensors
    }
    assert [(each.name, each.dtype, each.shape) for each in header.tensors] == [
        ("token_embd.weight", "uint8", (64, 256 // 32 * 34)),
        ("blk.0.ffn_down.weight", "uint8", (6, 2 * 210)),
        ("blk.0.attn_norm.weight", "float32", (256,)),
        ("half", "float16", (3, 5)),
        ("whole", "int32", (7,)),
    ]
    assert header.blocks == {"token_embd.weight": "Q8_0", "blk.0.ffn_down.weight": "Q6_K"}
    assert header.settings.keys() == {key for key in theirs.fields if not key.startswith("GGUF.")}
    for key, value in header.settings.items():
        found = read_array(path, path.name, value) if isinstance(value, Array) else value
        assert found == (tuple if isinstance(found, tuple) else lambda each: each)(theirs.fields[key].contents())
    assert isinstance(header.settings["a.many"], Array)
    assert header.settings["a.few"] == (1, 2, 3)


def test_version_2_is_read_and_another_alignment_is_kept_to(tmp_path):
    assert read(tmp_path, raw(version=2)).tensors.names == ("a",)
    aligned = pair("general.alignment", 4, struct.pack("<I", 256))
    tensors = [listed("a", (8,), 0, 0), listed("b", (8,), 0, 256)]
    found = read(tmp_path, raw(tensors, [aligned], data=bytes(288), alignment=256))
    assert [each.begin % 256 for each in found.tensors] == [0, 0]


LIES = {
    "another format": (
        b"lmgg" + bytes(40),
        "model.gguf is not a GGUF file: it does not begin with GGUF. Get the file again.",
    ),
    "version 1": (
        raw(version=1),
        "model.gguf is a GGUF file of version 1, which nobody writes any more: convert the original model again.",
    ),
    "version 4": (
        raw(version=4),
        "model.gguf is a GGUF file of version 4, which is not supported: convert it to version 3.",
    ),
    "big-endian": (
        raw(version=3 << 24),
        "model.gguf is a big-endian GGUF file, which is not supported: convert it to little-endian.",
    ),
    "tensors that it cannot hold": (raw(counts=(90_000, 1)), "model.gguf is truncated or not a GGUF file"),
    "too many tensors": (raw(counts=(2**63, 1)), "lists 9,223,372,036,854,775,808 tensors, more than the limit of"),
    "too many keys": (raw(counts=(1, 2**40)), "has 1,099,511,627,776 keys, more than the limit of 10,000"),
    "no tensors": (raw([], data=b""), "contains no tensors"),
    "a long key": (
        raw(metadata=[struct.pack("<Q", 2**60)]),
        "has a text of 1,152,921,504,606,846,976 bytes, more than",
    ),
    "a key twice": (raw(metadata=[ARCHITECTURE, ARCHITECTURE]), f"The metadata of model.gguf gives a key twice: {GET}"),
    "a kind that there is not": (
        raw(metadata=[pair("a", 13, b"")]),
        f"'a' in the metadata of model.gguf has values of the kind 13, which the format does not have: {GET}",
    ),
    "an array of such": (raw(metadata=[pair("a", 9, struct.pack("<IQ", 99, 1))]), "has values of the kind 99"),
    "arrays of arrays": (
        raw(metadata=[pair("a", 9, struct.pack("<IQ", 9, 1) + array(4, [1]))]),
        f"'a' in the metadata of model.gguf is an array of arrays, which no tool reads: {GET}",
    ),
    "an array past the end": (
        raw(metadata=[pair("a", 9, array(4, [1], count=2**50))]),
        "has more than the limit of 1,073,741,824 bytes",
    ),
    "an array that ends early": (
        raw(metadata=[pair("a", 9, array(4, [1], count=10**6))]),
        "is truncated or not a GGUF file",
    ),
    "too many texts": (
        raw(metadata=[pair("a", 9, array(8, [], count=3 * 10**6))]),
        "lists 3,000,000 texts, more than the limit of 1,000,000",
    ),
    "texts that it cannot hold": (
        raw(metadata=[pair("a", 9, array(8, [], count=10**6))]),
        "more than the file can hold",
    ),
    "a text past the end": (raw(metadata=[pair("a", 8, struct.pack("<Q", 10**6))]), "is truncated or not a GGUF file"),
    "a text in an array past the end": (
        raw(metadata=[pair("a", 9, array(8, ["x"])[:-9] + struct.pack("<Q", 10**6))]),
        "is truncated or not a GGUF file",
    ),
    "a text that is none": (raw(metadata=[pair("a", 8, text(b"\xff\xfe"))]), f"has a text that is not UTF-8: {GET}"),
    "a key cut off": (raw()[:30], "is truncated or not a GGUF file"),
    "five axes": (
        raw([listed("a", (1, 1, 1, 1, 8), 0, 0)]),
        f"The tensor 'a' in model.gguf has 5 axes, more than the format's 4: {GET}",
    ),
    "four billion axes": (raw([text("a") + struct.pack("<I", 2**32 - 1)]), "has 4,294,967,295 axes"),
    "an unknown type": (
        raw([listed("a", (8,), 4, 0)]),
        "The tensor 'a' in model.gguf is stored in ggml's type 4, which this "
        "tool does not know: use a file in a type that it lists.",
    ),
    "half a block": (
        raw([listed("a", (33,), 2, 0)]),
        "has rows of 33 numbers, which the blocks of 32 of Q4_0 do not divide",
    ),
    "blocks without rows": (raw([listed("a", (), 2, 0)]), "has rows of 0 numbers"),
    "a huge shape": (
        raw([listed("a", (2**33, 2**33), 0, 0)]),
        "'a' in model.gguf has a shape that is too large for any memory",
    ),
    "a huge offset": (raw([listed("a", (8,), 0, 2**63)]), "lies past any end"),
    "past the end": (
        raw([listed("a", (64,), 0, 0)]),
        "is truncated: its header lists 256 bytes of weights, but only 32 are there.",
    ),
    "a name twice": (raw([listed("a", (8,), 0, 0), listed("a", (8,), 0, 32)], data=bytes(64)), "lists a tensor twice"),
    "an overlap": (
        raw([listed("a", (8,), 0, 0), listed("b", (8,), 0, 0)]),
        "The tensor 'b' in model.gguf overlaps another",
    ),
    "a gap": (
        raw([listed("a", (8,), 0, 0), listed("b", (8,), 0, 96)], data=bytes(128)),
        "'b' in model.gguf leaves a gap",
    ),
    "an odd offset": (raw([listed("a", (8,), 0, 4)]), "leaves a gap before it"),
    "an odd alignment": (
        raw(metadata=[pair("general.alignment", 4, struct.pack("<I", 33))]),
        "gives '33' as its alignment",
    ),
    "alignment in words": (raw(metadata=[pair("general.alignment", 8, text("32"))]), "gives '32' as its alignment"),
    "no name": (raw([listed("", (8,), 0, 0)]), "has a tensor without a name"),
    "nothing": (b"", "model.gguf is empty: the copy was cut off."),
    "a pointer": (b"version https://git-lfs.github.com/spec/v1\n", "is a Git LFS pointer, not the weights"),
}


@pytest.mark.parametrize("lie", LIES)
def test_a_header_that_lies_is_refused_in_a_sentence(lie, tmp_path):
    data, told = LIES[lie]
    found = sentence(tmp_path, data)
    assert told in found
    assert found.endswith(".")
    assert "\n" not in found


def test_a_lie_takes_no_memory(tmp_path):
    """Each, one after the other: most would fill any memory if they were believed."""
    tracemalloc.start()
    for data, _ in LIES.values():
        sentence(tmp_path, data)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 5e6


def test_a_large_header_is_walked_through_without_being_kept(tmp_path):
    """A million texts and forty megabytes of numbers."""
    words = array(8, [])[:4] + struct.pack("<Q", 10**6) + text("▁wörd") * 10**6
    numbers = struct.pack("<IQ", 4, 10**7) + bytes(4 * 10**7)
    data = raw(metadata=[ARCHITECTURE, pair("tokenizer.ggml.tokens", 9, words), pair("n", 9, numbers)])
    path = tmp_path / "model.gguf"
    path.write_bytes(data)
    del data
    tracemalloc.start()
    header = read_gguf(path, path.name)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert header.settings["tokenizer.ggml.tokens"].count == 10**6
    assert peak < 8e6


def two_shards(folder: Path) -> list[Path]:
    folder.mkdir()
    paths = [folder / f"tiny-Q8_0-0000{number}-of-00002.gguf" for number in (1, 2)]
    for number, path in enumerate(paths):
        numbers = np.full((4, 32), number, np.float32)
        write_gguf(path, {f"blk.{number}.ffn_up.weight": numbers}, blocks={f"blk.{number}.ffn_up.weight": "Q8_0"})
    return paths


def test_shards_are_one_checkpoint_by_folder_and_by_any_of_them(tmp_path, open_path):
    paths = two_shards(tmp_path / "split")
    for place in (tmp_path / "split", *paths):
        manifest = open_path(place).manifest
        assert manifest.tensors.names == ("blk.0.ffn_up.weight", "blk.1.ffn_up.weight")
        assert manifest.quantization == {"blocks": dict.fromkeys(manifest.tensors.names, "Q8_0")}
    paths[1].unlink()
    for place in (tmp_path / "split", paths[0]):
        with pytest.raises(CheckpointError, match=r"tiny-Q8_0-00002-of-00002\.gguf is missing"):
            open_path(place)


def test_several_quantizations_in_one_folder_are_not_one_model(tmp_path, open_path):
    for name in ("tiny-Q4_0.gguf", "tiny-Q8_0.gguf"):
        write_gguf(tmp_path / name, {"a.weight": np.ones((2, 32), np.float32)})
    with pytest.raises(CheckpointError, match="open one of them by its path"):
        open_path(tmp_path)
    assert open_path(tmp_path / "tiny-Q8_0.gguf").manifest.tensors.names == ("a.weight",)


def test_what_lies_beside_is_not_read_and_named(tmp_path, open_path):
    write_gguf(tmp_path / "model.gguf", {"a.weight": np.ones((2, 32), np.float32)})
    (tmp_path / "config.json").write_text('{"model_type": "bert", "hidden_size": 99}')
    manifest = open_path(tmp_path / "model.gguf").manifest
    assert any(each.startswith("config.json: not read, since a GGUF file brings its own") for each in manifest.warnings)
    assert [file.name for file in manifest.files] == ["model.gguf"]


def test_types_that_are_not_dequantized_are_named(tmp_path, open_path):
    write_gguf(tmp_path / "model.gguf", {"a.weight": random_blocks("IQ2_XXS", 4, 256)}, blocks={"a.weight": "IQ2_XXS"})
    manifest = open_path(tmp_path / "model.gguf").manifest
    assert (
        "1 tensor stored as IQ2_XXS, which this tool does not dequantize: only the headers are shown."
        in manifest.warnings
    )
