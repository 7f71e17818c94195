"""Find folders of this machine that look like checkpoints, by the names of their files alone."""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from inspector.store.names import file_format, is_text, weight_format
from inspector.store.origins.on_disk import folder_name, hub_id
from inspector.store.reference import CheckpointRef

# Folders that hold no model's files: of programs, and in the hub's cache of data sets and of content without names.
PASSED_BY = ("node_modules", "__pycache__", "site-packages", "blobs", "datasets--", "spaces--")
FRESH_SECONDS = 20.0  # after which a search is made again


@dataclass(frozen=True, slots=True)
class Bounds:
    """How far a search goes."""

    depth: int = 6  # folders below a place
    entries: int = 50_000  # names read, of all folders together
    folder: int = 5_000  # names read of one folder
    seconds: float = 3.0
    found: int = 200  # checkpoints kept, the newest ones


@dataclass(frozen=True, slots=True)
class FoundFolder:
    """A folder that looks like a checkpoint."""

    path: Path
    name: str  # the hub's id, or the folder's name
    modified: float  # of its newest file, seconds since 1970

    @property
    def reference(self) -> str:
        """What opens it."""
        return str(CheckpointRef("path", str(self.path)))

    @property
    def of_hub(self) -> bool:
        """Whether it lies in the hub's cache."""
        return bool(hub_id(self.path))


def find_checkpoints(places: Iterable[Path], bounds: Bounds | None = None) -> tuple[FoundFolder, ...]:
    """Look for checkpoints in some folders and below them, those nearest first. No link is followed.

    Args:
        places: Where to look; one that cannot be read is passed by.
        bounds: How far; what lies beyond is not found.

    Returns:
        What was found, the newest first.
    """
    bounds = bounds or Bounds()
    found = {each.path: each for each in _walk(places, bounds)}
    return tuple(sorted(found.values(), key=lambda each: (-each.modified, str(each.path)))[: bounds.found])


def _walk(places: Iterable[Path], bounds: Bounds) -> Iterator[FoundFolder]:
    until, left = time.monotonic() + bounds.seconds, bounds.entries
    waiting = deque((place, 0) for place in dict.fromkeys(places) if place.parent != place)
    known = {place for place, _ in waiting}
    while waiting and left > 0 and time.monotonic() < until:
        folder, depth = waiting.popleft()
        entries = _entries(folder, min(left, bounds.folder))
        left -= len(entries) + 1
        if checkpoint := _looked_at(folder, entries):
            yield checkpoint
        if depth < bounds.depth:
            below = {folder / entry.name for entry in entries if _leads_on(entry)} - known
            known |= below
            waiting.extend((each, depth + 1) for each in sorted(below))


def _entries(folder: Path, most: int) -> list[os.DirEntry[str]]:
    """What a folder holds, so far as a link can name it."""
    try:
        with os.scandir(folder) as found:
            return [entry for entry in islice(found, most) if is_text(entry.name)]
    except OSError:
        return []


def _leads_on(entry: os.DirEntry[str]) -> bool:
    if entry.name.startswith((".", *PASSED_BY)):
        return False
    try:
        return entry.is_dir(follow_symlinks=False)
    except OSError:
        return False


def _looked_at(folder: Path, entries: list[os.DirEntry[str]]) -> FoundFolder | None:
    """A folder as a checkpoint, if it holds a configuration and weights."""
    files = [entry for entry in entries if file_format(entry.name)]
    weights = [entry for entry in files if weight_format(entry.name)]
    if not weights or not any(entry.name == "config.json" for entry in files):
        return None
    return FoundFolder(folder, folder_name(folder), max(map(_modified, weights)))


def _modified(entry: os.DirEntry[str]) -> float:
    try:
        return entry.stat(follow_symlinks=False).st_mtime
    except OSError:
        return 0.0


class FolderSearch:
    """Looks in a thread of its own, so that nobody waits for a slow disk; any thread may ask.

    Args:
        places: Where to look, asked at each search.
        bounds: As in `find_checkpoints`.
        fresh_seconds: After which a search is made again.
    """

    def __init__(
        self,
        places: Callable[[], Iterable[Path]],
        bounds: Bounds | None = None,
        *,
        fresh_seconds: float = FRESH_SECONDS,
    ) -> None:
        self._places, self._bounds, self._fresh_seconds = places, bounds, fresh_seconds
        self._lock = threading.Lock()
        self._found: tuple[FoundFolder, ...] = ()
        self._under_way = False
        self._ended: float | None = None

    @property
    def under_way(self) -> bool:
        """Whether it is looking."""
        return self._under_way

    def found(self) -> tuple[FoundFolder, ...]:
        """What the last search found; begins another one where that was a while ago."""
        with self._lock:
            stale = self._ended is None or time.monotonic() - self._ended > self._fresh_seconds
            if stale and not self._under_way:
                self._under_way = True
                threading.Thread(target=self._look, name="search", daemon=True).start()
            return self._found

    def _look(self) -> None:
        found = self._found
        try:
            found = find_checkpoints(self._places(), self._bounds)
        finally:
            with self._lock:
                self._found, self._under_way, self._ended = found, False, time.monotonic()
