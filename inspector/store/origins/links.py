"""Follow a link to weights that lie elsewhere, such as on a disk that many share."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Collection
from pathlib import Path, PurePath

MAX_LINKS = 40  # on one way, as in Linux
ROOT = 0


def follow_link(path: Path, *, trusted: Collection[int] | None = None) -> Path:
    """Find the plain file that a link leads to.

    A link leads where its maker wants. Each on the way must be of somebody who is trusted, or who could show the file
    anyway, as its owner.

    Args:
        trusted: Users whose links may lead to anybody's file; None: this process' user and root.

    Returns:
        The file's path, without links.

    Raises:
        OSError: If there is no plain file, or a link is somebody else's.
    """
    real, waiting, owners = path.parent.resolve(strict=True), [path.name], list[int]()
    while waiting:
        part = waiting.pop()
        if part == os.pardir:
            real = real.parent
            continue
        found = (real / part).lstat()
        if not stat.S_ISLNK(found.st_mode):
            real /= part
            continue
        owners.append(found.st_uid)
        if len(owners) > MAX_LINKS:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        target = PurePath((real / part).readlink())
        real = Path(target.anchor) if target.anchor else real
        waiting += reversed(target.relative_to(target.anchor).parts)
    found = real.lstat()
    if not stat.S_ISREG(found.st_mode):
        raise FileNotFoundError(path.name)
    if hasattr(os, "geteuid"):
        known = {os.geteuid(), ROOT} if trusted is None else trusted
        if not {found.st_uid, *known}.issuperset(owners):
            raise PermissionError(path.name)
    return real
