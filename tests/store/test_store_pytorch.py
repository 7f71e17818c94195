"""PyTorch files, read without torch: against torch.load, and against what hurts it."""

from __future__ import annotations

import argparse
import io
import os
import pickle  # noqa: TID251
import tarfile
import zipfile
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from inspector.errors import CheckpointError
from inspector.store.readers.pytorch import read_pytorch
from tests.sentences import WEIGHTS_ONLY

DTYPES = (
    torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.int32,
    torch.int16, torch.int8, torch.uint8, torch.bool, torch.complex64, torch.uint16,
    torch.float8_e4m3fn,
)  # fmt: skip


class Runs:
    """Runs a command when it is unpickled."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self):
        return os.system, (f"touch {self.marker}",)


def save(value, path: Path, *, legacy: bool = False) -> Path:
    torch.save(value, path, _use_new_zipfile_serialization=not legacy)
    return path


def refusal(path: Path) -> str:
    with pytest.raises(CheckpointError) as error:
        read_pytorch(path, path.name)
    return str(error.value)


def bytes_at(path: Path, begin: int, nbytes: int) -> bytes:
    with path.open("rb") as file:
        file.seek(begin)
        return file.read(nbytes)


@pytest.mark.parametrize("legacy", [False, True])
def test_reads_what_torch_saved(tmp_path, legacy):
    state = {f"t{number}": torch.ones(3, 4).to(dtype) for number, dtype in enumerate(DTYPES)}
    state["scalar"] = torch.tensor(2.5)
    state["empty"] = torch.empty(0, 7)
    state["parameter"] = torch.nn.Parameter(torch.arange(6.0))
    state["view"] = torch.arange(20.0).reshape(4, 5).T[1:, ::2]
    if legacy:  # the old format knows no storage of these dtypes
        del state["t11"], state["t12"]
    header = read_pytorch(save(state, tmp_path / "w.bin", legacy=legacy), "w.bin")
    assert [tensor.name for tensor in header.tensors] == list(state)
    for tensor in header.tensors:
        truth = state[tensor.name]
        assert tensor.shape == tuple(truth.shape)
        assert tensor.strides == truth.stride()
        assert tensor.dtype == str(truth.dtype).removeprefix("torch.")
        assert tensor.nbytes == truth.numel() * truth.element_size()
        if truth.is_contiguous() and truth.numel():
            raw = truth.detach().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
            assert bytes_at(tmp_path / "w.bin", tensor.begin, tensor.nbytes) == raw


@pytest.mark.parametrize("legacy", [False, True])
def test_shared_storages_stay_shared(tmp_path, legacy):
    base = torch.arange(12.0)
    state = {"a": base[:6], "b": base[3:], "c": base.clone()}
    found = {t.name: t for t in read_pytorch(save(state, tmp_path / "w.bin", legacy=legacy),
                                             "w.bin").tensors}  # fmt: skip
    assert found["a"].storage == found["b"].storage != found["c"].storage
    assert found["b"].begin - found["a"].begin == 12
    assert found["a"].storage_nbytes == 48


@pytest.mark.parametrize("legacy", [False, True])
def test_code_is_named_and_not_run(tmp_path, legacy):
    marker = tmp_path / "ran"
    path = save({"w": torch.ones(2), "x": Runs(marker)}, tmp_path / "w.bin", legacy=legacy)
    assert refusal(path) == (
        f"w.bin contains '{os.system.__module__}.system', which is not a tensor: nothing in it was run. {WEIGHTS_ONLY}"
    )
    assert not marker.exists()


def test_plain_pickle_with_code(tmp_path):
    marker = tmp_path / "ran"
    path = tmp_path / "w.bin"
    path.write_bytes(pickle.dumps(Runs(marker)))
    assert refusal(path) == (
        f"w.bin contains '{os.system.__module__}.system', which is not a tensor: nothing in it was run. {WEIGHTS_ONLY}"
    )
    assert not marker.exists()


@pytest.mark.parametrize("legacy", [False, True])
def test_namespace_and_module_are_named(tmp_path, legacy):
    state = {"w": torch.ones(2), "args": argparse.Namespace(lr=1)}
    path = save(state, tmp_path / "w.bin", legacy=legacy)
    no_tensor = f"which is not a tensor: nothing in it was run. {WEIGHTS_ONLY}"
    assert refusal(path) == f"w.bin contains 'argparse.Namespace', {no_tensor}"
    path = save(torch.nn.Linear(2, 2), tmp_path / "m.pt", legacy=legacy)
    assert refusal(path) == f"m.pt contains 'torch.nn.modules.linear.Linear', {no_tensor}"


def test_torchscript_is_refused(tmp_path):
    path = tmp_path / "s.pt"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("s/data.pkl", b"\x80\x02}.")
        archive.writestr("s/constants.pkl", b"\x80\x02).")
        archive.writestr("s/code/__torch__.py", "def f(): pass")
    assert refusal(path) == (
        f"s.pt is a TorchScript archive (code with weights), which never runs here. {WEIGHTS_ONLY}"
    )


def test_tar_named_pt(tmp_path):
    path = tmp_path / "t.pt"
    with tarfile.open(path, "w") as archive:
        archive.addfile(tarfile.TarInfo("x"), io.BytesIO())
    assert refusal(path) == (
        "t.pt was not written by torch.save(): check that it is the weight file, not an archive or a text file."
    )


def test_sparse_tensors_are_refused(tmp_path):
    path = save({"w": torch.eye(3).to_sparse()}, tmp_path / "w.bin")
    assert refusal(path) == (
        "w.bin contains a tensor that is not strided ('_rebuild_sparse_tensor'): save it with dense tensors."
    )


def test_no_advice_to_unpickle(tmp_path):
    path = save(torch.nn.Linear(2, 2), tmp_path / "m.pt")
    assert "weights_only" not in refusal(path)


def test_bytearray_bomb_and_memo_bomb(tmp_path):
    bomb = b"\x80\x02cbuiltins\nbytearray\nJ\x00\x00\x00\x70\x85R."
    memo = b"\x80\x02}r\xff\xff\xff\xff."  # LONG_BINPUT 4294967295
    path = tmp_path / "w.bin"
    path.write_bytes(bomb)
    assert refusal(path) == (
        "w.bin contains 'builtins.bytearray', which is not a tensor: nothing in it was run. " + WEIGHTS_ONLY
    )
    path.write_bytes(memo)
    assert refusal(path) == (
        "w.bin is a pickle, but not one that torch.save() writes: nothing in it was run. " + WEIGHTS_ONLY
    )


PID = b"(X\x07\0\0\0storagectorch\nFloatStorage\nX\x01\0\0\x000X\x03\0\0\0cpuK\x02tQ"
REST = b"K\0(K\x02t(K\x01t\x89NtR"  # offset 0, shape (2,), strides (1,), no gradient, no hooks
TENSOR = b"ctorch._utils\n_rebuild_tensor_v2\n(" + PID + REST


def zip_with_pickle(program: bytes, path: Path) -> Path:
    """A file as torch.save writes it, with eight bytes of data and a pickle of one's own."""
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("w/data.pkl", b"\x80\x02" + program + b".")
        archive.writestr("w/data/0", b"\0" * 8)
    return path


