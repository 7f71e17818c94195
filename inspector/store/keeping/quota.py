"""Keep the store within its quota: count it, and remove what can be made again.

Results go that can be computed again, those not used for longest first. None goes that is in use, by this process or
another one of the same home. One process makes room at a time.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from inspector.errors import CheckpointError
from inspector.results.store import StoreAccount, StoredKind, StoredUpload
from inspector.settings import Settings
from inspector.store.files import below, remove_file, remove_folder, turn
from inspector.store.keeping.arrays import STALE_SECONDS
from inspector.store.keeping.compiled import COMPILED
from inspector.store.keeping.holding import is_used, last_used
from inspector.store.keeping.shared import is_marked, is_waiting
from inspector.store.manifests.documents import is_fingerprint, is_plain_folder
from inspector.store.manifests.entries import INCOMINGS, MAPS, OPENED, TEMPORARY, UPLOADS, WORKERS
from inspector.store.manifests.manifest import StoredCheckpoint
from inspector.store.names import HEADERS
from inspector.store.stored import list_checkpoints
from inspector.text import plural

RESERVED = ".reserved"  # an upload's size, before its bytes have arrived
GIVEN = "given"  # in a worker's folder: what the server links there
# Folder below home -> what it holds, and when that is removed to make room.
KINDS = {
    UPLOADS: ("uploads", "when you delete them"),
    OPENED: ("copies of configurations and tokenizers", "first, unless in use"),
    MAPS: ("maps and neighbors", "first"),
    HEADERS: ("headers of models on the hub", "first"),
    COMPILED: ("compiled code", "never: small, but slow to rebuild"),
    INCOMINGS: ("arriving uploads", "when they are stored or refused"),
    TEMPORARY: ("work in progress", "when it is done"),
    WORKERS: ("folders of workers", "when the worker ends"),
}
EVICTED = "when room is needed, unless pinned or in use"
WAITING = (
    "Not yet in the shared store: {uploads}. The server keeps trying to copy them, and its log says what prevents it; "
    "until then no other server has them."
)
FETCHABLE = "first if the shared store has them, unless pinned or in use"


@dataclass(frozen=True, slots=True)
class Removable:
    """Something that may go to make room."""

    used: float  # when it was last used, seconds since 1970
    nbytes: int
    remove: Callable[[], None]


def account(settings: Settings) -> StoreAccount:
    """Count what the store holds."""
    kinds = []
    told = KINDS
    if settings.store_evict == "uploads" or settings.store:
        all_go = settings.store_evict == "uploads"
        told = KINDS | {UPLOADS: ("uploads", EVICTED if all_go else FETCHABLE)}
    for folder, (name, can_go) in told.items():
        paths = list(_visible(settings.home / folder))
        kinds.append(StoredKind(name, len(paths), sum(map(nbytes_of, paths)), can_go))
    stored = list_checkpoints(settings)
    uploads = [_upload(each, settings) for each in stored]
    waiting = sum(is_waiting(settings.home / UPLOADS / each.fingerprint, settings) for each in stored)
    return StoreAccount(
        quota_nbytes=settings.store_nbytes,
        used_nbytes=sum(kind.nbytes for kind in kinds),
        evict=settings.store_evict,
        kinds=tuple(kinds),
        uploads=tuple(sorted(uploads, key=lambda upload: (upload.last_used, upload.name))),
        warnings=(WAITING.format(uploads=plural(waiting, "upload")),) if waiting else (),
    )


def trim(settings: Settings) -> None:
    """Remove results, those not used for longest first, until the store is within its quota."""
    with turn(settings.home):
        evict(used_nbytes(settings) - settings.store_nbytes, results(settings))


def evict(missing: int, candidates: Iterator[Removable]) -> int:
    """Remove what was not used for longest until nothing is missing; returns what still is."""
    if missing <= 0:
        return missing
    for candidate in sorted(candidates, key=lambda found: found.used):
        if missing <= 0:
            break
        with suppress(OSError, CheckpointError):  # somebody else has just removed it
            candidate.remove()
        missing -= candidate.nbytes
    return missing


def results(settings: Settings) -> Iterator[Removable]:
    """What can be computed again, and what can be opened again, unless it is in use."""
    now = time.time()
    for folder in filter(_is_ours, below(settings.home / MAPS)):
        for path in below(folder):
            with suppress(OSError):
                stat = path.lstat()
                # What is still being written has another name, and is left alone for a while.
                if path.suffix or now - stat.st_mtime > STALE_SECONDS:
                    remove = partial(remove_file, path)
                    yield Removable(stat.st_mtime, stat.st_size, remove)
    for entry in filter(_is_ours, below(settings.home / OPENED)):
        if not is_used(entry):
            yield Removable(last_used(entry), nbytes_of(entry), partial(remove_folder, entry))
    for kept in filter(_is_ours, below(settings.home / HEADERS)):
        with suppress(OSError):
            used = kept.lstat().st_mtime
            if now - used > STALE_SECONDS:  # a child may be reading it
                yield Removable(used, nbytes_of(kept), partial(remove_folder, kept))


def _is_ours(folder: Path) -> bool:
    """Whether the store made a folder: INSPECTOR_HOME may be a folder that holds other things too."""
    return is_fingerprint(folder.name) and is_plain_folder(folder)


def _upload(stored: StoredCheckpoint, settings: Settings) -> StoredUpload:
    entry = settings.home / UPLOADS / stored.fingerprint
    used = datetime.fromtimestamp(last_used(entry), UTC)
    return StoredUpload(
        name=stored.name,
        fingerprint=stored.fingerprint,
        nbytes=nbytes_of(entry),
        created=stored.created,
        last_used=used.isoformat(timespec="seconds"),
        pinned=stored.pinned,
        in_use=is_used(entry),
        shared=is_marked(entry, settings),
    )


def used_nbytes(settings: Settings) -> int:
    """Bytes of all that the store holds."""
    return sum(nbytes_of(path) for kind in KINDS for path in _visible(settings.home / kind))


def _own_nbytes(found: os.stat_result, path: str) -> int:
    """Bytes of a file; of folders whose files have holes those on the disk."""
    _, _, inside = path.partition(f"{os.sep}{WORKERS}{os.sep}")
    if found.st_nlink > 1 and Path(inside).parts[1:2] == (GIVEN,):
        return 0  # what is linked there counts where it lies
    on_disk = min(found.st_size, 512 * getattr(found, "st_blocks", sys.maxsize))
    if inside:
        return on_disk // max(1, found.st_nlink)
    holes = any(f"{os.sep}{each}{os.sep}" in path for each in (INCOMINGS, HEADERS))
    arrives = holes and not path.endswith(RESERVED)
    return on_disk if arrives else found.st_size


def _visible(folder: Path) -> Iterator[Path]:
    """What a folder holds, but for what is just being made or removed."""
    return (path for path in below(folder) if not path.name.startswith("."))


def nbytes_of(path: Path) -> int:
    """Bytes of a file or of all files below a folder; a reservation counts until it is filled."""
    total = reserved = 0
    with suppress(OSError):
        if not is_plain_folder(path):
            return path.lstat().st_size
        for entry in _files_below(path):
            with suppress(OSError):
                size = _own_nbytes(entry.stat(follow_symlinks=False), entry.path)
                reserved += size if entry.name == RESERVED else 0
                total += size if entry.name != RESERVED else 0
    return max(total, reserved)


def _files_below(path: Path) -> Iterator[os.DirEntry[str]]:
    """All files, however deep a worker that was taken over makes its folders."""
    waiting = [str(path)]
    while waiting:
        with suppress(OSError), os.scandir(waiting.pop()) as found:
            for entry in found:
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
                else:
                    yield entry
