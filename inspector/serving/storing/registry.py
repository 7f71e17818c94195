"""The uploads of a server: receive, name and delete them; nothing uploaded is parsed."""

from __future__ import annotations

import contextlib
import json
import os
import time
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from inspector.errors import CheckpointError
from inspector.settings import Settings
from inspector.store.disk import disk_sentence
from inspector.store.files import (
    FRESH,
    LOCK,
    UNFINISHED,
    acquire,
    below,
    create_file,
    fresh_folder,
    remove_folder,
    write_atomically,
)
from inspector.store.manifests.documents import is_plain_file, is_plain_folder
from inspector.store.manifests.entries import (
    ENTRY,
    INCOMINGS,
    MAPS,
    OPENED,
    TEMPORARY,
    UPLOADS,
    WORKERS,
    results_folder,
)
from inspector.store.names import MAX_CHECKPOINT_NAME
from inspector.store.stored import is_entry, stored_in
from inspector.text import quoted

MAX_FILE_NAME_NBYTES = 240  # a basename may have 255 bytes on every common file system
ABANDONED_SECONDS = 24 * 3600
_PREFIX = "_"
_held: dict[str, int | None] = {}  # uploads that this process is receiving -> their lock
_senders: dict[str, str] = {}  # the same -> who owns what becomes of them


def new_upload(settings: Settings, owner: str = "") -> tuple[str, Path]:
    """Start an upload.

    Args:
        settings: Of the store.
        owner: Who will own what becomes of it; empty: everybody.

    Returns:
        Its id, as in `incoming:<id>`, and the folder that takes its files.
    """
    sweep(settings)
    upload = uuid.uuid4().hex
    folder, _held[upload] = fresh_folder(settings.home / INCOMINGS, upload)
    if owner:
        _senders[upload] = owner
    return upload, folder


def write_upload(folder: Path, name: str, data: bytes | memoryview | Iterable[bytes]) -> None:
    """Write one file of an upload.

    Args:
        folder: From `new_upload`.
        name: The file's name as the browser tells it, with its folders. It never becomes a
            path: it is kept quoted, in one basename.
        data: The content, whole or in pieces.

    Raises:
        CheckpointError: If the name is too long.
    """
    pieces = [data] if isinstance(data, bytes | memoryview) else data
    with create_file(_place(folder, name)) as file:
        for piece in pieces:
            file.write(piece)


def move_upload(folder: Path, name: str, received: Path) -> None:
    """Make a file that lies in the store part of an upload.

    Args:
        folder: From `new_upload`.
        name: As in `write_upload`.
        received: Where the file is.

    Raises:
        CheckpointError: If the name is too long.
    """
    received.rename(_place(folder, name))


def _place(folder: Path, name: str) -> Path:
    stored = _PREFIX + quote(name, safe="", errors="replace")
    if len(stored) > MAX_FILE_NAME_NBYTES or not name:
        raise CheckpointError(f"The file name {quoted(name)} is too long: upload it under a shorter one.")
    return folder / stored


def read_names(folder: Path) -> dict[str, Path]:
    """The files of an upload by the names that the browser told; empty if it is gone."""
    return {
        unquote(path.name.removeprefix(_PREFIX)): path
        for path in sorted(below(folder))
        if path.name.startswith(_PREFIX) and is_plain_file(path)
    }


def incoming_folder(upload: str, *, settings: Settings) -> Path:
    """Where an upload's files are."""
    if not FRESH.fullmatch(upload):
        raise CheckpointError("This upload has no valid id: upload it again.")
    return settings.readable / INCOMINGS / upload


def sender_of(upload: str) -> str:
    """Who owns what becomes of an upload; empty: everybody."""
    return _senders.get(upload, "")


def sent_by(owner: str, settings: Settings) -> tuple[Path, ...]:
    """The folders of uploads that this process is receiving from somebody."""
    return tuple(incoming_folder(each, settings=settings) for each, sender in [*_senders.items()] if sender == owner)


def discard_upload(upload: str, *, settings: Settings) -> None:
    """Remove an upload that is not wanted any more, staged or not."""
    _senders.pop(upload, None)
    remove_folder(incoming_folder(upload, settings=settings))
    if (descriptor := _held.pop(upload, None)) is not None:
        os.close(descriptor)


