"""Keep machine code that workers run: a process that reads no checkpoint makes it, workers check it.

numba's files are pickles, so whoever writes one runs code in every process that loads it. They lie
in a folder that no worker can write, with a list of their hashes. A worker copies those whose hash
is right into a folder of its own and loads them there; what is missing or wrong it compiles itself.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import time
from pathlib import Path
from typing import Any

from inspector.store.files import LOCK, NO_LINK, lock_shared, remove_folder, write_atomically
from inspector.store.manifests.documents import as_digest, as_object, as_text, fields_of, read_bytes, read_document

COMPILED = "compiled"  # below home
# In it, which may be a folder of other programs too: the files that are listed, and the list.
CODE = "checkpoint-inspector-code"
LIST = f"{CODE}.json"
CHECKED = "INSPECTOR_COMPILED"  # in a worker's environment: the folder whose files it checks
OWN = "NUMBA_CACHE_DIR"  # numba's own variable; in a worker: a folder of its own
MAX_LIST, MAX_FILE = 1_000_000, 50_000_000  # bytes
WAIT_SECONDS, POLL_SECONDS = 120.0, 0.1
_NAME = re.compile(r"\w[\w.-]*/\w[\w.-]*")  # a folder of numba's and a file


def compiled_folder(home: Path) -> Path:
    """Where compiled code is kept.

    Args:
        home: The store's folder; NUMBA_CACHE_DIR goes before it.
    """
    return Path(os.environ.get(OWN) or home / COMPILED)


def copy_checked(folder: Path, target: Path) -> int:
    """Copy the files that are listed, as they are listed, and no others.

    Args:
        folder: `compiled_folder` of the process that compiled.
        target: A folder of the calling process's own.

    Returns:
        How many files were copied; 0 where there is no list.
    """
    copied = 0
    _wait_until_made(folder)
    for name, digest in _listed(folder).items():
        with contextlib.suppress(OSError, ValueError):
            data = read_bytes(folder / CODE / name, limit=MAX_FILE)
            if hashlib.sha256(data).hexdigest() == digest:
                (target / name).parent.mkdir(parents=True, exist_ok=True)
                (target / name).write_bytes(data)
                copied += 1
    return copied


def is_made(folder: Path, versions: str) -> bool:
    """Whether there is code that was compiled from these sources by these versions."""
    try:
        return _read_list(folder)["versions"] == versions
    except (OSError, ValueError):
        return False


def put_compiled(built: Path, folder: Path, versions: str) -> None:
    """Put code in the place of what is there, and list it.

    Args:
        built: A folder in `folder` with what numba wrote; it is moved.
        folder: `compiled_folder` of this process.
        versions: What it was compiled from and by, as `is_made` is asked.
    """
    files = {
        path.relative_to(built).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(built.rglob("*"))
        if path.is_file()
    }
    remove_folder(folder / CODE)
    built.rename(folder / CODE)
    write_atomically(folder / LIST, json.dumps({"versions": versions, "files": files}))


def _wait_until_made(folder: Path) -> None:
    """Wait while another process compiles, which holds the folder's lock."""
    end = time.monotonic() + WAIT_SECONDS
    with contextlib.suppress(OSError):
        descriptor = os.open(folder / LOCK, os.O_RDONLY | NO_LINK)
        try:
            while not lock_shared(descriptor) and time.monotonic() < end:
                time.sleep(POLL_SECONDS)
        finally:
            os.close(descriptor)


def _listed(folder: Path) -> dict[str, str]:
    try:
        files = as_object(_read_list(folder)["files"])
        return {name: as_digest(digest) for name, digest in files.items() if _NAME.fullmatch(name)}
    except (OSError, ValueError):
        return {}


def _read_list(folder: Path) -> dict[str, Any]:
    listed = fields_of(read_document(folder / LIST, limit=MAX_LIST), ("versions", "files"))
    as_text(listed["versions"])
    return listed
