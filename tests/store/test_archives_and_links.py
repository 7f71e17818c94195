"""Archives and links that lead, or unpack, where they should not: each is built here and refused in one sentence."""

from __future__ import annotations

import contextlib
import io
import os
import tarfile
import zipfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import settings as fuzz
from hypothesis import strategies as st

from inspector.errors import CheckpointError
from inspector.store.readers.archives import unpack
from tests.conftest import silent


def tar_of(path: Path, *members: tarfile.TarInfo) -> Path:
    with tarfile.open(path, "w") as archive:
        for member in members:
            archive.addfile(member, io.BytesIO(b"x" * member.size))
    return path


def member(name: str, kind: bytes = tarfile.REGTYPE, target: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    info.size = 1 if kind == tarfile.REGTYPE else 0
    return info


@pytest.mark.parametrize("name", ["../config.json", "/config.json", "a/../../config.json"])
def test_archive_members_that_climb(tmp_path, refused, name):
    sentence = (
        f"{name!r} is not a valid name inside a checkpoint's folder: pack the folder again with plain relative names."
    )
    assert refused(tar_of(tmp_path / "a.tar", member(name))) == sentence
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr(name, "{}")
    assert refused(tmp_path / "a.zip") == sentence
    assert not (tmp_path / "config.json").exists()


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE])
def test_tar_members_that_are_no_files(tmp_path, refused, kind):
    path = tar_of(tmp_path / "a.tar", member("config.json", kind, "/etc/passwd"))
    assert refused(path) == (
        "'config.json' in 'a.tar' is a link, a device or a pipe, not a plain file: pack the files themselves."
    )


def test_zip_with_a_link(tmp_path, refused):
    info = zipfile.ZipInfo("config.json")
    info.external_attr = 0o120777 << 16
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr(info, "/etc/passwd")
    assert refused(tmp_path / "a.zip") == (
        "'config.json' in 'a.zip' is a link, a device or a pipe, not a plain file: pack the files themselves."
    )


def test_zip_bomb_is_stopped_by_counted_bytes(tmp_path, refused, settings):
    with (
        zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("model.safetensors", "w", force_zip64=True) as file,
    ):
        for _ in range(300):
            file.write(b"\0" * 1_000_000)
    packed = (tmp_path / "a.zip").stat().st_size
    assert refused(tmp_path / "a.zip") == (
        f"'a.zip' unpacks to more than 50 times its {packed:,} bytes, which weights never do: check the archive."
    )
    assert not list(settings.home.rglob("*.safetensors"))


def test_broken_and_mislabeled_archives(tmp_path, refused):
    for name in ("a.zip", "a.tar", "a.tar.gz"):
        (tmp_path / name).write_bytes(b"PK\x03\x04 nothing")
        assert refused(tmp_path / name) == (
            f"{name!r} is broken, encrypted or not an archive: get it again, or pack it as a plain .zip."
        )


def test_a_link_as_vocabulary_stays_inside_the_roots(folder, settings, tmp_path):
    """On the web, a link that leads out of the allowed folders is refused; case 19."""
    import dataclasses

    from inspector.store.opening import open_checkpoint
    from inspector.store.reference import CheckpointRef

    outside = tmp_path / "outside.txt"
    outside.write_text("secret", encoding="utf-8")
    (folder / "vocab.txt").unlink()
    (folder / "vocab.txt").symlink_to(outside)
    roots = dataclasses.replace(settings, roots=(folder,))
    with pytest.raises(CheckpointError) as error:
        open_checkpoint(CheckpointRef("path", str(folder)), settings=roots, progress=silent,
                        restrict_paths=True)  # fmt: skip
    assert str(error.value) == (
        "vocab.txt is a link to a file outside the checkpoint's folder: replace it with the file itself."
    )


@pytest.mark.parametrize("name", ["config.json", "tokenizer_config.json", "vocab.txt", "pytorch_model.bin",
                                  "model.safetensors.index.json", "special_tokens_map.json"])  # fmt: skip
@pytest.mark.parametrize("target", ["there", "missing", "above", "device", "circle"])
def test_a_link_that_leads_out_of_the_folder_is_refused(folder, open_path, tmp_path, name, target):
    """Whoever opens it, and whether the target exists or not."""
    outside = tmp_path / "outside"
    (folder / name).unlink(missing_ok=True)
    if target == "there":
        outside.write_text("secret", encoding="utf-8")
    places = {"above": "../outside", "device": "/dev/zero", "circle": name}
    (folder / name).symlink_to(places.get(target, outside))
    said = "another file in this folder" if target == "circle" else "a file outside the checkpoint's folder"
    with pytest.raises(CheckpointError) as error:
        open_path(folder)
    assert str(error.value) == f"{name} is a link to {said}: replace it with the file itself."


