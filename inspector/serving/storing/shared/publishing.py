"""The shared store: every server of a cluster finds the uploads of all there, by fingerprint.

An upload is `checkpoints/<fingerprint>.json`, which lists its files, and their bytes as they were
uploaded, `blobs/<fingerprint>/<sha256>`. The list is written last and removed first, so that
nothing half-copied is ever found. Blobs belong to one upload alone: deleting one needs no counting,
and cannot meet another server that is just adding one. `deleted/<fingerprint>` tells the other
servers to drop their copies; a store that has lost its files tells them nothing.

Here bytes are copied and nothing of them is read. What was fetched is staged by a confined worker,
like any upload, and the fingerprint must come out the same.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from inspector.errors import STOPPED, CancelledError, CheckpointError
from inspector.progress import Progress
from inspector.serving.storing import registry
from inspector.serving.storing.marks import Told, mark, write_told
from inspector.serving.storing.room import reserve_upload
from inspector.serving.storing.shared.entry import SharedFile, SharedUpload, read_shared, write_shared
from inspector.serving.storing.shared.remote import LISTED, PIECE, Remote, open_remote
from inspector.settings import MB, Settings
from inspector.store.disk import disk_sentence
from inspector.store.files import share
from inspector.store.manifests.entries import MANIFEST, ORIGINALS, UPLOADS, load_manifest
from inspector.store.manifests.manifest import FileInfo
from inspector.store.stored import list_checkpoints

BLOBS = "blobs"
DELETED = "deleted"
MAX_LISTED_NBYTES = 4_000_000
SHOWN_DIGITS = 12


@dataclass(frozen=True, slots=True)
class Carrying:
    """Who waits while bytes are copied."""

    progress: Progress  # told how far it has come
    stopped: Callable[[], bool]  # True: nobody waits any more


def publish(fingerprint: str, *, settings: Settings, carrying: Carrying) -> None:
    """Copy an upload of this server into the shared store, unless it is there.

    Raises:
        CheckpointError: If it cannot be copied; the text says why.
        CancelledError: If nobody waits any more.
    """
    entry = settings.home / UPLOADS / fingerprint
    with _kept(entry), _local_disk(settings):
        remote = open_remote(settings)
        if read_upload(remote, fingerprint) is None:
            _publish(fingerprint, remote, settings, carrying)
        remote.remove(f"{DELETED}/{fingerprint}")
        mark(entry, settings)


def fetch(fingerprint: str, *, settings: Settings, carrying: Carrying) -> str:
    """Copy an upload from the shared store to this server, every file's hash verified.

    Args:
        fingerprint: At least its first 12 digits.
        carrying: Who waits.

    Returns:
        The id of an upload that has arrived, `incoming:<id>`, for a worker to stage.

    Raises:
        CheckpointError: If it cannot be copied; the text says why.
        CancelledError: If nobody waits any more.
    """
    carrying.progress(None, "Checking the shared store")
    remote = open_remote(settings)
    upload = find_upload(remote, fingerprint)
    if upload.nbytes > settings.upload_nbytes:
        raise CheckpointError(
            f"{upload.name} has {upload.nbytes:,} bytes in the shared store, but this server "
            f"accepts at most {settings.upload_nbytes:,}: set INSPECTOR_UPLOAD_MB higher."
        )
    arriving, folder = reserve_upload(upload.nbytes, settings)
    try:
        with _local_disk(settings):
            done = 0
            for file in upload.files:
                pieces = _arriving(remote, upload, file, done, carrying)
                registry.write_upload(folder, file.name, pieces)
                done += file.nbytes
            write_told(folder, Told(upload.fingerprint, upload.name, upload.warnings))
    except BaseException:
        registry.discard_upload(arriving, settings=settings)
        raise
    return arriving


def find_upload(remote: Remote, fingerprint: str) -> SharedUpload:
    """An upload of the shared store by its fingerprint, or the first digits of it.

    Raises:
        CheckpointError: If it is not there, or the digits are not enough.
    """
    names = (fingerprint,)
    if len(fingerprint) < 64:
        stems = (name.removesuffix(".json") for name in remote.stamps(LISTED))
        names = tuple(name for name in stems if name.startswith(fingerprint))
    found = read_upload(remote, names[0]) if len(names) == 1 else None
    if found is None:
        what = (
            "matches more than one name in the shared store"
            if len(names) > 1
            else "is neither on this server nor in the shared store"
        )
        raise CheckpointError(
            f"The checkpoint {fingerprint[:SHOWN_DIGITS]}… {what}: pick one from the list, or upload it again."
        )
    return found


def read_upload(remote: Remote, fingerprint: str) -> SharedUpload | None:
    """What the shared store lists of an upload; None if it is not there, or damaged."""
    data = remote.read(listed_path(fingerprint), limit=MAX_LISTED_NBYTES)
    return read_shared(data, fingerprint) if data else None


def remove(remote: Remote, fingerprint: str) -> None:
    """Remove an upload from the shared store, and tell the servers that have copies."""
    remote.write(f"{DELETED}/{fingerprint}", [b"deleted\n"])
    remote.remove(listed_path(fingerprint))
    remote.remove(f"{BLOBS}/{fingerprint}")


def listed_path(fingerprint: str) -> str:
    """Where the shared store lists an upload's files."""
    return f"{LISTED}/{fingerprint}.json"


