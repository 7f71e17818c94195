"""Archives: what is unpacked, in which order, and what a few bytes cannot make us do."""

from __future__ import annotations

import gzip
import io
import resource
import tarfile
import zipfile
from pathlib import Path

import pytest

from inspector.errors import CheckpointError
from inspector.settings import read_settings
from inspector.store.readers.archives import unpack

FILES = {
    "minilm/config.json": b"{}",
    "minilm/tokenizer.json": b"{ }",
    "minilm/model.safetensors": bytes(range(256)) * 40,
    "minilm/README.md": b"read me",
    "minilm/1_Pooling/config.json": b"[]",
}
NOT_AN_ARCHIVE = "'b.tar.gz' is broken, encrypted or not an archive: get it again, or pack it as a plain .zip."


def write_zip(path: Path, files: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return path


def write_tar(path: Path, files: dict[str, bytes]) -> Path:
    with tarfile.open(path, "w:gz" if path.name.endswith("gz") else "w") as archive:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return path


WRITERS = {".zip": write_zip, ".tar": write_tar, ".tar.gz": write_tar, ".tgz": write_tar}


@pytest.fixture
def unpacked(tmp_path):
    """Unpack an archive where at most `megabytes` are taken."""

    def run(path: Path, *, megabytes: int = 100, **options: int):
        folder = tmp_path / "out"
        folder.mkdir()
        settings = read_settings({"INSPECTOR_HOME": str(tmp_path / "home"), "INSPECTOR_UPLOAD_MB": str(megabytes)})
        return unpack(path, path.name, folder, settings=settings, progress=lambda *_: None, **options)

    return run


@pytest.mark.parametrize("suffix", sorted(WRITERS))
def test_unpacks_the_files_of_a_checkpoint_and_names_the_others(tmp_path, unpacked, suffix):
    source = unpacked(WRITERS[suffix](tmp_path / f"minilm{suffix}", FILES))
    assert source.name == "minilm"
    assert {name: path.read_bytes() for name, path in source.files.items()} == {
        name: FILES[f"minilm/{name}"] for name in ("config.json", "tokenizer.json", "model.safetensors")
    }
    assert source.ignored == ("1_Pooling/config.json", "README.md")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == sorted(source.files)


def test_a_compressed_tar_is_read_forward(tmp_path, unpacked, monkeypatch):
    """Once for its list and once for its files: a step back would unpack it all again."""
    rewinds = []
    rewind = gzip._GzipReader._rewind  # type: ignore[attr-defined]
    monkeypatch.setattr(
        gzip._GzipReader,  # type: ignore[attr-defined]
        "_rewind",
        lambda reader: (rewinds.append(1), rewind(reader))[1],
    )
    names = ["tokenizer.json", "model.safetensors", "config.json", "vocab.txt", "merges.txt"]
    files = {name: bytes(100_000) for name in names}
    assert set(unpacked(write_tar(tmp_path / "a.tar.gz", files)).files) == set(names)
    assert len(rewinds) <= 1


def test_a_header_of_a_tar_cannot_ask_for_memory(tmp_path, unpacked):
    """A name of 1.5 GB in 1.5 MB: tarfile alone reads it whole."""
    info = tarfile.TarInfo("x")
    info.type, info.size = tarfile.XHDTYPE, 1_500_000_000
    path = tmp_path / "b.tar.gz"
    with gzip.GzipFile(path, "wb") as file:
        file.write(info.tobuf(tarfile.USTAR_FORMAT))
        for _ in range(64):
            file.write(bytes(1 << 20))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(CheckpointError) as error:
        unpacked(path)
    assert str(error.value) == NOT_AN_ARCHIVE
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 40_000  # kilobytes


def test_files_that_are_not_read_count_too(tmp_path, unpacked):
    """To skip 30 MB of a compressed tar is to unpack them."""
    files = {"notes.md": bytes(30_000_000), "config.json": b"{}"}
    with pytest.raises(CheckpointError) as error:
        unpacked(write_tar(tmp_path / "b.tar.gz", files), megabytes=10)
    assert str(error.value) == (
        "'b.tar.gz' unpacks to more than the limit of 10,000,000 bytes: open the checkpoint as "
        "a folder or from the hub instead."
    )


@pytest.mark.parametrize("suffix", [".zip", ".tar.gz"])
def test_more_than_weights_can_be_packed(tmp_path, unpacked, suffix):
    path = tmp_path / f"b{suffix}"
    if suffix == ".zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("model.safetensors", bytes(20_000_000))
    else:
        write_tar(path, {"model.safetensors": bytes(20_000_000)})
    packed = path.stat().st_size
    with pytest.raises(CheckpointError) as error:
        unpacked(path, free_nbytes=1_000_000)
    assert str(error.value) == (
        f"'b{suffix}' unpacks to more than 50 times its {packed:,} bytes, which weights never do: check the archive."
    )


@pytest.mark.parametrize("content", [b"", b"\x1f\x8b", b"\x1f\x8b\x08\x00not gzip at all", b"PK"])
def test_what_is_no_archive(tmp_path, unpacked, content):
    path = tmp_path / "b.tar.gz"
    path.write_bytes(content)
    with pytest.raises(CheckpointError) as error:
        unpacked(path)
    assert str(error.value) == NOT_AN_ARCHIVE
