"""The uploads in the store: what its list shows of them."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from inspector.settings import Settings
from inspector.store.files import below, write_atomically
from inspector.store.manifests.documents import is_fingerprint, is_plain_file, is_plain_folder
from inspector.store.manifests.entries import ENTRY, MANIFEST, UPLOADS, read_entry
from inspector.store.manifests.manifest import StoredCheckpoint
from inspector.store.names import clean_name, is_text

TIME = re.compile(r"[0-9T:.+Z-]{10,40}")  # ISO 8601, in the list


def list_checkpoints(settings: Settings) -> tuple[StoredCheckpoint, ...]:
    """The uploads in the store, newest first; an entry that cannot be read keeps its digits."""
    stored = [stored_in(path) for path in below(settings.home / UPLOADS) if is_entry(path)]
    return tuple(sorted(stored, key=lambda s: (s.created, s.fingerprint), reverse=True))


def write_entry(folder: Path, *, name: str, nbytes: int) -> None:
    """Write what the list shows of an upload."""
    created = datetime.now(UTC).isoformat(timespec="seconds")
    entry = {"name": clean_name(name), "nbytes": nbytes, "created": created}
    write_atomically(folder / ENTRY, json.dumps(entry))


def is_entry(folder: Path) -> bool:
    """Whether a folder is an upload's entry."""
    return is_fingerprint(folder.name) and is_plain_folder(folder) and is_plain_file(folder / MANIFEST)


def stored_in(folder: Path) -> StoredCheckpoint:
    """What the list shows of an entry."""
    entry = read_entry(folder)
    name, nbytes, created = entry.get("name"), entry.get("nbytes"), entry.get("created")
    if not (isinstance(created, str) and _is_time(created)):
        created = _changed(folder / MANIFEST)
    return StoredCheckpoint(
        fingerprint=folder.name,
        name=clean_name(name) if isinstance(name, str) and name and is_text(name) else folder.name[:12],
        nbytes=nbytes if type(nbytes) is int and 0 <= nbytes < 2**63 else 0,
        created=created,
        pinned=entry.get("pinned") is True,
    )


def _is_time(text: str) -> bool:
    with suppress(ValueError):
        return bool(TIME.fullmatch(text)) and datetime.fromisoformat(text).tzinfo is not None
    return False


def _changed(path: Path) -> str:
    try:
        stamp = path.stat().st_mtime
    except OSError:  # it is just being deleted
        stamp = 0.0
    return datetime.fromtimestamp(stamp, UTC).isoformat(timespec="seconds")