def is_here(fingerprint: str, settings: Settings) -> bool:
    """Whether this server holds an upload."""
    return (settings.home / UPLOADS / fingerprint / MANIFEST).is_file()


def _publish(fingerprint: str, remote: Remote, settings: Settings, carrying: Carrying) -> None:
    entry = settings.home / UPLOADS / fingerprint
    manifest = load_manifest(fingerprint, settings=settings)
    stored = next(s for s in list_checkpoints(settings) if s.fingerprint == fingerprint)
    upload = SharedUpload(
        fingerprint=fingerprint,
        name=stored.name,
        created=stored.created,
        files=tuple(SharedFile(file.name, file.nbytes, file.digest) for file in manifest.files),
        warnings=manifest.warnings,
    )
    _refuse_full(upload, remote, settings)
    done = 0
    for info, file in zip(manifest.files, upload.files, strict=True):
        pieces = _leaving(_original(info, entry), file, done, upload, carrying)
        remote.write(f"{BLOBS}/{fingerprint}/{file.sha256}", pieces)
        done += file.nbytes
    held = remote.stamps(f"{BLOBS}/{fingerprint}")
    if not {file.sha256 for file in upload.files} <= set(held):
        raise CheckpointError(
            "The upload was deleted from the shared store while it was being copied there: upload it again."
        )
    remote.write(listed_path(fingerprint), [write_shared(upload)])


def _refuse_full(upload: SharedUpload, remote: Remote, settings: Settings) -> None:
    if settings.shared_nbytes is None:
        return
    paths = {f"{LISTED}/{name}": name.removesuffix(".json") for name in remote.stamps(LISTED)}
    lists = (read_shared(data, paths[path]) for path, data in remote.read_all([*paths]).items())
    held = sum(each.nbytes for each in lists if each)
    if held + upload.nbytes > settings.shared_nbytes:
        raise CheckpointError(
            f"The shared store holds {held / MB:,.1f} of the {settings.shared_nbytes / MB:,.1f} MB that it may, and "
            f"the upload has {upload.nbytes / MB:,.1f} MB: ask the administrator to set INSPECTOR_SHARED_MB higher."
        )


def _original(file: FileInfo, entry: Path) -> Path:
    """Where a file lies as it was uploaded: of what was rebuilt, an entry keeps both."""
    original = entry / ORIGINALS / file.name
    return original if original.is_file() else file.path


def _leaving(path: Path, file: SharedFile, done: int, upload: SharedUpload, carrying: Carrying) -> Iterator[bytes]:
    digest = hashlib.sha256()
    with path.open("rb") as opened:
        while piece := opened.read(PIECE):
            _report(f"Copying {upload.name} to the shared store", done, upload, carrying)
            digest.update(piece)
            yield piece
            done += len(piece)
    if digest.hexdigest() != file.sha256:
        raise CheckpointError(
            f"This server's copy of {file.name} differs from the upload, so it cannot be copied to the shared store: "
            "delete the upload, and upload it again."
        )


def _arriving(remote: Remote, upload: SharedUpload, file: SharedFile, done: int, carrying: Carrying) -> Iterator[bytes]:
    """A file's pieces as they come; the end is reached only if all were right."""
    path = f"{BLOBS}/{upload.fingerprint}/{file.sha256}"
    nbytes = remote.size(path)
    digest = hashlib.sha256()
    try:
        if nbytes == file.nbytes:
            for piece in remote.pieces(path):
                _report(f"Fetching {upload.name}", done, upload, carrying)
                digest.update(piece)
                yield piece
                done += len(piece)
    except FileNotFoundError:
        nbytes = None
    if nbytes is None:
        raise CheckpointError(
            f"{file.name} of {upload.name} is missing from the shared store: delete the upload, and upload it again."
        )
    if digest.hexdigest() != file.sha256:
        raise CheckpointError(
            f"{file.name} of {upload.name} in the shared store differs from the upload (its hash does not match): "
            "delete the upload, and upload it again."
        )


def _report(what: str, done: int, upload: SharedUpload, carrying: Carrying) -> None:
    if carrying.stopped():
        raise CancelledError(STOPPED)
    total = max(upload.nbytes, 1)
    text = f"{what}: {done / 1e6:,.0f} of {total / 1e6:,.0f} MB"
    carrying.progress(min(done / total, 1.0), text)


@contextmanager
def _kept(entry: Path) -> Iterator[None]:
    """Have an upload stay while it is copied."""
    descriptor = None
    with suppress(OSError):
        descriptor = share(entry)
    try:
        yield
    finally:
        if descriptor is not None:
            os.close(descriptor)


@contextmanager
def _local_disk(settings: Settings) -> Iterator[None]:
    """Turn the errors of this server's own disk into sentences."""
    try:
        yield
    except OSError as error:
        raise CheckpointError(
            disk_sentence(error, settings)
            or f"The upload could not be read or stored here ({error.strerror}): try again."
        ) from error
