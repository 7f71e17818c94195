"""Weights that a link leads to: what is followed, what is refused, and what is told of it."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import shutil
from pathlib import Path

import pytest
from safetensors.torch import load_file, save_file

from inspector.cli import child
from inspector.errors import CheckpointError
from inspector.settings import Settings
from inspector.store.files import place_of
from inspector.store.hashing import BackgroundHasher, identify
from inspector.store.opening import open_checkpoint
from inspector.store.origins.links import follow_link
from inspector.store.reference import CheckpointRef
from tests.conftest import silent

WEIGHTS = "model.safetensors"
REFUSED = (
    f"{WEIGHTS} is a link that is not followed: it must lead to a plain file that may be opened here, and belong to "
    "you, root or the file's owner. Otherwise replace it with the file itself."
)


@pytest.fixture
def shared(folder, tmp_path) -> Path:
    """The folder's weights, on a disk that many share; the folder has a link."""
    place = tmp_path / "shared" / "weights-of-many"
    place.parent.mkdir()
    (folder / WEIGHTS).rename(place)
    (folder / WEIGHTS).symlink_to(place)
    return place


def served(folder: Path, settings: Settings, *roots: Path):
    reference, allowed = CheckpointRef("path", str(folder)), dataclasses.replace(settings, roots=roots)
    return open_checkpoint(reference, settings=allowed, progress=silent, restrict_paths=True)[0]


def test_linked_weights_are_those_of_the_target(folder, shared, open_path, settings, tmp_path):
    linked = open_path(folder)
    shutil.copytree(folder, tmp_path / "copy")
    copied = open_path(tmp_path / "copy")
    assert linked.manifest.fingerprint == copied.manifest.fingerprint
    (file,) = (each for each in linked.manifest.files if each.name == WEIGHTS)
    assert file.sha256 == hashlib.sha256(shared.read_bytes()).hexdigest()
    assert (file.linked_from, file.path) == (str(shared), shared)
    assert [each.linked_from for each in copied.manifest.files] == [None] * len(copied.manifest.files)
    assert served(folder, settings, tmp_path) == linked.manifest


def test_shards_of_an_index_may_be_links(folder, open_path, tmp_path):
    whole = open_path(folder).manifest.tensors.names
    tensors = load_file(folder / WEIGHTS)
    halves = sorted(tensors)[::2], sorted(tensors)[1::2]
    places = {}
    for number, names in enumerate(halves, 1):
        shard = f"model-{number:05}-of-00002.safetensors"
        save_file({name: tensors[name] for name in names}, tmp_path / f"shard{number}")
        (folder / shard).symlink_to(f"../shard{number}")
        places |= dict.fromkeys(names, shard)
    (folder / WEIGHTS).unlink()
    (folder / f"{WEIGHTS}.index.json").write_text(json.dumps({"metadata": {}, "weight_map": places}))
    assert sorted(open_path(folder).manifest.tensors.names) == sorted(whole)


@pytest.mark.parametrize("target", ["missing", "/dev/zero", WEIGHTS, ".", "../sound/../missing"])
def test_a_link_to_no_plain_file_is_refused(folder, refused, target):
    (folder / WEIGHTS).unlink()
    (folder / WEIGHTS).symlink_to(target)
    assert refused(folder) == REFUSED


@pytest.mark.parametrize("change", [lambda data: data[:-1], lambda data: data + b"x", lambda _: b"secret of somebody"])
def test_a_link_to_what_its_header_does_not_cover_is_refused(shared, folder, refused, change):
    shared.write_bytes(change(shared.read_bytes()))
    said = refused(folder)
    assert said.startswith(WEIGHTS)
    assert "secret" not in said


def test_pickles_named_by_a_link_are_refused(folder, tmp_path, refused):
    (tmp_path / "elsewhere.bin").write_bytes(b"x")
    (folder / "pytorch_model.bin").symlink_to(tmp_path / "elsewhere.bin")
    assert refused(folder / "pytorch_model.bin") == (
        "pytorch_model.bin is a link to a file outside the checkpoint's folder: replace it with the file itself."
    )


def test_a_server_for_others_follows_no_link_out_of_its_folders(folder, shared, settings, tmp_path):
    for target in (shared, tmp_path / "missing"):
        (folder / WEIGHTS).unlink()
        (folder / WEIGHTS).symlink_to(target)
        with pytest.raises(CheckpointError) as error:
            served(folder, settings, folder)
        assert str(error.value) == REFUSED
    outside = tmp_path / "door"
    outside.mkdir()
    (outside / "config.json").write_text('{"model_type": "bert", "secret": 1}')
    (outside / WEIGHTS).symlink_to(shared)
    with pytest.raises(CheckpointError, match="This path cannot be opened here"):
        served(outside / WEIGHTS, settings, shared.parent)


def test_a_link_must_belong_to_somebody_who_could_show_the_file(tmp_path):
    """Of an ordinary user's tests, whose own links are the foreign ones, the target is root's."""
    target = Path("/etc/passwd").resolve()
    link, above = tmp_path / "link", tmp_path / "above"
    above.symlink_to(target.parent)
    link.symlink_to(above / target.name)
    assert follow_link(link) == target
    if os.geteuid() == 0:
        os.lchown(above, 12345, 12345)
        with pytest.raises(PermissionError):
            follow_link(link)
    else:
        with pytest.raises(PermissionError):
            follow_link(link, trusted=())
    assert follow_link(link, trusted={above.lstat().st_uid, link.lstat().st_uid}) == target


def test_a_place_is_what_was_found_there_and_not_its_name(tmp_path):
    (tmp_path / "one").write_bytes(b"1")
    before = place_of(tmp_path / "one")
    (tmp_path / "two").write_bytes(b"2")
    (tmp_path / "two").rename(tmp_path / "one")
    assert place_of(tmp_path / "one")[0] == before[0]
    assert place_of(tmp_path / "one") != before


def test_weights_that_changed_behind_a_link_are_other_ones(folder, shared, open_path):
    opened = open_path(folder)
    data = shared.read_bytes()
    shared.unlink()
    shared.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    assert open_path(folder).manifest.fingerprint != opened.manifest.fingerprint


def test_a_linked_file_is_sampled_by_the_name_that_the_checkpoint_gives_it(shared, monkeypatch):
    """Its target may be called anything; its header counts whole."""
    files = {WEIGHTS: shared}
    taken = identify(files, owned=False, progress=silent, sampled=True)
    ahead = BackgroundHasher(lambda: files)
    assert identify(files, owned=False, progress=silent, sampled=True, ahead=ahead) == taken
    header = 8 + int.from_bytes(shared.read_bytes()[:8], "little")
    assert header < shared.stat().st_size


def test_the_sandbox_is_given_what_was_found_and_not_what_is_there_later(folder, shared, settings, monkeypatch):
    """Between the parent's look and the child's, somebody puts another file in the target's place."""
    swapped = shared.with_name("swapped")
    shutil.copyfile(shared, swapped)
    confine = child.confine

    def later(access):
        swapped.replace(shared)
        return confine(access)

    monkeypatch.setattr(child, "confine", later)
    task = child.Task("overview", (CheckpointRef("path", str(folder)),), lambda found, _: len(found))
    with pytest.raises(CheckpointError, match="cannot be read"):
        child.do(task, settings, tell=lambda _: None)
