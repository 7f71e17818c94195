"""Whether the shared store holds an upload as well: a server writes a mark into its entry."""

from __future__ import annotations

import hashlib
from contextlib import suppress
from pathlib import Path

from inspector.settings import Settings
from inspector.store.manifests.documents import read_bytes
from inspector.store.manifests.entries import OWNERS

MARK = ".shared"  # in an upload's entry: it can be fetched again
TO_SHARE = ".to-share"  # likewise: it is to be copied there
MAX_MARK = 1_000  # bytes
VEIL = "digest:"  # before the mark, in settings that do not tell the store's place


def store_mark(settings: Settings) -> str:
    """What a mark says: a digest of the store's place."""
    store = settings.store or ""
    if store.startswith(VEIL):
        return store.removeprefix(VEIL)
    return hashlib.sha256(store.encode()).hexdigest()


def is_marked(entry: Path, settings: Settings) -> bool:
    """Whether the shared store of these settings holds an upload, too."""
    return _says(entry / MARK, settings)


def is_waiting(entry: Path, settings: Settings) -> bool:
    """Whether an upload is to be copied to the shared store, and was not so far.

    One that has an owner stays here, and so does one that was sent before there was this shared store.
    """
    return _says(entry / TO_SHARE, settings) and not is_marked(entry, settings) and not (entry / OWNERS).exists()


def _says(mark: Path, settings: Settings) -> bool:
    with suppress(OSError, ValueError):
        return bool(settings.store) and read_bytes(mark, limit=MAX_MARK) == store_mark(settings).encode()
    return False
