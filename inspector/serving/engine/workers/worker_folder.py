"""The folder of one worker: what it may read of the store, and all that it may write.

The engine makes the folder before the process starts, because a sandbox cannot be widened later.
Before each request it links there what the request is about, and nothing else of the store; after
it, it copies what was computed. A link is another name for the same bytes and costs nothing; what
the worker may write is copied both ways, so that it changes nothing of the store's.
"""

from __future__ import annotations

import os
import shutil
import threading
import uuid
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from inspector.sandbox.privileges import give_to, worker_user
from inspector.serving.engine.wire import OpenRequest, RunRequest
from inspector.settings import Settings
from inspector.store.files import LOCK, below, fresh_folder, remove_folder, share
from inspector.store.keeping.arrays import MAX_NBYTES
from inspector.store.keeping.quota import GIVEN, trim
from inspector.store.keeping.results import RESULT, limit_of, put_copy
from inspector.store.manifests.documents import DamagedError, copy_file, is_fingerprint, is_plain_file
from inspector.store.manifests.entries import (
    ENTRY,
    INCOMINGS,
    MANIFEST,
    OPENED,
    TEMPORARY,
    UPLOADS,
    WORKERS,
    results_folder,
)
from inspector.store.manifests.reader import FOLDER, WEIGHTS
from inspector.store.reference import CheckpointRef

Signature = tuple[int, ...]  # tells an entry from a later one of the same name


class WorkerFolder:
    """A folder in the store for one worker; it goes with the worker. Any thread may call its methods.

    Args:
        settings: The server's.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._folder, self._lock = fresh_folder(settings.home / WORKERS, uuid.uuid4().hex)
        self._turn = threading.Lock()  # a worker that lies answers while it is given what it was asked about
        self._closed = False
        self._links: dict[Path, tuple[Signature, int | None]] = {}  # entry given -> what it was, and its lock
        self._about: set[str] = set()  # fingerprints that the worker was asked about, and not only compared with
        self._results: dict[Path, Signature] = {}  # of the worker's -> what it was when it was copied
        self._left = MAX_NBYTES  # of results that are still taken
        self._user = worker_user(settings.worker_user)
        self.own, self.given = self._folder / "own", self._folder / GIVEN
        self._make(self.own / TEMPORARY)
        for kind in (UPLOADS, OPENED, INCOMINGS):
            (self.given / kind).mkdir(parents=True)

    @property
    def settings(self) -> Settings:
        """The worker's settings."""
        return replace(self._settings, home=self.own, given=self.given)

    def prepare(self, request: OpenRequest | RunRequest) -> None:
        """Give the worker what a request is about; what is gone from the store goes here as well."""
        with self._turn, suppress(OSError):  # the worker says what is missing
            if self._closed:
                return
            if isinstance(request, OpenRequest):
                self._prepare_opening(request.reference)
                return
            for fingerprint in request.fingerprints:
                if is_fingerprint(fingerprint):
                    self._give(fingerprint)
                    self._give_results(fingerprint)
            if any(self._links.get(self.given / kind / request.fingerprint) for kind in ENTRIES):
                self._about.add(request.fingerprint)

    def collect(self) -> None:
        """Take what the worker computed into the store, for later workers of the same checkpoint."""
        with self._turn:
            taken = [
                self._take(path, results_folder(fingerprint, settings=self._settings) / path.name)
                for fingerprint in self._about
                for path in below(results_folder(fingerprint, settings=self.settings))
                if RESULT.fullmatch(path.name)
            ]
        if any(taken):
            with suppress(OSError):
                trim(self._settings)

    def close(self) -> None:
        """Remove it; the worker has ended."""
        self.collect()
        with self._turn:
            self._closed = True
            for entry in list(self._links):
                self._take_back(entry)
            remove_folder(self._folder)
            if self._lock is not None:
                os.close(self._lock)
                self._lock = None

    def _prepare_opening(self, reference: CheckpointRef) -> None:
        for folder in reference.origin.held(self._settings):
            if folder.parent.name in ENTRIES:
                self._give(folder.name)
                continue
            target = self.given / folder.relative_to(self._settings.home)
            target.mkdir()
            for path in below(folder):
                _link(path, target / path.name)

    def _give(self, fingerprint: str) -> None:
        """Link a checkpoint's entries, unless they are those that are here; the server holds them."""
        for kind in (UPLOADS, OPENED):
            entry, target = self._settings.home / kind / fingerprint, self.given / kind / fingerprint
            found = _signature(entry)
            if target in self._links and self._links[target][0] == found:
                with suppress(OSError):
                    os.utime(entry / LOCK)
                continue
            self._take_back(target)
            if found:
                self._links[target] = found, _hold(entry)
                _link_entry(entry, target)

    def _make(self, folder: Path) -> None:
        """Make a folder that the worker may write, and those above it."""
        if folder != self._folder and not folder.exists():
            self._make(folder.parent)
            folder.mkdir()
            give_to(folder, self._user)

    def _take_back(self, target: Path) -> None:
        _, lock = self._links.pop(target, ((), None))
        remove_folder(target)
        if lock is not None:
            os.close(lock)

    def _give_results(self, fingerprint: str) -> None:
        own = results_folder(fingerprint, settings=self.settings)
        for path in below(results_folder(fingerprint, settings=self._settings)):
            if RESULT.fullmatch(path.name) and not (own / path.name).exists():
                self._make(own)
                with suppress(OSError, DamagedError):
                    copy_file(path, own / path.name, limit=limit_of(path))
                    give_to(own / path.name, self._user)
                    self._results[own / path.name] = _stamp(own / path.name)

    def _take(self, path: Path, target: Path) -> bool:
        """Copy a result that is new; of one that was only used, note that."""
        with suppress(OSError, DamagedError):
            known, found = self._results.get(path), _stamp(path)
            if known == found:
                return False
            self._results[path] = found
            if known and known[:2] == found[:2]:
                os.utime(target)
                return False
            target.parent.mkdir(parents=True, exist_ok=True)
            self._left -= put_copy(path, target, limit=min(limit_of(path), self._left))
            return True
        return False


def _stamp(path: Path) -> Signature:
    found = path.lstat()
    return found.st_ino, found.st_size, found.st_mtime_ns


ENTRIES = (UPLOADS, OPENED)


def _hold(entry: Path) -> int | None:
    """Mark an entry as in use; a store that is read-only needs no mark."""
    with suppress(OSError):
        descriptor = share(entry)
        os.utime(entry / LOCK)
        return descriptor
    return None


def _signature(entry: Path) -> Signature:
    """Nothing if there is no entry."""
    found = []
    for name in (MANIFEST, ENTRY):
        with suppress(OSError):
            found.append((entry / name).lstat().st_ino)
    return tuple(found) if is_plain_file(entry / MANIFEST) else ()


def _link_entry(entry: Path, target: Path) -> None:
    """Link what is read of an entry; as it was uploaded, nobody reads it."""
    target.mkdir()
    for part in (entry / FOLDER, entry / WEIGHTS):
        for path in below(part):
            (target / part.name).mkdir(exist_ok=True)
            _link(path, target / part.name / path.name)
    (target / FOLDER).mkdir(exist_ok=True)
    for name in (ENTRY, MANIFEST):
        _link(entry / name, target / name)


def _link(path: Path, target: Path) -> None:
    """Give a plain file another name; a copy where the file system has no links."""
    if not is_plain_file(path):
        return
    try:
        os.link(path, target, follow_symlinks=False)
    except OSError:
        shutil.copyfile(path, target, follow_symlinks=False)
