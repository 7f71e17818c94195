"""What to say when the disk or a limit on files stops a write or a read."""

from __future__ import annotations

import errno

from inspector.settings import MB, Settings


def disk_sentence(error: OSError, settings: Settings) -> str | None:
    """The sentence for an error of the disk or of a limit; None: it is another one."""
    if error.errno in {errno.ENOSPC, errno.EDQUOT}:
        return "The disk of the store is full: delete uploads, or free some space."
    if error.errno == errno.EFBIG:
        return (
            f"A file would be larger than the {settings.file_nbytes / MB:,.0f} MB that a worker "
            "may write: set INSPECTOR_UPLOAD_MB higher, or choose a smaller checkpoint."
        )
    if error.errno == errno.EMFILE:
        return (
            f"A worker may have at most {settings.worker_files:,} files open, and this needs "
            "more: set INSPECTOR_WORKER_FILES higher, or use a checkpoint with fewer shards."
        )
    return None