@pytest.mark.parametrize(
    "program",
    [
        # an OrderedDict whose method `items` is set to the number 1
        b"ccollections\nOrderedDict\n)RX\x01\0\0\0w" + TENSOR + b"s}X\x05\0\0\0itemsK\x01sb",
        # a storage whose fields are set to other values
        b"}X\x01\0\0\0wctorch._utils\n_rebuild_tensor_v2\n("
        + PID + b"(K\x05X\x07\0\0\0float99K\x02K\0lb" + REST + b"s",
    ],
)  # fmt: skip
def test_a_pickle_sets_no_state_on_what_stands_for_objects(tmp_path, program):
    (tensor,) = read_pytorch(zip_with_pickle(program, tmp_path / "w.bin"), "w.bin").tensors
    assert (tensor.name, tensor.dtype, tensor.shape) == ("w", "float32", (2,))
    assert bytes_at(tmp_path / "w.bin", tensor.begin, tensor.nbytes) == b"\0" * 8


@pytest.mark.parametrize(
    "program",
    [
        b"})" + b"\x85" * 10**6 + b"K\x01s",  # as a key of a dict
        b"ccollections\nOrderedDict\n(]])" + b"\x85" * 10**6 + b"aK\x01aatR",
    ],
)
def test_a_key_nested_a_million_deep_is_never_hashed(tmp_path, program):
    """Hashing it overflows the interpreter's own stack: the process would be gone."""
    assert refusal(zip_with_pickle(program, tmp_path / "w.bin")) == (
        "w.bin is truncated or broken: its list of tensors cannot be read. Get the file again."
    )


