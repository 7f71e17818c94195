"""The files of the shared store: any file system of fsspec's, its errors turned into sentences.

Bytes alone pass through here, and nothing of them is parsed but our own small JSON. The keys of an
object store are the business of its library, which finds them in this process' environment; a
sentence tells what failed by the error's class, never by its text.
"""

from __future__ import annotations

import errno
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from typing import Any

from inspector.errors import CheckpointError, InspectorError
from inspector.settings import Settings

LISTED = "checkpoints"  # the folder of the lists of uploads
PIECE = 8_000_000  # bytes that are held at once
SILENT_SECONDS = 10  # without a word from an object store, after which it counts as out of reach
OPTIONS: dict[str, dict[str, Any]] = {
    "s3": {
        "config_kwargs": {
            "connect_timeout": SILENT_SECONDS,
            "read_timeout": SILENT_SECONDS,
            "retries": {"max_attempts": 2},
        },
        "use_listings_cache": False,
    },
    "file": {"auto_mkdir": True},
}
OBJECTS = {"s3", "s3a", "gs", "gcs", "abfs", "az", "oci"}  # where nothing half-written is seen


class Remote:
    """The shared store; every method may be called from any thread.

    Raises:
        CheckpointError: Every method, if the store cannot be used; one sentence says why.
    """

    def __init__(self, url: str) -> None:
        self._scheme = url.partition("://")[0]
        with _translated():
            self._files, self._root = _file_system(url)
            if self._scheme == "file" and not self._files.isdir(self._root):
                raise CheckpointError("The shared store's folder does not exist: create it, or mount it again.")

    def stamps(self, folder: str) -> dict[str, tuple[Any, ...]]:
        """What a folder holds: basename -> something that changes when the file does."""
        found: dict[str, tuple[Any, ...]] = {}
        with _translated(), suppress(FileNotFoundError):
            for info in self._files.ls(self._path(folder), detail=True):
                name = info["name"].rstrip("/").rpartition("/")[2]
                found[name] = tuple(info.get(key) for key in ("size", "mtime", "ETag"))
        return found

    def read(self, path: str, *, limit: int) -> bytes | None:
        """A small file; None if it is not there, or larger than the limit in bytes."""
        with _translated(), suppress(FileNotFoundError):
            data: bytes = self._files.cat_file(self._path(path), start=0, end=limit + 1)
            return data if len(data) <= limit else None
        return None

    def read_all(self, paths: Sequence[str]) -> dict[str, bytes]:
        """Small files at once; those that are not there any more are left out."""
        with _translated():
            wanted = {self._path(path): path for path in paths}
            answers = self._files.cat(list(wanted), on_error="return") if wanted else {}
            for answer in answers.values():
                if isinstance(answer, Exception) and not isinstance(answer, FileNotFoundError):
                    raise answer
        return {wanted[path]: data for path, data in answers.items() if isinstance(data, bytes)}

    def size(self, path: str) -> int | None:
        """The size of a file in bytes; None if it is not there."""
        with _translated(), suppress(FileNotFoundError):
            return int(self._files.info(self._path(path))["size"])
        return None

    def pieces(self, path: str) -> Iterator[bytes]:
        """A file's content, piece by piece.

        Raises:
            FileNotFoundError: If it is not there.
        """
        with _translated(), self._files.open(self._path(path), "rb", block_size=PIECE, cache_type="none") as file:
            while piece := file.read(PIECE):
                yield piece

    def write(self, path: str, pieces: Iterable[bytes]) -> None:
        """Write a file, which is seen whole or not at all."""
        target = self._path(path)
        whole = self._scheme in OBJECTS
        written = target if whole else f"{target}.{uuid.uuid4().hex}.part"
        with _translated():
            try:
                self._write(written, pieces)
                if not whole:
                    self._files.mv(written, target)
            except FileNotFoundError:
                raise CheckpointError("The location in INSPECTOR_STORE does not exist: create it first.") from None
            except BaseException:
                if not whole:
                    with suppress(Exception):
                        self._files.rm_file(written)
                raise

    def remove(self, path: str) -> None:
        """Remove a file or a folder with all below it, if it is there."""
        with _translated(), suppress(FileNotFoundError):
            self._files.rm(self._path(path), recursive=True)

    def _write(self, path: str, pieces: Iterable[bytes]) -> None:
        file = self._files.open(path, "wb", block_size=PIECE)
        try:
            for piece in pieces:
                file.write(piece)
        except BaseException:
            with suppress(Exception):  # what was begun is not to appear, nor when it is collected
                file.discard()
                file.closed = True
            raise
        file.close()

    def _path(self, path: str) -> str:
        return f"{self._root}/{path}"


def open_remote(settings: Settings) -> Remote:
    """The shared store of the settings.

    Raises:
        CheckpointError: If there is none, or it cannot be used.
    """
    if settings.store is None:
        raise CheckpointError("This server has no shared store: set INSPECTOR_STORE.")
    return Remote(settings.store)


@cache
def _file_system(url: str) -> tuple[Any, str]:
    """One for all threads: fsspec itself would keep one for each that ever asked."""
    from fsspec.core import url_to_fs

    options = OPTIONS.get(url.partition("://")[0], {})
    files, root = url_to_fs(url, skip_instance_cache=True, **options)
    return files, str(root).rstrip("/")


@contextmanager
def _translated() -> Iterator[None]:
    """Turn whatever the store's library raises into a sentence without an address or a key."""
    try:
        yield
    except (InspectorError, FileNotFoundError):
        raise
    except PermissionError:
        raise CheckpointError(
            "The shared store denies this server access: check its keys and their permissions."
        ) from None
    except Exception as error:
        if getattr(error, "errno", None) in {errno.ENOSPC, errno.EDQUOT}:
            raise CheckpointError("The shared store is full: delete uploads, or give it more space.") from None
        raise CheckpointError("The shared store cannot be reached: try again later.") from None
