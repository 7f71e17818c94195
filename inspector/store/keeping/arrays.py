"""Keep arrays on disk, by a key that says all that they depend on."""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import time
import uuid
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inspector.store.files import NEW
from inspector.store.manifests.documents import read_bytes

if TYPE_CHECKING:  # the web process lists the store without it
    import numpy as np

MAX_NBYTES = 2_000_000_000  # of all arrays that are kept
STALE_SECONDS = 3600.0  # after which a file that was never finished is swept
DIGEST_NBYTES = 32
SUFFIX = ".arrays"


class ArrayCache:
    """Arrays by key, below one folder; the ones not read for longest go first.

    A file starts with the sha256 of the rest, so one that was cut short or changed counts as not
    there. A cache never fails anybody: a disk that is full or read-only keeps nothing.
    """

    def __init__(
        self, folder: Path, *, max_nbytes: int = MAX_NBYTES, after_put: Callable[[], None] = lambda: None
    ) -> None:
        self._folder = folder
        self._after_put = after_put
        self._max_nbytes = max_nbytes

    def get(self, key: Mapping[str, Any]) -> dict[str, np.ndarray] | None:
        """The arrays of a key; None: not there, or damaged.

        Args:
            key: Plain JSON values.
        """
        import numpy as np

        path = self._path(key)
        try:
            data = read_bytes(path, limit=self._max_nbytes)
            digest, body = data[:DIGEST_NBYTES], memoryview(data)[DIGEST_NBYTES:]
            if hashlib.sha256(body).digest() != digest:
                path.unlink()
                return None
            with np.load(io.BytesIO(body), allow_pickle=False) as file:
                arrays = {name: file[name] for name in file.files}
            with contextlib.suppress(PermissionError):  # another user's
                os.utime(path)
        except (OSError, ValueError, zipfile.BadZipFile):
            return None
        return arrays

    def put(self, key: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> None:
        """Keep arrays; readers see all of them or none."""
        import numpy as np

        buffer = io.BytesIO()
        np.savez(buffer, allow_pickle=False, **arrays)
        body = buffer.getvalue()
        if len(body) + DIGEST_NBYTES > self._max_nbytes:
            return
        path = self._path(key)
        temporary = self._folder / f"{NEW}{uuid.uuid4().hex}"
        with contextlib.suppress(OSError):
            self._folder.mkdir(parents=True, exist_ok=True)
            try:
                with temporary.open("wb") as file:
                    file.write(hashlib.sha256(body).digest())
                    file.write(body)
                    file.flush()
                    os.fsync(file.fileno())
                temporary.replace(path)
            finally:
                temporary.unlink(missing_ok=True)
            self._trim()
            self._after_put()

    def _path(self, key: Mapping[str, Any]) -> Path:
        text = json.dumps(key, sort_keys=True, ensure_ascii=False)
        return self._folder / f"{hashlib.sha256(text.encode()).hexdigest()}{SUFFIX}"

    def _trim(self) -> None:
        now = time.time()
        for path in self._folder.glob(f"{NEW}*"):  # of workers that were killed
            with contextlib.suppress(OSError):
                if now - path.stat().st_mtime > STALE_SECONDS:
                    path.unlink()
        kept = []
        for path in self._folder.glob(f"*{SUFFIX}"):
            with contextlib.suppress(OSError):
                stat = path.stat()
                kept.append((stat.st_mtime_ns, path.name, stat.st_size, path))
        total = sum(size for _, _, size, _ in kept)
        for _, _, size, path in sorted(kept):
            if total <= self._max_nbytes:
                return
            with contextlib.suppress(OSError):
                path.unlink()
            total -= size
