"""Have the system fetch a checkpoint's files from the disk while the libraries that will read them are imported."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

import psutil

from inspector.settings import Settings
from inspector.store.manifests.manifest import Manifest

MOST_GB = 20  # of files: reading more takes so long that a second less is nothing, or is done in part only
MEMORY_SHARE = 0.5  # of what is free: more would drop from it what has just been fetched
PIECE = 128 * 1024  # Linux fetches no more at once, unless it is set to


def read_ahead(manifest: Manifest, *, settings: Settings) -> None:
    """Ask the system for all files of a checkpoint, unless they are too large; it fetches them meanwhile.

    Where it takes no such advice, files are fetched when they are read.
    """
    most = min(MOST_GB * 1e9, MEMORY_SHARE * psutil.virtual_memory().available)
    if hasattr(os, "posix_fadvise") and sum(file.nbytes for file in manifest.files) <= most:
        for file in manifest.files:
            with suppress(OSError):  # whoever reads it says what is wrong
                _ask_for(file.path, file.nbytes)


def _ask_for(path: Path, nbytes: int) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        for begin in range(0, nbytes, PIECE):
            os.posix_fadvise(descriptor, begin, PIECE, os.POSIX_FADV_WILLNEED)
    finally:
        os.close(descriptor)
