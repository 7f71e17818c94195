"""Copies in files and in memory against loading everything and comparing all pairs."""

from __future__ import annotations

import itertools

import pytest
import torch
from safetensors.torch import save_file

from inspector.models.copies import LiveCopies, StoredCopies, equal_bytes, measure
from inspector.store import copies as stored
from inspector.store.copies import equal_copies, same_bytes
from inspector.store.readers.ranges import OpenFiles

CONFIG = '{"model_type": "bert", "architectures": ["BertModel"]}'


@pytest.fixture(params=["safetensors", "bin"])
def open_tensors(request, tmp_path, open_path):
    """Save tensors in one format or the other and open them."""

    def opened(tensors):
        folder = tmp_path / "copies"
        folder.mkdir()
        (folder / "config.json").write_text(CONFIG)
        if request.param == "safetensors":
            whole = {name: tensor.contiguous() for name, tensor in tensors.items()}
            save_file(whole, folder / "model.safetensors")
        else:
            torch.save(tensors, folder / "pytorch_model.bin")
        return open_path(folder)

    return opened


@pytest.mark.parametrize("chunk", [8, 64, 1 << 22])
def test_equal_copies_are_those_of_comparing_all_pairs(open_tensors, chunk):
    generator = torch.Generator().manual_seed(0)
    a = torch.randn(40, 6, generator=generator)
    almost = a.clone()
    almost[17, 3] += 1e-6  # equal at both ends and in the middle
    nan = torch.tensor([1.0, float("nan"), 2.0])
    tensors = {
        "a": a, "copy": a.clone(), "almost": almost, "third": a.clone(), "half": a.half(),
        "reshaped": a.reshape(6, 40).clone(), "nan": nan, "nan2": nan.clone(),
        "zeros": torch.zeros(9), "zeros2": torch.zeros(9), "ones": torch.ones(2, 2),
        "ones2": torch.ones(2, 2), "minus": -torch.zeros(9), "one": torch.tensor([5.0]),
        "one2": torch.tensor([5.0]), "b": almost.bfloat16(), "b2": almost.bfloat16(),
        "empty": torch.zeros(0, 4), "empty2": torch.zeros(0, 4),
    }  # fmt: skip
    checkpoint = open_tensors(tensors)
    groups = equal_copies(checkpoint.manifest, chunk=chunk)
    assert {frozenset(group) for group in groups} == {
        frozenset({"a", "copy", "third"}),
        frozenset({"nan", "nan2"}),
        frozenset({"b", "b2"}),
    }
    for one, other in itertools.combinations(tensors, 2):
        assert same_bytes(checkpoint.manifest, one, other, chunk=chunk) == (
            (tensors[one].dtype, tensors[one].shape, raw(tensors[one]))
            == (tensors[other].dtype, tensors[other].shape, raw(tensors[other]))
        ), (one, other)


def test_copies_that_have_drifted_apart_are_told_from_a_few_places(tmp_path, open_path, monkeypatch):
    """The first half is equal: read in order, it would all be read before the difference."""
    first = torch.arange(100_000, dtype=torch.float32)
    drifted, late = first.clone(), first.clone()
    drifted[50_000:] += 1
    late[70_007] += 1
    save_file({"first": first, "drifted": drifted, "late": late}, tmp_path / "model.safetensors")
    manifest = open_path(tmp_path).manifest
    read, counts = OpenFiles.read, []
    monkeypatch.setattr(OpenFiles, "read", lambda *args: counts.append(args[-1]) or read(*args))
    assert not same_bytes(manifest, "first", "drifted")
    assert sum(counts) <= 2 * stored.PLACES * stored.SAMPLE
    assert not same_bytes(manifest, "first", "late")  # between the places


def raw(tensor: torch.Tensor) -> bytes:
    return tensor.contiguous().view(torch.uint8).numpy().tobytes()


def test_names_on_one_storage_are_one_copy(tmp_path, open_path):
    base = torch.randn(6, 4)
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "config.json").write_text(CONFIG)
    tensors = {"whole": base, "again": base, "rows": base[2:4], "turned": base.T,
               "copy": base.clone(), "turned copy": base.T.contiguous()}  # fmt: skip
    torch.save(tensors, folder / "pytorch_model.bin")
    checkpoint = open_path(folder)
    assert equal_copies(checkpoint.manifest) == [("whole", "again", "copy")]
    assert same_bytes(checkpoint.manifest, "turned", "turned copy")  # other strides, same numbers
    assert not same_bytes(checkpoint.manifest, "whole", "rows")


@pytest.mark.parametrize("dtypes", [(torch.float32, torch.float32),
                                    (torch.bfloat16, torch.float32),
                                    (torch.float16, torch.bfloat16)])  # fmt: skip
@pytest.mark.parametrize("block", [7, 1 << 20])
def test_differences_are_those_of_the_whole(open_tensors, dtypes, block):
    generator = torch.Generator().manual_seed(1)
    first = torch.randn(11, 5, generator=generator).to(dtypes[0])
    second = (first.float() + torch.randn(11, 5, generator=generator) / 10).to(dtypes[1])
    checkpoint = open_tensors({"first": first, "second": second})
    one, other = first.double().flatten(), second.double().flatten()
    held = {"x": "first", "y": "second"}
    for copies in (StoredCopies(checkpoint.manifest, held, block=block),
                   LiveCopies({"x": first, "y": second}, ["x", "y"], block=block)):  # fmt: skip
        found = copies.difference("x", "y")
        assert found is not None
        assert found.max_abs == (one - other).abs().max().item()
        assert found.relative == pytest.approx(((one - other).norm() / one.norm()).item())
        cosine = torch.nn.functional.cosine_similarity(one, other, dim=0).item()
        assert found.cosine == pytest.approx(cosine)


def test_differences_of_transposed_copies_go_by_element(tmp_path, open_path):
    base = torch.randn(6, 4)
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "config.json").write_text(CONFIG)
    torch.save({"turned": base.T, "copy": base.T.contiguous()}, folder / "pytorch_model.bin")
    copies = StoredCopies(open_path(folder).manifest, {"turned": "turned", "copy": "copy"})
    found = copies.difference("turned", "copy")
    assert found is not None
    assert found.max_abs == 0.0


def test_differences_with_nan_zero_and_other_shapes():
    x = torch.tensor([1.0, 2.0])
    assert measure([(x, torch.tensor([1.0, float("nan")])), (x, x)]).max_abs != 0
    assert torch.tensor(measure([(x, torch.tensor([1.0, float("nan")]))]).max_abs).isnan()
    nothing = measure([(torch.zeros(2), x)])
    assert (nothing.relative, nothing.max_abs) == (float("inf"), 2.0)
    copies = LiveCopies({"x": x, "y": torch.zeros(3)}, ["x", "y"])
    assert copies.difference("x", "y") is None


def test_bits_decide_in_memory():
    nan = torch.tensor([float("nan"), 1.0])
    assert equal_bytes(nan, nan.clone())
    assert not equal_bytes(torch.zeros(2), -torch.zeros(2))
    assert not equal_bytes(torch.zeros(2), torch.zeros(2, dtype=torch.int32))
    assert not equal_bytes(torch.zeros(2), torch.zeros(2, device="meta"))
    turned = torch.randn(3, 4)
    assert equal_bytes(turned.T, turned.T.contiguous())
