"""Read a manifest by a strict schema: it is a document that a worker wrote, so it may lie.

Where a file of an entry lies follows from its name and never from the document. Only a checkpoint
that was opened where it is, and not uploaded, has files elsewhere: each is believed while its size,
time, inode and device are those of the file that was opened, and a worker reads it inside its sandbox.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path, PurePath
from typing import Any

from inspector.errors import CheckpointError
from inspector.store.configs import FACTS, keep_settings
from inspector.store.hashing import fingerprint_of
from inspector.store.manifests.documents import (
    DamagedError,
    as_digest,
    as_list,
    as_object,
    as_one_of,
    as_size,
    as_text,
    collector_paused,
    fields_of,
    is_plain_file,
    is_plain_folder,
    optional,
)
from inspector.store.manifests.findings import MAX_FOUND, PROBLEMS, FileProblem
from inspector.store.manifests.manifest import OUTLINE, FileInfo, Manifest, Translated
from inspector.store.manifests.tensors import read_tensors
from inspector.store.names import HEADERS, clean_name, file_format
from inspector.store.readers.ranges import stamp_of
from inspector.store.readers.safetensors import MAX_NDIM, MAX_TENSORS

FORMAT = 1
FOLDER = "folder"  # Manifest.folder, in an entry
WEIGHTS = "weights"
UPLOADS = "checkpoints"  # below home: what was uploaded, weights and all
SOURCES = ("demo", "upload", "folder", "hub", OUTLINE, HEADERS)
MAX_FILES = 10_000
MAX_WARNINGS = 10_000
_FIELDS = ("format", "fingerprint", "name", "source", "files", "tensors", "aliases", "config", "warnings")
_FILE_FIELDS = ("name", "format", "nbytes", "sha256", "path", "stamp")


def read_places(stored: Any) -> dict[str, Path]:
    """Where the files of a manifest lie, as it says, by name.

    Raises:
        DamagedError: If it does not list files as `save_manifest` does, or a name twice.
    """
    files = as_list(as_object(stored).get("files"), _read_file, most=MAX_FILES)
    places = {file.name: file.path for file in files}
    if len(places) < len(files):
        raise DamagedError("files")
    return places


@collector_paused()
def read_manifest(stored: Any, entry: Path) -> Manifest:
    """Check what an entry's manifest says.

    Args:
        entry: The folder that it was found in, whose name must be its fingerprint.

    Raises:
        DamagedError: If it is not as `save_manifest` writes it.
        CheckpointError: If a file is missing, or has changed since it was opened.
    """
    fields = fields_of(stored, _FIELDS, ("quantization", "adapter", "findings", "translated"))
    if type(fields["format"]) is not int or fields["format"] != FORMAT or not is_plain_folder(entry):
        raise DamagedError("format")
    told = as_list(fields["files"], _read_file, most=MAX_FILES)
    digests = {file.name: file.digest for file in told}
    if len(digests) < len(told) or not fields["fingerprint"] == entry.name == fingerprint_of(digests):
        raise DamagedError("fingerprint")
    files = tuple(_found(file, entry) for file in told)
    nbytes = {file.name: file.nbytes for file in files}
    return Manifest(
        fingerprint=entry.name,
        name=clean_name(as_text(fields["name"])),
        source=as_one_of(fields["source"], SOURCES),
        folder=entry / FOLDER,
        files=files,
        tensors=read_tensors(fields["tensors"], nbytes),
        aliases={as_text(name): as_text(stored) for name, stored in as_object(fields["aliases"]).items()},
        config=optional(fields["config"], _read_config),
        warnings=as_list(fields["warnings"], as_text, most=MAX_WARNINGS),
        quantization=_read_facts(fields.get("quantization", {})),
        adapter=as_text(fields.get("adapter", "")),
        findings=as_list(fields.get("findings", []), _read_finding, most=MAX_WARNINGS),
        translated=_read_translated(fields.get("translated", {})),
    )


def _read_file(stored: Any) -> FileInfo:
    file = fields_of(stored, _FILE_FIELDS, ("quick", "link"))
    form = file_format(as_text(file["name"]))
    if form is None or file["format"] != form:
        raise DamagedError("format")
    found = FileInfo(
        name=file["name"],
        format=form,
        nbytes=as_size(file["nbytes"]),
        sha256=optional(file["sha256"], as_digest),
        path=Path(as_text(file["path"])),
        quick=optional(file.get("quick"), as_digest),
        stamp=optional(file["stamp"], _read_stamp),
        link=file.get("link") is True,
    )
    if not found.digest:
        raise DamagedError("digest")
    return found


def _read_stamp(stored: Any) -> tuple[int, int, int]:
    stamp = as_list(stored, _as_stamp, most=3)
    if len(stamp) < 3:
        raise DamagedError("stamp")
    return stamp[0], stamp[1], stamp[2]


def _as_stamp(value: Any) -> int:
    """Nanoseconds, before 1970 too, an inode or a device."""
    if type(value) is not int or not -(2**63) <= value < 2**64:
        raise DamagedError("stamp")
    return value


def _found(file: FileInfo, entry: Path) -> FileInfo:
    """The file where it must be."""
    for place in (FOLDER, WEIGHTS):
        if file.path == PurePath(place, file.name):
            return _found_inside(file, entry / place)
    if entry.parent.name == UPLOADS or not file.path.is_absolute() or ".." in file.path.parts or not file.stamp:
        raise DamagedError("path")
    try:
        same = (file.path.stat().st_size, stamp_of(file.path)) == (file.nbytes, file.stamp)
    except (OSError, ValueError):
        same = False
    if not same:
        raise CheckpointError(f"{file.name} has changed since it was opened: open it again.")
    return file


def _found_inside(file: FileInfo, place: Path) -> FileInfo:
    path = place / file.name
    if file.stamp is not None:
        raise DamagedError("stamp")
    if not is_plain_folder(place) or not is_plain_file(path):
        raise CheckpointError(f"{file.name} is missing from the store: open it again.")
    return dataclasses.replace(file, path=path)


def _read_config(stored: Any) -> dict[str, Any]:
    """Only plain settings, as when it was staged."""
    try:
        return keep_settings(as_object(stored))
    except CheckpointError as error:
        raise DamagedError("config") from error


def _read_finding(stored: Any) -> FileProblem:
    finding = fields_of(stored, ("subject", "problem", "count", "detail", "names"))
    return FileProblem(
        subject=as_text(finding["subject"]),
        problem=as_one_of(finding["problem"], PROBLEMS),
        count=as_size(finding["count"]),
        detail=as_text(finding["detail"]),
        names=as_list(finding["names"], as_text, most=MAX_FOUND),
    )


def _read_translated(stored: Any) -> Translated:
    fields = fields_of(stored, (), ("names", "zeros"))
    names, zeros = (as_object(fields.get(each, {})) for each in ("names", "zeros"))
    if max(len(names), len(zeros)) > MAX_TENSORS:
        raise DamagedError("translated")
    return Translated(
        {as_text(own): as_text(stored) for own, stored in names.items()},
        {as_text(name): as_list(shape, as_size, most=MAX_NDIM) for name, shape in zeros.items()},
    )


def _read_facts(stored: Any) -> dict[str, Any]:
    facts = fields_of(stored, (), FACTS)
    if not all(FACTS[name](value) for name, value in facts.items()):
        raise DamagedError("quantization")
    return facts
