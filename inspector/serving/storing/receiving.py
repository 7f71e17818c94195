"""Put into the store what a worker has staged: the server does it, and believes no byte unchecked.

A worker stages into a folder of its own. What it says of the content (tensors, configuration,
warnings) is read by the strict schema of every manifest. Which files those are the server finds out
itself: it moves the bytes that it received, or reads those of the folder that was asked for, and
hashes them, so that no worker gives its files another checkpoint's fingerprint. The server parses
none of them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path, PurePath
from typing import Any

from inspector.errors import CheckpointError, WorkerError
from inspector.progress import Progress
from inspector.results.checkpoint import Opened
from inspector.serving.log import DIGITS, digest, record
from inspector.serving.storing.marks import Told, read_told
from inspector.serving.storing.owners import admit
from inspector.serving.storing.registry import sender_of
from inspector.serving.storing.room import make_room, refuse_beyond_own
from inspector.settings import Settings
from inspector.store.files import below, put_folder, turn, workspace
from inspector.store.hashing import BackgroundHasher, Identity, fingerprint_of, identify
from inspector.store.keeping.quota import nbytes_of
from inspector.store.manifests.documents import (
    DamagedError,
    copy_file,
    is_fingerprint,
    is_plain_file,
    is_plain_folder,
    read_document,
)
from inspector.store.manifests.entries import MANIFEST, OPENED, ORIGINALS, UPLOADS, load_manifest, save_manifest
from inspector.store.manifests.manifest import Manifest
from inspector.store.manifests.reader import FOLDER, WEIGHTS, read_manifest, read_places
from inspector.store.names import VOCABULARIES, clean_name, is_config
from inspector.store.origins.origin import Origin, Reach
from inspector.store.origins.sources import Source, is_below
from inspector.store.staging import is_kept
from inspector.store.stored import write_entry

MAX_FOLDER_FILE = 250_000_000  # bytes of a vocabulary, a little above what is staged
DAMAGED = "The worker staged other files than those it had to open, so they were rejected: open the checkpoint again."
OTHER = "The files from the shared store are not the upload that was requested: delete the upload, and upload it again."


@dataclass(frozen=True, slots=True)
class _ExpectedUpload:
    """What the server knows of an upload before it is opened."""

    told: Told | None  # which upload of the shared store it must be; None: a browser sent it
    owner: str  # empty: everybody


EVERYBODYS = _ExpectedUpload(None, "")


def look_ahead(origin: Origin, reach: Reach) -> BackgroundHasher | None:
    """Hash what a worker is about to open where it lies, while it reads the headers; None: it is the store's."""
    if origin.arrives or origin.digits:
        return None
    return BackgroundHasher(lambda: dict(origin.find(reach).files))


def receive(
    told: Opened,
    origin: Origin,
    reach: Reach,
    *,
    own: Path,
    progress: Progress,
    ahead: BackgroundHasher | None = None,
    end: Callable[[], None] = lambda: None,
) -> Opened:
    """Check what a worker staged, and put it into the store.

    Args:
        told: By the worker.
        origin: What was to be opened.
        reach: The server's own.
        own: The worker's folder.
        progress: Told what is done.
        ahead: From `look_ahead`.
        end: Ends the worker: it may hold files open that it has unpacked of an archive.

    Returns:
        What is now in the store, by the server's own knowledge.

    Raises:
        CheckpointError: If there is no room for it.
        WorkerError: If it is not what was to be opened.
    """
    try:
        if not (is_fingerprint(told.fingerprint) and told.fingerprint.startswith(origin.digits)):
            raise DamagedError("fingerprint")
        if origin.digits:
            manifest = load_manifest(told.fingerprint, settings=reach.settings)
        else:
            source = origin.find(reach)
            if source.packed:
                end()
            if source.owned:
                held = (_ExpectedUpload(read_told(each), sender_of(each.name)) for each in origin.held(reach.settings))
                asked = next(held, EVERYBODYS)  # an archive on the disk is nobody's
                staged = own / UPLOADS / told.fingerprint
                manifest = _received_uploads(staged, source, asked, settings=reach.settings, progress=progress)
            else:
                staged = own / OPENED / told.fingerprint
                manifest = _received(staged, source, settings=reach.settings, progress=progress, ahead=ahead)
    except (DamagedError, OSError) as error:
        raise WorkerError(DAMAGED) from error
    reference = origin.becomes(manifest.fingerprint, reach.fetched)
    return Opened(manifest.fingerprint, reference, manifest.name, told.warnings, manifest.on_hub_nbytes)


