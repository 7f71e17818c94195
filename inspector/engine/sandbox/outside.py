"""Which files outside the store a worker may read: those of the checkpoints that it is asked about.

A sandbox cannot be widened, so the server finds these files, by their names alone, before the worker
starts. A worker that is asked about other files later is replaced by one that may read them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

import inspector
from inspector.engine.wire import OpenRequest, RunRequest
from inspector.errors import InspectorError
from inspector.settings import Settings
from inspector.store.manifests.documents import is_fingerprint, read_document
from inspector.store.manifests.entries import MANIFEST, OPENED
from inspector.store.manifests.reader import read_files
from inspector.store.origins.places import demo_source, find_path, path_source
from inspector.store.origins.sources import Source
from inspector.store.reference import CheckpointRef

Outside = frozenset[tuple[Path, int]]  # real paths and their inodes: another file of the same name is another one
NOTHING: Outside = frozenset()
PACKAGE = Path(inspector.__file__).resolve().parent  # every worker reads it, and the demos in it
REMEMBERED = 256


def find_outside(request: OpenRequest | RunRequest, settings: Settings, *, restrict_paths: bool) -> Outside:
    """Find what a worker must read outside the store to answer a request.

    Args:
        request: To open a checkpoint, or about one or two.
        settings: The server's.
        restrict_paths: As in `open_checkpoint`.

    Returns:
        Files, and the folder that is opened, whose names are listed; as far as they are there.
    """
    if settings.confinement == "off":
        return NOTHING
    if isinstance(request, OpenRequest):
        found = set[tuple[Path, int]]()
        with suppress(OSError, RuntimeError, ValueError, InspectorError):  # the worker says what is wrong
            for path in _opened(request.reference, settings, restrict_paths=restrict_paths):
                found.add((path.resolve(), path.stat().st_ino))
    else:
        asked = (request.fingerprint, request.parameters.get("other"))
        entries = (settings.home / OPENED / each for each in asked if isinstance(each, str) and is_fingerprint(each))
        found = {file for entry in entries for file in _listed(entry)}
    return frozenset((path, inode) for path, inode in found if not path.is_relative_to(PACKAGE))


def _opened(reference: CheckpointRef, settings: Settings, *, restrict_paths: bool) -> Iterator[Path]:
    if reference.kind == "demo":
        yield from demo_source(reference).files.values()
    elif reference.kind == "path":
        place = find_path(reference, settings, restrict=restrict_paths)
        if place.is_dir():
            yield place
        source = path_source(reference, settings, restrict=restrict_paths)
        yield from source.files.values() if isinstance(source, Source) else [source]


def _listed(entry: Path) -> Outside:
    """The files outside the store that a manifest lists."""
    try:
        manifest = (entry / MANIFEST).lstat()
        return _read_listed(entry, (manifest.st_ino, manifest.st_mtime_ns))
    except (OSError, ValueError):
        return NOTHING


@lru_cache(maxsize=REMEMBERED)
def _read_listed(entry: Path, _version: tuple[int, int]) -> Outside:
    files = read_files(read_document(entry / MANIFEST))
    return frozenset((file.path, file.stamp[1]) for file in files if file.stamp and file.path.is_absolute())
