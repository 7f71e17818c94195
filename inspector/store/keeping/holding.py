"""Mark stored checkpoints as in use, for every server of the store, and tell which are."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path

from inspector.settings import Settings
from inspector.store.files import LOCK, acquire, share
from inspector.store.manifests.entries import MANIFEST, load_manifest
from inspector.store.manifests.manifest import Manifest

RECENT_SECONDS = 600.0  # somebody who reads a page asks nothing, and is at it all the same
_held: dict[Path, int] = {}  # entries that this process uses -> their lock


def load_held(fingerprint: str, *, settings: Settings) -> Manifest:
    """Find an opened checkpoint, which counts as in use from now until this process ends.

    Raises:
        CheckpointError: As `load_manifest` does.
    """
    manifest = load_manifest(fingerprint, settings=settings)
    if settings.given is not None:  # the server holds what it gives to a worker
        return manifest
    entry = manifest.folder.parent
    if entry in _held and _is_same(entry):
        _touch(entry)
        return manifest
    hold(entry)
    return load_manifest(fingerprint, settings=settings)  # it may have gone before it was held


def hold(entry: Path) -> None:
    """Mark an entry as in use until this process ends; a store that is read-only needs no mark."""
    with suppress(OSError):
        descriptor = share(entry)
        if descriptor is None:  # it is just being removed
            return
        if entry in _held:
            os.close(_held[entry])
        _held[entry] = descriptor
        _touch(entry)


def is_used(entry: Path) -> bool:
    """Whether a process holds an entry, or somebody asked about it a moment ago."""
    if time.time() - last_used(entry) < RECENT_SECONDS:
        return True
    if not (entry / LOCK).exists():  # and making one would look like use
        return False
    try:
        descriptor = acquire(entry)
    except OSError:
        return True
    if descriptor is None:
        return True
    os.close(descriptor)
    return False


def last_used(entry: Path) -> float:
    """When an entry was last asked about, or made; seconds since 1970, 0 when it is gone."""
    found = [0.0]
    for name in (LOCK, MANIFEST):
        with suppress(OSError):
            found.append((entry / name).stat().st_mtime)
    return max(found)


def _touch(entry: Path) -> None:
    with suppress(OSError):
        os.utime(entry / LOCK)


def _is_same(entry: Path) -> bool:
    """Whether what is held is what lies there now, and no later entry of the same name."""
    try:
        return os.fstat(_held[entry]).st_ino == (entry / LOCK).stat().st_ino
    except OSError:
        return False