def _received(
    staged: Path, source: Source, *, settings: Settings, progress: Progress, ahead: BackgroundHasher | None
) -> Manifest:
    """Put into the store what a worker has made of files that stay where they are."""
    with _taken(staged, settings) as (taken, place):
        document = read_document(taken / MANIFEST)  # once: its worker may hold it open
        found = _copy_opened(taken, place, document, source)
        known = identify(found, owned=False, progress=progress, ahead=ahead, sampled=source.outline)
        _refuse_changed(document, known)
        document, built, files = _named(document, place, found, known)
        manifest = _checked(document, built, files, known)
        name = manifest.name if source.outline else clean_name(source.name)  # the worker has read the class
        manifest = replace(manifest, source=source.kind, name=name)
        return _put(manifest, built, settings.home / OPENED / built.name, owned=False)


def _received_uploads(
    told: Path, source: Source, asked: _ExpectedUpload, *, settings: Settings, progress: Progress
) -> Manifest:
    """Put every upload that a worker has staged into the store; an archive of snapshots holds several.

    Args:
        told: The one that the worker names.
        source: What was to be opened.
        asked: Which upload that must be, and whose it will be.
        settings: The server's.
        progress: Told what is done.

    Returns:
        The one that the worker names, by the server's own knowledge.

    Raises:
        CheckpointError: If an archive holds more than there is room for, or more than its owner may have.
    """
    arrived = None if source.packed else source.files
    staged = [path for path in below(told.parent) if is_fingerprint(path.name)]
    if told not in staged or (not source.several and len(staged) > 1):
        raise DamagedError("fingerprint")
    if source.packed and is_below(source.packed, (settings.home,)):  # it goes when what it held is stored
        going = nbytes_of(source.packed.parent)
        refuse_beyond_own(sum(map(nbytes_of, staged)), settings, asked.owner, going=going)
        make_room(-source.packed.stat().st_size, settings)
    stored = {}
    for each in staged:
        with _taken(each, settings) as (taken, built):
            stored[each] = _put_upload(taken, built, arrived, asked, settings=settings, progress=progress)
    # One that was there already keeps its entry, and the name that it was given.
    return load_manifest(stored[told], settings=settings)


def _put_upload(
    taken: Path,
    place: Path,
    arrived: Mapping[str, Path] | None,
    asked: _ExpectedUpload,
    *,
    settings: Settings,
    progress: Progress,
) -> str:
    """Put one upload into the store; its fingerprint."""
    document = read_document(taken / MANIFEST)  # once: its worker may hold it open
    found = _move_upload(taken, place, document, arrived)
    known = identify(found, owned=True, progress=progress, received=arrived is not None)
    document, built, files = _named(document, place, found, known) if arrived is not None else (document, place, found)
    if asked.told and asked.told.fingerprint != built.name:
        raise CheckpointError(OTHER)
    manifest = _checked(document, built, files, known)
    manifest = replace(manifest, source="upload", name=clean_name(asked.told.name) if asked.told else manifest.name)
    write_entry(built, name=manifest.name, nbytes=sum(file.nbytes for file in manifest.files))
    entry = settings.home / UPLOADS / built.name
    admit(asked.owner, manifest.name, entry, built=built)
    _put(manifest, built, entry, owned=True)
    with turn(settings.home):  # equal content may have been there, somebody else's
        admit(asked.owner, manifest.name, entry, built=entry)
    record("stored", checkpoint=digest(built.name), owner=asked.owner[:DIGITS])
    return built.name


@contextmanager
def _taken(staged: Path, settings: Settings) -> Iterator[tuple[Path, Path]]:
    """Move what was staged to where its worker cannot reach it, beside a folder that will be the entry."""
    with workspace(settings.home) as temporary:
        taken, built = temporary / "taken", temporary / staged.parent.name / staged.name
        staged.rename(taken)
        if not is_plain_folder(taken):
            raise DamagedError("folder")
        (built / FOLDER).mkdir(parents=True)
        yield taken, built


