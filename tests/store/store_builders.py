"""Uploads, archives and hub caches, built for the tests of the store."""

from __future__ import annotations

import tarfile
import zipfile
from pathlib import Path

from inspector.settings import Settings
from inspector.store.manifests.manifest import Manifest
from inspector.store.opening import open_checkpoint
from inspector.store.reference import CheckpointRef
from inspector.store.registry import new_upload, write_upload
from tests.conftest import silent
from tests.families import random_model, save_checkpoint


def small_checkpoint(folder: Path, *, seed: int = 0, **options) -> Path:
    """A BERT of two layers as a checkpoint folder, with a tokenizer."""
    return save_checkpoint(random_model("BertForMaskedLM", seed=seed), folder, **options)


def uploaded(settings: Settings, files: dict[str, bytes]) -> CheckpointRef:
    """Files by the names that a browser tells, as an upload that has arrived."""
    upload, folder = new_upload(settings)
    for name, data in files.items():
        write_upload(folder, name, data)
    return CheckpointRef("incoming", upload)


def upload_of(settings: Settings, folder: Path, *, prefix: str = "") -> CheckpointRef:
    """A folder's files as an upload; `prefix` is the folder's name, as a folder upload has it."""
    return uploaded(settings, {prefix + path.name: path.read_bytes() for path in sorted(folder.iterdir())})


def opened(reference: CheckpointRef, settings: Settings, *, strangers: bool = True) -> tuple[Manifest, CheckpointRef]:
    """Open a reference as the web app does, or as the command line does."""
    return open_checkpoint(reference, settings=settings, progress=silent, restrict_paths=strangers)


def pack(folder: Path, archive: Path) -> Path:
    """Pack a folder, under its own name, into an archive; its suffix tells the format."""
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    if archive.suffix == ".zip":
        with zipfile.ZipFile(archive, "w") as packed:
            for path in files:
                packed.write(path, path.relative_to(folder.parent).as_posix())
        return archive
    with tarfile.open(archive, "w" if archive.suffix == ".tar" else "w:gz") as packed:
        for path in files:
            packed.add(path, path.relative_to(folder.parent).as_posix())
    return archive


def hub_cache(folder: Path, model: str, cache: Path) -> Path:
    """Lay a folder out as the hub's library does: blobs by digest, snapshots of links."""
    repository = cache / ("models--" + model.replace("/", "--"))
    commit = "a" * 40
    snapshot = repository / "snapshots" / commit
    snapshot.mkdir(parents=True)
    (repository / "blobs").mkdir()
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text(commit, encoding="utf-8")
    for number, path in enumerate(sorted(folder.iterdir())):
        blob = repository / "blobs" / f"{number:040x}"
        blob.write_bytes(path.read_bytes())
        (snapshot / path.name).symlink_to(Path("../../blobs") / blob.name)
    return cache