def test_a_set_is_never_hashed(tmp_path):
    deep = b")" + b"\x85" * 10**6
    sets = b"X\x01\0\0\0f(" + deep + b"\x91sX\x01\0\0\0s\x8f(" + deep + b"\x90s"
    program = b"}X\x01\0\0\0w" + TENSOR + b"s" + sets
    header = read_pytorch(zip_with_pickle(program, tmp_path / "w.bin"), "w.bin")
    assert [tensor.name for tensor in header.tensors] == ["w"]
    assert header.warnings == ("w.bin: ignored 'f' and 1 more (not tensors).",)


def test_compressed_storage_is_refused(tmp_path):
    path = save({"w": torch.zeros(1000, 100)}, tmp_path / "w.bin")
    packed = tmp_path / "packed.bin"
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as new:
        for info in old.infolist():
            new.writestr(info.filename, old.read(info))
    with zipfile.ZipFile(packed) as archive:
        first = archive.infolist()[0]
    assert refusal(packed) == (
        f"packed.bin contains compressed data ({first.compress_size:,} bytes for "
        f"{first.file_size:,}), which PyTorch never writes: save it again with torch.save()."
    )


def test_stride_zero_cannot_claim_any_size(tmp_path):
    path = save({"w": torch.ones(1).expand(10**6, 10**6)}, tmp_path / "w.bin")
    assert refusal(path) == (
        "The tensor 'w' in w.bin spreads 4 bytes over 4,000,000,000,000: make it contiguous and save it again."
    )
    header = read_pytorch(save({"w": torch.ones(1).expand(50)}, tmp_path / "w.bin"), "w.bin")
    assert header.tensors[0].strides == (0,)


@pytest.mark.parametrize("legacy", [False, True])
def test_truncated_files(tmp_path, legacy):
    path = save({"w": torch.ones(300, 10)}, tmp_path / "w.bin", legacy=legacy)
    whole = path.read_bytes()
    sentences = {
        "w.bin is truncated: its last tensors are missing. Get it again.",
        "w.bin is truncated or broken: its PyTorch archive cannot be read. Get the file again.",
        "w.bin is truncated or broken: its list of tensors cannot be read. Get the file again.",
    }
    for length in (len(whole) // 2, len(whole) - 100, 5):
        path.write_bytes(whole[:length])
        assert refusal(path) in sentences
    path.write_bytes(b"")
    assert refusal(path) == "w.bin is empty: the copy was cut off. Get the file again."


@pytest.mark.parametrize("legacy", [False, True])
def test_wrapped_state_dict_is_unwrapped_and_said(tmp_path, legacy):
    path = save({"model": {"w": torch.ones(2)}, "epoch": 3}, tmp_path / "w.bin", legacy=legacy)
    header = read_pytorch(path, "w.bin")
    assert [tensor.name for tensor in header.tensors] == ["w"]
    assert header.warnings == ("w.bin has its weights under 'model'; the app reads those.",)


def test_other_values_are_left_out_and_named(tmp_path):
    header = read_pytorch(save({"w": torch.ones(2), "epoch": 3}, tmp_path / "w.bin"), "w.bin")
    assert header.warnings == ("w.bin: ignored 'epoch' (not tensors).",)
    assert refusal(save([torch.ones(2)], tmp_path / "l.bin")).startswith(
        "l.bin does not contain named weights (a state dict) but a list"
    )


@pytest.mark.parametrize("legacy", [False, True])
@settings(max_examples=150, deadline=None, derandomize=True)
@given(data=st.data())
def test_changed_bytes_raise_nothing_else(tmp_path_factory, legacy, data):
    """Whatever a few changed bytes do, a CheckpointError says it or the file still reads."""
    folder = tmp_path_factory.mktemp("fuzz")
    path = save({"a": torch.ones(4, 3), "b": torch.zeros(2)}, folder / "w.bin", legacy=legacy)
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 8))):
        place = data.draw(st.integers(0, len(content) - 1))
        content[place] = data.draw(st.integers(0, 255))
    path.write_bytes(content)
    try:
        header = read_pytorch(path, "w.bin")
    except CheckpointError:
        return
    for tensor in header.tensors:
        assert tensor.begin + tensor.nbytes <= len(content) or 0 in tensor.strides
