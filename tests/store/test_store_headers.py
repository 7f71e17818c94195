"""A header of safetensors is read as the library reads it, or refused."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from inspector.demo import DEMOS
from inspector.errors import CheckpointError
from inspector.store.readers import safetensors
from inspector.store.readers.safetensors import read_safetensors
from tests.families import MODELS, random_model, save_checkpoint

F32 = '{"dtype": "F32", "shape": [1, 2], "data_offsets": [%d, %d]}'
A, B = F32 % (0, 8), F32 % (8, 16)


def changed(was: str, now: str) -> str:
    """A header whose second tensor is described in another way."""
    return f'{{"a": {A}, "b": {B.replace(was, now, 1)}}}'


PLAIN = {
    "as it is written": f'{{"a": {A}, "b": {B}}}',
    "another order": f'{{"b": {B}, "a": {A}}}',
    "metadata": f'{{"__metadata__": {{"c": "a", "format": "pt", "d": "e"}}, "a": {A}, "b": {B}}}',
    "no metadata": f'{{"__metadata__": {{}}, "a": {A}, "b": {B}}}',
    "padding": f'{{"a":{A},"b":{B}}}     ',
    "escaped": f'{{"\\u00e9": {A}, "b": {B}}}',
    "empty tensors": f'{{"a": {A}, "c": {{"dtype": "I64", "shape": [0], "data_offsets": [8, 8]}}, "b": {B}}}',
    "a scalar": f'{{"a": {A}, "b": {{"dtype": "F64", "shape": [], "data_offsets": [8, 16]}}}}',
}
ODD = {
    "a tensor twice": f'{{"a": {A}, "a": {B}}}',
    "a dtype twice": changed("{", '{"dtype": "F32", '),
    "another key": changed("{", '{"stride": 1, '),
    "keys in another order": f'{{"a": {A}, "b": {{"shape": [1, 2], "dtype": "F32", "data_offsets": [8, 16]}}}}',
    "a list": f'[["a", {A}], ["b", {B}]]',
    "lists": f'{{"a": {A}, "b": [["dtype", "F32"], ["shape", [1, 2]], ["data_offsets", [8, 16]]]}}',
    "an object for a shape": f'{{"a": {A}, "b": {{"dtype": "F64", "shape": {{}}, "data_offsets": [8, 16]}}}}',
    "an object for offsets": changed("[8, 16]", '{"8": 8, "16": 16}'),
    "text for a shape": changed("[1, 2]", '"12"'),
    "true for a size": changed("[1, ", "[true, "),
    "a fraction": changed("[1, ", "[1.0, "),
    "less than nothing": changed("[1, 2]", "[-1, -2]"),
    "huge": changed("[1, 2]", f"[{2**62}, {2**62}]").replace("16", "7"),
    "an unknown dtype": changed("F32", "F7"),
    "a list of dtypes": changed('"F32"', '["F32"]'),
    "a gap": f'{{"a": {A}, "b": {F32 % (12, 20)}}}',
    "an overlap": f'{{"a": {A}, "b": {F32 % (4, 12)}}}',
    "a gap at first": f'{{"b": {B}}}',
    "cut off": f'{{"a": {A}, "b": {B}, "c": {F32 % (16, 24)}}}',
    "more than described": f'{{"a": {A}}}',
    "metadata twice": f'{{"__metadata__": {{}}, "__metadata__": {{}}, "a": {A}, "b": {B}}}',
    "metadata with a key twice": f'{{"__metadata__": {{"c": "a", "c": "b"}}, "a": {A}, "b": {B}}}',
    "metadata at last": f'{{"a": {A}, "b": {B}, "__metadata__": {{"c": "a"}}}}',
    "a tensor for metadata": f'{{"a": {A}, "b": {B}, "__metadata__": {F32 % (16, 16)}}}',
    "a list for metadata": f'{{"__metadata__": [["c", "a"]], "a": {A}, "b": {B}}}',
    "objects in metadata": f'{{"__metadata__": {{"c": {{"d": 1, "d": 2}}}}, "a": {A}, "b": {B}}}',
    "a lone surrogate": f'{{"\\ud800": {A}, "b": {B}}}',
    "a long name": changed("", "").replace('"b"', '"' + 1001 * "b" + '"'),
    "many axes": changed("[1, 2]", f"[{'1, ' * 64}2]"),
    "too deep": '{"__metadata__": ' + 100_000 * "[" + 100_000 * "]" + f', "a": {A}}}',
    "nothing": "{}",
    "no object": "[]",
    "no text": "\N{REPLACEMENT CHARACTER}",
    "only metadata": '{"__metadata__": {}}',
}


def written(text: str, folder: Path) -> Path:
    data, path = text.encode(), folder / "model.safetensors"
    path.write_bytes(struct.pack("<Q", len(data)) + data + bytes(16))
    return path


def told(path: Path) -> dict[str, object] | str:
    """Each tensor's dtype and sizes as we read them, or our refusal."""
    try:
        found = read_safetensors(path, path.name).tensors
    except CheckpointError as error:
        return str(error)
    return {each.name: (each.dtype, each.shape) for each in found}


def library(path: Path) -> dict[str, object] | None:
    """The same as safetensors says, which loads the tensors; None: it refuses."""
    try:
        return {name: (str(x.dtype).removeprefix("torch."), tuple(x.shape)) for name, x in load_file(path).items()}
    except SafetensorError:
        return None


@pytest.mark.parametrize("text", PLAIN.values(), ids=PLAIN)
def test_a_plain_header_is_read_as_the_library_reads_it(text, tmp_path):
    path = written(text, tmp_path)
    assert library(path) is not None
    assert told(path) == library(path)


@pytest.mark.parametrize("text", ODD.values(), ids=ODD)
def test_an_odd_header_is_read_as_the_library_reads_it_or_refused(text, tmp_path):
    path = written(text, tmp_path)
    ours, theirs = told(path), library(path)
    assert isinstance(ours, str) or ours == theirs


def saved() -> Iterator[Path]:
    for demo in DEMOS.values():
        yield from demo.folder.glob("*.safetensors")


@pytest.mark.parametrize("path", saved(), ids=lambda path: path.parent.name)
def test_a_demo_is_read_as_the_library_reads_it(path):
    assert told(path) == library(path)


@pytest.mark.parametrize("family", sorted(MODELS)[::6])
def test_a_family_is_read_as_the_library_reads_it(family, tmp_path):
    for path in save_checkpoint(random_model(family), tmp_path).glob("*.safetensors"):
        assert told(path) == library(path)


def test_every_dtype_is_read_as_the_library_reads_it(tmp_path):
    dtypes = {getattr(torch, name) for name, _ in safetensors.DTYPES.values()}
    path = tmp_path / "model.safetensors"
    save_file({f"x.{dtype}": torch.zeros(3, 2).to(dtype) for dtype in dtypes if "e8m0" not in str(dtype)}, path)
    assert told(path) == library(path)
