"""The folder of one worker, made and removed by the engine."""

from __future__ import annotations

import os
import uuid
from pathlib import Path

from inspector.store.files import fresh_folder, remove_folder
from inspector.store.registry import TEMPORARY, WORKERS


class Desk:
    """A folder in the store that one worker may write; it goes with the worker.

    Args:
        home: The store's folder.
    """

    def __init__(self, home: Path) -> None:
        self._folder, self._lock = fresh_folder(home / WORKERS, uuid.uuid4().hex)
        self.own = self._folder / "own"
        (self.own / TEMPORARY).mkdir(parents=True)

    def close(self) -> None:
        """Remove it; the worker has ended."""
        remove_folder(self._folder)
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None