def test_a_link_to_another_file_of_the_folder_is_refused(folder, open_path):
    (folder / ".env").write_text("secret", encoding="utf-8")
    (folder / "vocab.txt").unlink()
    (folder / "vocab.txt").symlink_to(".env")
    with pytest.raises(CheckpointError, match=r"^vocab\.txt is a link to another file in this folder: "):
        open_path(folder)


@pytest.mark.parametrize("below", [".", "onnx/first"])
def test_links_of_a_hub_cache_lead_to_its_blobs(folder, open_path, tmp_path, below):
    repository = tmp_path / "models--org--mini"
    blobs, snapshot = repository / "blobs", repository / "snapshots" / ("a" * 40) / below
    blobs.mkdir(parents=True)
    snapshot.mkdir(parents=True)
    for number, path in enumerate(sorted(folder.iterdir())):
        path.rename(blobs / f"{number:040x}")
        (snapshot / path.name).symlink_to(blobs / f"{number:040x}")
    assert open_path(snapshot).require_tokens().find("w3") == 11


@pytest.mark.parametrize("target", ["models--org--other/blobs/" + "0" * 40, "models--org--mini/blobs/passwd",
                                    "models--org--mini/blobs/x/" + "0" * 40])  # fmt: skip
def test_links_of_a_hub_cache_lead_nowhere_else(folder, open_path, tmp_path, target):
    outside = tmp_path / target
    outside.parent.mkdir(parents=True)
    (folder / "vocab.txt").rename(outside)
    snapshot = tmp_path / "models--org--mini" / "snapshots" / ("a" * 40)
    snapshot.parent.mkdir(parents=True)
    folder.rename(snapshot)
    (snapshot / "vocab.txt").symlink_to(outside)
    with pytest.raises(CheckpointError, match=r"^vocab\.txt is a link to a file outside the checkpoint's folder: "):
        open_path(snapshot)


def test_a_blob_that_is_itself_a_link_is_followed_and_judged(folder, open_path, tmp_path):
    repository = tmp_path / "models--org--mini"
    (repository / "blobs").mkdir(parents=True)
    (repository / "snapshots").mkdir()
    snapshot = repository / "snapshots" / "main"
    (folder / "vocab.txt").rename(tmp_path / "outside")
    (repository / "blobs" / ("0" * 40)).symlink_to(tmp_path / "outside")
    folder.rename(snapshot)
    (snapshot / "vocab.txt").symlink_to(repository / "blobs" / ("0" * 40))
    with pytest.raises(CheckpointError, match="outside the checkpoint's folder"):
        open_path(snapshot)


@pytest.mark.parametrize("path", ["/etc", "/proc/self/environ", "/no/such/place", "relative"])
def test_paths_outside_the_roots_all_get_the_same_words(folder, settings, path):
    import dataclasses

    from inspector.store.opening import open_checkpoint
    from inspector.store.origins.on_disk import OUTSIDE
    from inspector.store.reference import CheckpointRef

    roots = dataclasses.replace(settings, roots=(folder,))
    with pytest.raises(CheckpointError) as error:
        open_checkpoint(CheckpointRef("path", path), settings=roots, progress=silent,
                        restrict_paths=True)  # fmt: skip
    assert str(error.value) == OUTSIDE


def test_a_pipe_in_the_folder_is_not_read(folder, open_path):
    os.mkfifo(folder / "merges.txt")
    assert open_path(folder).require_tokens().kind == "WordPiece"


@fuzz(max_examples=100, deadline=None, derandomize=True)
@given(data=st.data(), kind=st.sampled_from(["a.zip", "a.tar"]))
def test_changed_archives_raise_nothing_else(tmp_path_factory, data, kind):
    from inspector.settings import read_settings

    folder = tmp_path_factory.mktemp("fuzz")
    path = folder / kind
    if kind == "a.zip":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("m/config.json", "{}")
            archive.writestr("m/vocab.txt", "a\nb\n")
    else:
        tar_of(path, member("m/config.json"), member("m/vocab.txt"))
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 6))):
        place = data.draw(st.integers(0, min(len(content), 2_000) - 1))
        content[place] = data.draw(st.integers(0, 255))
    path.write_bytes(content)
    target = folder / "target"
    target.mkdir()
    settings = read_settings({"INSPECTOR_HOME": str(folder / "home")})
    with contextlib.suppress(CheckpointError):
        unpack(path, kind, target, settings=settings, progress=silent)
    assert {entry.name for entry in folder.iterdir()} == {kind, "target"}
