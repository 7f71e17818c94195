"""Put into the store what a worker has staged: the server does it, and believes no byte unchecked.

A worker stages into a folder of its own. What it says of the content (tensors, configuration,
warnings) is read by the strict schema of every manifest. Which files those are the server finds out
itself: it moves the bytes that it received, or reads those of the folder that was asked for, and
hashes them, so that no worker gives its files another checkpoint's fingerprint. The server parses
none of them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, replace
from pathlib import Path, PurePath
from typing import Any

from inspector.errors import CheckpointError, WorkerError
from inspector.progress import Progress
from inspector.results.checkpoint import Opened
from inspector.settings import Settings
from inspector.store.files import below, put_folder, workspace
from inspector.store.hashing import BackgroundHasher, Identity, fingerprint_of, identify
from inspector.store.keeping.marks import Told, read_told
from inspector.store.keeping.quota import make_room
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
from inspector.store.names import CONFIGS, VOCABULARIES, clean_name, is_archive
from inspector.store.origins.hub import versions_folder
from inspector.store.origins.places import demo_source, outline_source, path_source
from inspector.store.origins.sources import Source, choose_members, folder_source
from inspector.store.reference import ARRIVED, OUTLINE, STORED, CheckpointRef
from inspector.store.registry import incoming_folder, read_names, write_entry
from inspector.store.staging import is_kept

MAX_FOLDER_FILE = 250_000_000  # bytes of a vocabulary, a little above what is staged
DAMAGED = "The worker staged other files than those it had to open, so they were rejected: open the checkpoint again."
OTHER = "The files from the shared store are not the upload that was requested: delete the upload, and upload it again."


def look_ahead(reference: CheckpointRef, *, settings: Settings, restrict_paths: bool) -> BackgroundHasher | None:
    """Hash what a worker is about to open where it lies, while it reads the headers; None: it lies elsewhere."""
    if reference.kind not in ("demo", "path"):
        return None
    return BackgroundHasher(
        lambda: {
            name: path
            for source in _sources(reference, settings, restrict_paths=restrict_paths)
            for name, path in source.files.items()
        }
    )


def receive(
    told: Opened,
    reference: CheckpointRef,
    *,
    own: Path,
    settings: Settings,
    restrict_paths: bool,
    progress: Progress,
    ahead: BackgroundHasher | None = None,
) -> Opened:
    """Check what a worker staged, and put it into the store.

    Args:
        told: By the worker.
        reference: What was to be opened.
        own: The worker's folder; a worker that has unpacked an archive must have ended.
        settings: The server's.
        restrict_paths: As in `open_checkpoint`.
        progress: Told what is done.
        ahead: From `look_ahead`.

    Returns:
        What is now in the store, by the server's own knowledge.

    Raises:
        CheckpointError: If there is no room for it.
        WorkerError: If it is not what was to be opened.
    """
    try:
        if reference.kind in STORED:
            manifest = _stored(told.fingerprint, reference, settings)
        else:
            manifest = _received(
                told.fingerprint,
                reference,
                own,
                settings=settings,
                restrict_paths=restrict_paths,
                progress=progress,
                ahead=ahead,
            )
    except (DamagedError, OSError) as error:
        raise WorkerError(DAMAGED) from error
    found = reference if reference.kind not in (*ARRIVED, *STORED) else CheckpointRef("upload", manifest.fingerprint)
    return Opened(manifest.fingerprint, str(found), manifest.name, told.warnings)


def _stored(fingerprint: str, reference: CheckpointRef, settings: Settings) -> Manifest:
    if not fingerprint.startswith(reference.value):
        raise DamagedError("fingerprint")
    return load_manifest(fingerprint, settings=settings)


def _received(
    fingerprint: str,
    reference: CheckpointRef,
    own: Path,
    *,
    settings: Settings,
    restrict_paths: bool,
    progress: Progress,
    ahead: BackgroundHasher | None,
) -> Manifest:
    if not is_fingerprint(fingerprint):
        raise DamagedError("fingerprint")
    if any(below(own / UPLOADS)):
        return _received_uploads(fingerprint, reference, own, settings, progress)
    for source in _sources(reference, settings, restrict_paths=restrict_paths):
        with suppress(DamagedError), _taken(own / OPENED / fingerprint, settings) as (taken, place):
            document = read_document(taken / MANIFEST)  # once: its worker may hold it open
            found = _copy_opened(taken, place, document, source)
            outline = source.kind == OUTLINE
            known = identify(found, owned=False, progress=progress, ahead=ahead, sampled=outline)
            if source.kind == "hub":  # its worker says which version it read
                built, files = place, found
            else:
                _refuse_changed(document, known)
                document, built, files = _named(document, place, found, known)
            manifest = _checked(document, built, files, known)
            name = manifest.name if outline else clean_name(source.name)  # the worker has read the class
            manifest = replace(manifest, source=source.kind, name=name)
            return _put(manifest, built, settings.home / OPENED / built.name, owned=False)
    raise DamagedError("source")


def _sources(reference: CheckpointRef, settings: Settings, *, restrict_paths: bool) -> Iterator[Source]:
    """The files that a reference names, by their names alone; of a hub model each version in the cache."""
    if reference.kind == "demo":
        yield demo_source(reference)
    elif reference.kind == "path":
        found = path_source(reference, settings, restrict=restrict_paths)
        if isinstance(found, Source):
            yield found
    elif reference.kind == OUTLINE:
        yield outline_source(reference, settings)
    elif reference.kind == "hub":
        versions = versions_folder(reference.value)
        for folder in below(versions):
            yield folder_source(folder, kind="hub", name=reference.value)


def _received_uploads(
    fingerprint: str, reference: CheckpointRef, own: Path, settings: Settings, progress: Progress
) -> Manifest:
    """Put every upload that a worker has staged into the store; an archive of snapshots holds several."""
    if reference.kind not in ARRIVED and not (reference.kind == "path" and is_archive(reference.value)):
        raise DamagedError("kind")  # of no other its worker has ended: it may hold the files open
    folder = incoming_folder(reference.value, settings=settings) if reference.kind in ARRIVED else None
    arrived, asked = (_arrived(folder), read_told(folder)) if folder else (None, None)
    if folder and arrived is None:  # an archive goes when what it held is stored
        make_room(-sum(path.stat().st_size for path in read_names(folder).values()), settings)
    staged = [path for path in below(own / UPLOADS) if is_fingerprint(path.name)]
    if fingerprint not in {path.name for path in staged} or (arrived and len(staged) > 1):
        raise DamagedError("fingerprint")
    stored = []
    for each in staged:
        with _taken(each, settings) as (taken, built):
            stored.append(_put_upload(taken, built, arrived, asked, settings=settings, progress=progress))
    fingerprint = stored[0] if arrived else fingerprint
    # One that was there already keeps its entry, and the name that it was given.
    return load_manifest(fingerprint, settings=settings)


def _put_upload(
    taken: Path,
    place: Path,
    arrived: Mapping[str, Path] | None,
    asked: Told | None,
    *,
    settings: Settings,
    progress: Progress,
) -> str:
    """Put one upload into the store; its fingerprint."""
    document = read_document(taken / MANIFEST)  # once: its worker may hold it open
    found = _move_upload(taken, place, document, arrived)
    known = identify(found, owned=True, progress=progress, received=arrived is not None)
    document, built, files = _named(document, place, found, known) if arrived else (document, place, found)
    if asked and asked.fingerprint != built.name:
        raise CheckpointError(OTHER)
    manifest = _checked(document, built, files, known)
    manifest = replace(manifest, source="upload", name=clean_name(asked.name) if asked else manifest.name)
    write_entry(built, name=manifest.name, nbytes=sum(file.nbytes for file in manifest.files))
    _put(manifest, built, settings.home / UPLOADS / built.name, owned=True)
    return built.name


def _arrived(folder: Path) -> Mapping[str, Path] | None:
    """The files of an upload by the names that they have in the store; None: it is an archive."""
    names = read_names(folder)
    if any(map(is_archive, names)):
        return None
    chosen, _ = choose_members(names)
    return {name: names[member] for name, member in chosen.items()}


@contextmanager
def _taken(staged: Path, settings: Settings) -> Iterator[tuple[Path, Path]]:
    """Move what was staged to where its worker cannot reach it, beside a folder that will be the entry."""
    with workspace(settings.home) as temporary:
        taken, built = temporary / "taken", temporary / staged.parent.name / staged.name
        staged.rename(taken)
        if not is_plain_folder(taken):
            raise DamagedError("folder")
        (built / FOLDER).mkdir(parents=True)
        try:
            yield taken, built
        except DamagedError:
            taken.rename(staged)  # another version may be the one
            raise


def _move_upload(
    taken: Path, built: Path, document: Mapping[str, Any], arrived: Mapping[str, Path] | None
) -> dict[str, Path]:
    """Move an upload's files into its entry: those that the server received, or that a worker unpacked.

    Returns:
        Where each file of the manifest lies as it was uploaded.
    """
    found = {}
    for name, place in read_places(document).items():
        rebuilt = place.parent.name == FOLDER and name in CONFIGS
        target = built / (ORIGINALS if rebuilt else place.parent.name) / name
        unpacked = taken / target.relative_to(built)
        if place != PurePath(FOLDER, name) and place != PurePath(WEIGHTS, name):
            raise DamagedError("path")
        if arrived and name not in arrived:
            raise DamagedError("name")
        _move(arrived[name] if arrived else unpacked, target)
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
        if path.name in CONFIGS or path.name in VOCABULARIES:
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
