"""Keep manifests on disk as JSON, and find them by fingerprint."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from inspector.errors import CheckpointError
from inspector.settings import Settings
from inspector.store.files import write_atomically
from inspector.store.manifests.documents import is_fingerprint, is_plain_folder, read_document
from inspector.store.manifests.manifest import FileInfo, Manifest
from inspector.store.manifests.reader import FORMAT, UPLOADS, read_manifest
from inspector.store.manifests.tensors import write_tensors
from inspector.store.names import clean_name, is_text

INCOMINGS = "incoming"
TEMPORARY = "temporary"
WORKERS = "workers"  # below home: a folder for each
OPENED = "opened"  # below home: configs and tokenizers of folders, demos and hub models
MAPS = "maps"  # below home: what was computed, by the fingerprint of the checkpoint
MANIFEST = "manifest.json"
ENTRY = "entry.json"  # of an upload: its name, as the list shows it
OWNERS = ".owners"  # of an upload: who sent it; no worker gets it
ORIGINALS = "originals"  # of an upload: its configurations as they were uploaded; never read
MAX_ENTRY_NBYTES = 10_000


def save_manifest(manifest: Manifest, entry: Path, *, built: Path) -> None:
    """Write a manifest into an entry that is still being built elsewhere.

    Args:
        manifest: Its paths are those of the entry's final place.
        entry: The final place.
        built: The folder that will be moved there.
    """
    stored = {
        "format": FORMAT,
        "fingerprint": manifest.fingerprint,
        "name": manifest.name,
        "source": manifest.source,
        "files": [_file_to_json(file, entry) for file in manifest.files],
        "tensors": write_tensors(manifest.tensors, {file.name: file.nbytes for file in manifest.files}),
        "aliases": manifest.aliases,
        "config": manifest.config,
        "warnings": manifest.warnings,
        "quantization": manifest.quantization,
        "adapter": manifest.adapter,
        "findings": [dataclasses.asdict(finding) for finding in manifest.findings],
        "translated": dataclasses.asdict(manifest.translated),
    }
    write_atomically(built / MANIFEST, json.dumps(stored))


def load_manifest(fingerprint: str, *, settings: Settings) -> Manifest:
    """Find an opened checkpoint by its fingerprint, 64 hex digits.

    Raises:
        CheckpointError: If it is not there, damaged, or its weights have changed since.
    """
    gone = CheckpointError("This checkpoint is no longer in the store: open it again.")
    if not is_fingerprint(fingerprint):
        raise gone
    for entry in _places(fingerprint, settings) * 2:  # it may be being replaced
        try:
            return _read(entry)
        except OSError:
            continue
        except CheckpointError as error:
            gone = error
        except ValueError:
            gone = CheckpointError("This checkpoint's entry in the store is damaged: open it again.")
    raise gone


def is_held(fingerprint: str, *, settings: Settings) -> bool:
    """Whether a checkpoint's manifest is still there, without reading it."""
    return any((place / MANIFEST).exists() for place in _places(fingerprint, settings))


def _places(fingerprint: str, settings: Settings) -> list[Path]:
    places = [settings.readable / kind / fingerprint for kind in (UPLOADS, OPENED)]
    if settings.uploads is not None:
        places.append(settings.uploads / UPLOADS / fingerprint)
    return places


def results_folder(fingerprint: str, *, settings: Settings) -> Path:
    """Where is kept what was computed of a checkpoint."""
    return settings.home / MAPS / fingerprint


def find_manifest(entry: Path) -> Manifest | None:
    """The manifest of an entry; None if it, or a file that it lists, is not there or damaged."""
    try:
        return _read(entry)
    except (OSError, ValueError, CheckpointError):
        return None


def _read(entry: Path) -> Manifest:
    if not is_plain_folder(entry):  # a link would lead out of the store
        raise FileNotFoundError(entry.name)
    manifest = read_manifest(read_document(entry / MANIFEST), entry)
    return dataclasses.replace(manifest, name=_given_name(entry) or manifest.name)


def _given_name(entry: Path) -> str | None:
    """The name that an upload was given since it was staged."""
    name = read_entry(entry).get("name")
    return clean_name(name) if isinstance(name, str) and is_text(name) else None


def read_entry(entry: Path) -> Mapping[str, Any]:
    """What was said of an upload since it was staged, unchecked; nothing if that cannot be read."""
    try:
        return read_document(entry / ENTRY, limit=MAX_ENTRY_NBYTES)
    except (OSError, ValueError):
        return {}


def _file_to_json(file: FileInfo, entry: Path) -> dict[str, Any]:
    inside = file.path.is_relative_to(entry)
    return {
        "name": file.name,
        "format": file.format,
        "nbytes": file.nbytes,
        "sha256": file.sha256,
        "quick": file.quick,
        "path": str(file.path.relative_to(entry) if inside else file.path),
        "stamp": file.stamp,
        "link": file.link,
    }
