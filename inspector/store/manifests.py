"""Keep manifests on disk as JSON, and find them by fingerprint."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

from inspector.errors import CheckpointError
from inspector.settings import Settings
from inspector.store.files import write_atomically
from inspector.store.hashing import stamp_of
from inspector.store.manifest import FileInfo, Manifest, TensorInfo

UPLOADS = "checkpoints"  # below home: what was uploaded, weights and all
OPENED = "opened"  # below home: configs and tokenizers of folders, demos and hub models
MAPS = "maps"  # below home: what was computed, by the digest of the file it was computed from
MANIFEST = "manifest.json"
ENTRY = "entry.json"  # of an upload: its name, as the list shows it
FOLDER = "folder"  # Manifest.folder, in an entry of either
WEIGHTS = "weights"
ORIGINALS = "originals"  # of an upload: its configurations as they were uploaded; never read
FORMAT = 1

_TENSOR_FIELDS = tuple(field.name for field in dataclasses.fields(TensorInfo))


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
        "tensors": [[getattr(t, name) for name in _TENSOR_FIELDS] for t in manifest.tensors],
        "aliases": manifest.aliases,
        "config": manifest.config,
        "warnings": manifest.warnings,
        "quantization": manifest.quantization,
    }
    write_atomically(built / MANIFEST, json.dumps(stored))


def load_manifest(fingerprint: str, *, settings: Settings) -> Manifest:
    """Find an opened checkpoint by its fingerprint, 64 hex digits.

    Raises:
        CheckpointError: If it is not there, damaged, or its weights have changed since.
    """
    gone = CheckpointError("This checkpoint is no longer in the store: open it again.")
    for kind in (UPLOADS, OPENED, UPLOADS, OPENED):  # twice: it may be being replaced
        entry = settings.home / kind / fingerprint
        try:
            text = (entry / MANIFEST).read_bytes()
        except OSError:
            continue
        try:
            return _from_json(json.loads(text), entry)
        except CheckpointError as error:
            gone = error
        except (ValueError, TypeError, KeyError, IndexError, RecursionError):
            gone = CheckpointError("This checkpoint's entry in the store is damaged: open it again.")
    raise gone


def find_manifest(entry: Path) -> Manifest | None:
    """The manifest of an entry; None if it, or a file that it lists, is not there or damaged."""
    try:
        return _from_json(json.loads((entry / MANIFEST).read_bytes()), entry)
    except (OSError, ValueError, TypeError, KeyError, IndexError, RecursionError, CheckpointError):
        return None


def _given_name(entry: Path) -> str | None:
    """The name that an upload was given since it was staged."""
    try:
        given = json.loads((entry / ENTRY).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    name = given.get("name") if isinstance(given, dict) else None
    return name if isinstance(name, str) else None


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
    }


def _from_json(stored: dict[str, Any], entry: Path) -> Manifest:
    if stored["format"] != FORMAT:
        raise ValueError(stored["format"])
    return Manifest(
        fingerprint=stored["fingerprint"],
        name=_given_name(entry) or stored["name"],
        source=stored["source"],
        folder=entry / FOLDER,
        files=tuple(_file_from_json(file, entry) for file in stored["files"]),
        tensors=tuple(_tensor_from_json(values) for values in stored["tensors"]),
        aliases=stored["aliases"],
        config=stored["config"],
        warnings=tuple(stored["warnings"]),
        quantization=stored.get("quantization", {}),
    )


def _file_from_json(file: dict[str, Any], entry: Path) -> FileInfo:
    path = entry / file["path"]  # an absolute path stays what it is
    earlier = (0, 0) if file.get("mtime_ns") else None  # of an older version: never the same
    stamp = tuple(file["stamp"]) if file.get("stamp") else earlier
    if stamp is not None:
        try:
            same = (path.stat().st_size, stamp_of(path)) == (file["nbytes"], stamp)
        except OSError:
            same = False
        if not same:
            raise CheckpointError(f"{file['name']} has changed since it was opened: open it again.")
    elif not path.is_file():
        raise CheckpointError(f"{file['name']} is missing from the store: open it again.")
    return FileInfo(file["name"], file["format"], file["nbytes"], file["sha256"], path, file.get("quick"), stamp)


def _tensor_from_json(values: list[Any]) -> TensorInfo:
    fields = dict(zip(_TENSOR_FIELDS, values, strict=True))
    fields["shape"], fields["strides"] = tuple(fields["shape"]), tuple(fields["strides"])
    return TensorInfo(**fields)