def _move_upload(
    taken: Path, built: Path, document: Mapping[str, Any], arrived: Mapping[str, Path] | None
) -> dict[str, Path]:
    """Move an upload's files into its entry: those that the server received, or that a worker unpacked.

    Returns:
        Where each file of the manifest lies as it was uploaded.
    """
    found = {}
    for name, place in read_places(document).items():
        rebuilt = place.parent.name == FOLDER and is_config(name)
        target = built / (ORIGINALS if rebuilt else place.parent.name) / name
        unpacked = taken / target.relative_to(built)
        if place != PurePath(FOLDER, name) and place != PurePath(WEIGHTS, name):
            raise DamagedError("path")
        if arrived is not None and name not in arrived:
            raise DamagedError("name")
        _move(unpacked if arrived is None else arrived[name], target)
        found[name] = target
    _copy_rest(taken, built)
    return found


def _copy_opened(taken: Path, built: Path, document: Mapping[str, Any], source: Source) -> dict[str, Path]:
    """Copy what a worker made of a checkpoint's small files; the others stay where they are.

    Returns:
        Where each file of the manifest lies, as the server finds it.
    """
    found = {}
    for name, place in read_places(document).items():
        path = source.files.get(name)
        if path is None or (place != PurePath(FOLDER, name) and place != path.resolve()):
            raise DamagedError("path")
        found[name] = path
    _copy_rest(taken, built)
    return found


def _copy_rest(taken: Path, built: Path) -> None:
    """Copy what a worker wrote for transformers: no descriptor that it holds leads to the copies."""
    for path in below(taken / FOLDER):
        if is_config(path.name) or path.name in VOCABULARIES:
            target = built / FOLDER / path.name
            if not target.exists():
                copy_file(path, target, limit=MAX_FOLDER_FILE)


def _move(path: Path, target: Path) -> None:
    if not (is_plain_folder(path.parent) and is_plain_file(path)):
        raise DamagedError("file")
    target.parent.mkdir(exist_ok=True)
    path.rename(target)
    if hasattr(os, "geteuid") and target.stat().st_uid != os.geteuid():  # a worker unpacked it, as another user
        os.chown(target, os.geteuid(), os.getegid())


def _refuse_changed(document: Mapping[str, Any], known: Mapping[str, Identity]) -> None:
    """Refuse small files that are others than those that were read; a weight file's stamp is checked as ever.

    Raises:
        CheckpointError: Naming the first of them.
    """
    for stored in document["files"]:
        inside = PurePath(stored["path"]) == PurePath(FOLDER, stored["name"])
        if inside and stored["sha256"] != known[stored["name"]].sha256:
            raise CheckpointError(f"{stored['name']} changed while it was opened: open it again.")


def _named(
    document: Mapping[str, Any], built: Path, files: Mapping[str, Path], known: Mapping[str, Identity]
) -> tuple[dict[str, Any], Path, dict[str, Path]]:
    """Give what the server has, and the worker did not hash, its digests and its fingerprint."""
    fingerprint = _fingerprint(known)
    named = built.rename(built.parent / fingerprint)
    told = [stored | asdict(known[stored["name"]]) for stored in document["files"]]
    moved = {
        name: named / path.relative_to(built) if path.is_relative_to(built) else path for name, path in files.items()
    }
    return {**document, "fingerprint": fingerprint, "files": told}, named, moved


def _fingerprint(known: Mapping[str, Identity]) -> str:
    return fingerprint_of({name: each.digest for name, each in known.items()})


def _checked(
    document: Mapping[str, Any], built: Path, files: Mapping[str, Path], known: Mapping[str, Identity]
) -> Manifest:
    """Read a manifest whose files are known, and compare it with them."""
    if _fingerprint(known) != built.name:
        raise DamagedError("fingerprint")
    manifest = read_manifest(document, built)
    if any(file.nbytes != files[file.name].stat().st_size for file in manifest.files):
        raise DamagedError("size")
    return manifest


def _put(manifest: Manifest, built: Path, entry: Path, *, owned: bool) -> Manifest:
    """Write the manifest anew, and move the entry to its place."""
    files = (
        replace(file, path=entry / file.path.relative_to(built)) if file.path.is_relative_to(built) else file
        for file in manifest.files
    )
    final = replace(manifest, folder=entry / FOLDER, files=tuple(files))
    save_manifest(final, entry, built=built)
    put_folder(built, entry, keep=lambda there: is_kept(there, final, owned=owned))
    return final
