"""Tensors travel into a manifest and out of it as they were, and are read anew only where something changed."""

from __future__ import annotations

import json
from collections.abc import Iterable

import pytest
import torch

from inspector.errors import CheckpointError
from inspector.store.manifests.columns import TensorInfo, Tensors
from inspector.store.manifests.documents import DamagedError
from inspector.store.manifests.entries import load_manifest
from inspector.store.manifests.tensors import read_tensors, write_tensors
from tests.store.store_builders import opened, small_checkpoint, upload_of

SIZES = {"a.safetensors": 1_000, "b.bin": 500}
TENSORS = Tensors.of(
    (
        TensorInfo("x.0.weight", "float32", (4, 8), (8, 1), "a.safetensors", 100, 128, "a.safetensors:x.0.weight", 128),
        TensorInfo("x.1.weight", "float32", (4, 8), (8, 1), "a.safetensors", 228, 128, "a.safetensors:x.1.weight", 128),
        TensorInfo("t", "float32", (8, 4), (1, 8), "b.bin", 64, 128, "b.bin:0", 256),  # a view of half a storage
        TensorInfo("scalar", "int64", (), (), "b.bin", 492, 8, "b.bin:scalar", 8),
        TensorInfo("none", "bool", (0, 3), (3, 1), "b.bin", 500, 0, "b.bin:1", 0),
    )
)


@pytest.fixture(autouse=True)
def forget():
    """Write other tensors: the last two alone are known."""

    def others() -> None:
        for number in range(2):
            write_tensors(Tensors.of(()), {"another file": number})

    others()
    return others


def rows(tensors: Iterable[TensorInfo]) -> list[list[object]]:
    """As manifests held them before: each tensor by itself."""
    return json.loads(json.dumps(list(tensors)))


def test_tensors_are_read_as_they_were_written(forget):
    text = write_tensors(TENSORS, SIZES)
    forget()
    found = read_tensors(text, SIZES)
    assert found == TENSORS
    assert found is not TENSORS
    assert all(type(value) is type(was) for each, tensor in zip(found, TENSORS, strict=True)
               for value, was in zip(each, tensor, strict=True))  # fmt: skip


def test_the_rows_of_an_earlier_manifest_are_read_too():
    assert read_tensors(rows(TENSORS), SIZES) == TENSORS
    assert read_tensors([], SIZES) == ()
    assert read_tensors(write_tensors(Tensors.of(()), SIZES), SIZES) == ()


@pytest.mark.parametrize("nbytes", [499, 100])
def test_what_is_known_of_files_is_not_believed_of_shorter_ones(nbytes):
    text = write_tensors(TENSORS, SIZES)
    assert read_tensors(text, SIZES) is TENSORS
    with pytest.raises(DamagedError):
        read_tensors(text, SIZES | {"b.bin": nbytes})


def test_a_changed_text_is_read_anew():
    text = write_tensors(TENSORS, SIZES)
    assert read_tensors(text.replace("x.1.weight", "y.1.weight"), SIZES)[1].name == "y.1.weight"


def test_the_last_byte_of_a_strided_tensor_must_lie_in_the_file():
    view = TensorInfo("t", "float32", (2, 2), (1, 10), "b.bin", 500 - 4 * 12, 16, "b.bin:0", 64)
    assert read_tensors(rows((view,)), SIZES) == (view,)
    storage = torch.zeros(125)  # the same, by torch: the last number that the view reaches is the file's last
    assert storage.as_strided((2, 2), (1, 10), 125 - 12)[1, 1].data_ptr() == storage[-1].data_ptr()
    with pytest.raises(DamagedError):
        read_tensors(rows((view._replace(begin=view.begin + 1),)), SIZES)


def test_an_entry_of_an_earlier_version_opens(tmp_path, settings, forget):
    manifest, _ = opened(upload_of(settings, small_checkpoint(tmp_path / "mini"), prefix="mini/"), settings)
    path = settings.home / "checkpoints" / manifest.fingerprint / "manifest.json"
    stored = json.loads(path.read_text())
    path.write_text(json.dumps(stored | {"tensors": rows(manifest.tensors)}))
    forget()
    assert load_manifest(manifest.fingerprint, settings=settings) == manifest
    path.write_text(json.dumps(stored | {"tensors": [*rows(manifest.tensors)[:-1], []]}))
    with pytest.raises(CheckpointError, match="damaged"):
        load_manifest(manifest.fingerprint, settings=settings)