def rename_checkpoint(fingerprint: str, name: str, *, settings: Settings) -> None:
    """Give an upload another name.

    Raises:
        CheckpointError: If the name is empty, too long or not printable, the upload is gone, or the disk is full.
    """
    refuse_name(name)
    with disk_in_words(settings):
        rewrite(_entry_folder(fingerprint, settings), name=name.strip())


def refuse_name(name: str) -> None:
    """Refuse what cannot be a checkpoint's name.

    Raises:
        CheckpointError: If it is empty, too long or not printable.
    """
    if not 1 <= len(name.strip()) <= MAX_CHECKPOINT_NAME or not name.isprintable():
        raise CheckpointError(
            f"A checkpoint's name must have 1 to {MAX_CHECKPOINT_NAME} printable characters, and this one "
            f"has {len(name.strip())}: choose another."
        )


def pin_checkpoint(fingerprint: str, *, pinned: bool, settings: Settings) -> None:
    """Keep an upload whatever room is needed, or do so no longer.

    Raises:
        CheckpointError: If the upload is gone, or the disk is full.
    """
    with disk_in_words(settings):
        rewrite(_entry_folder(fingerprint, settings), pinned=pinned)


def delete_checkpoint(fingerprint: str, *, settings: Settings) -> None:
    """Delete an upload completely: its files, what was made of them, what is known of them.

    Raises:
        CheckpointError: If it is not there.
    """
    remove_folder(_entry_folder(fingerprint, settings))
    discard_opened(fingerprint, settings=settings)
    sweep(settings)


def discard_opened(fingerprint: str, *, settings: Settings) -> None:
    """Remove what opening a checkpoint, and asking about it, has left in the store; its weights stay where they are."""
    for gone in (settings.home / OPENED / fingerprint, results_folder(fingerprint, settings=settings)):
        remove_folder(gone)


def close_to_others(settings: Settings) -> None:
    """Take the store's folders from other users of this machine, also those that an earlier version has made."""
    for kind in (UPLOADS, OPENED, INCOMINGS, TEMPORARY, WORKERS, MAPS):
        folder = settings.home / kind
        with contextlib.suppress(OSError):  # of another user, who has to do it
            if is_plain_folder(folder):
                folder.chmod(0o700)


def sweep(settings: Settings) -> None:
    """Remove what processes that are gone left half-written; safe while others work.

    Only what the store itself has made goes: INSPECTOR_HOME may name a folder that holds other things too, and folders
    with the same names in it.
    """
    for kind in (TEMPORARY, INCOMINGS, WORKERS):
        for folder in below(settings.home / kind):
            if FRESH.fullmatch(folder.name) and is_plain_file(folder / LOCK):
                _sweep_folder(folder)
    abandoned = time.time() - ABANDONED_SECONDS
    for kind in (TEMPORARY, INCOMINGS, WORKERS, UPLOADS, OPENED):
        for grave in below(settings.home / kind):  # cut off while it was made or removed
            with contextlib.suppress(OSError):
                if UNFINISHED.fullmatch(grave.name) and grave.lstat().st_mtime < abandoned and is_plain_folder(grave):
                    remove_folder(grave)


def _sweep_folder(folder: Path) -> None:
    try:
        descriptor = acquire(folder)
    except OSError:  # it is just being removed, or is no folder
        return
    if descriptor is None:
        return
    try:
        remove_folder(folder)
    finally:
        os.close(descriptor)


def rewrite(folder: Path, **changes: Any) -> None:
    """Change what the list shows of an entry."""
    entry = asdict(replace(stored_in(folder), **changes))
    del entry["fingerprint"]  # the folder's name
    write_atomically(folder / ENTRY, json.dumps(entry))


@contextlib.contextmanager
def disk_in_words(settings: Settings) -> Iterator[None]:
    """Turn the disk's errors into sentences."""
    try:
        yield
    except OSError as error:
        full = disk_sentence(error, settings)
        raise CheckpointError(full or f"The store cannot be written ({error.strerror or 'no access'}).") from error


def _entry_folder(fingerprint: str, settings: Settings) -> Path:
    folder = settings.home / UPLOADS / fingerprint
    if not is_entry(folder):
        raise CheckpointError("This checkpoint is no longer in the store: reload the page.")
    return folder
