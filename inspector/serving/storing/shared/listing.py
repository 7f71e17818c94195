"""What the shared store held a moment ago.

Pages list uploads at every run, so they do not wait for an object store: it is asked in a thread,
and what it said last is shown meanwhile. Whoever asks also drops copies of what was deleted
elsewhere.
"""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from inspector.errors import CheckpointError, InspectorError
from inspector.serving.storing import registry
from inspector.serving.storing.shared import publishing as shared
from inspector.serving.storing.shared.entry import SharedUpload, read_shared
from inspector.serving.storing.shared.remote import LISTED, Remote, open_remote
from inspector.settings import Settings
from inspector.store.keeping.shared import is_marked
from inspector.store.manifests.documents import is_fingerprint
from inspector.store.manifests.entries import UPLOADS
from inspector.store.stored import list_checkpoints

FRESH_SECONDS = 10.0  # after which the shared store is asked again
FIRST_SECONDS = 3.0  # that a page waits for it, the first time and after a change
ATTEMPTS = 2


class Listing:
    """What one shared store said last; every method may be called from any thread."""

    def __init__(self) -> None:
        self.trouble: str | None = None  # the sentence that asking failed with; None: it did not
        self._uploads: dict[str, tuple[Any, SharedUpload]] = {}  # with the stamp of its list
        self._asked = float("-inf")  # time.monotonic()
        self._changes = 0
        self._asking: threading.Thread | None = None
        self._lock = threading.Lock()

    def uploads(self, settings: Settings) -> tuple[SharedUpload, ...]:
        """The uploads, as they were a moment ago; none while the store has never answered."""
        for _ in range(ATTEMPTS):  # a second time if something was changed while it was asked
            with self._lock:
                known = self._asked > float("-inf")
                asking = self._ask(settings)
            if known or not asking:
                break
            asking.join(FIRST_SECONDS)
        return tuple(upload for _, upload in self._uploads.values())

    def ask_again(self) -> None:
        """Something was changed: the next list waits for what the store says now."""
        with self._lock:
            self._changes += 1
            self._asked = float("-inf")

    def _ask(self, settings: Settings) -> threading.Thread | None:
        if self._asking is None and time.monotonic() - self._asked > FRESH_SECONDS:
            self._asking = threading.Thread(target=self._refresh, args=(settings, self._changes), daemon=True)
            self._asking.start()
        return self._asking

    def _refresh(self, settings: Settings, changes: int) -> None:
        try:
            self._uploads = _read(open_remote(settings), self._uploads, settings)
            self.trouble = None
        except InspectorError as error:
            self.trouble = str(error)
        finally:
            with self._lock:
                if changes == self._changes:
                    self._asked = time.monotonic()
                self._asking = None


def listing(settings: Settings) -> Listing:
    """The list of the settings' shared store, as their server keeps it."""
    return _listing(settings.store or "", settings.home)


@cache
def _listing(store: str, home: Path) -> Listing:
    return Listing()


def drop_copies(remote: Remote, settings: Settings) -> None:
    """Drop what this server holds of uploads that were deleted from the shared store.

    Raises:
        CheckpointError: If the shared store cannot be reached.
    """
    _drop(set(remote.stamps(shared.DELETED)) - _listed(remote).keys(), settings)


def _read(
    remote: Remote, before: dict[str, tuple[Any, SharedUpload]], settings: Settings
) -> dict[str, tuple[Any, SharedUpload]]:
    stamps = _listed(remote)
    same = {name: before[name] for name in stamps if name in before}
    same = {name: found for name, found in same.items() if found[0] == stamps[name]}
    paths = {f"{LISTED}/{name}.json": name for name in stamps.keys() - same.keys()}
    for path, data in remote.read_all(list(paths)).items():
        if upload := read_shared(data, paths[path]):
            same[paths[path]] = (stamps[paths[path]], upload)
    _drop(set(remote.stamps(shared.DELETED)) - stamps.keys(), settings)
    return same


def _listed(remote: Remote) -> dict[str, Any]:
    """Fingerprint -> stamp of every list that is small enough to be one."""
    return {
        name.removesuffix(".json"): stamp
        for name, stamp in remote.stamps(LISTED).items()
        if name.endswith(".json") and is_fingerprint(name.removesuffix(".json"))
        if (stamp[0] or 0) <= shared.MAX_LISTED_NBYTES
    }


def _drop(deleted: set[str], settings: Settings) -> None:
    for stored in list_checkpoints(settings):
        entry = settings.home / UPLOADS / stored.fingerprint
        if stored.fingerprint in deleted and is_marked(entry, settings):
            with suppress(CheckpointError):  # somebody else has just removed it
                registry.delete_checkpoint(stored.fingerprint, settings=settings)
