"""Watch what a reader touches: only its own folder may be read or changed, and nothing started."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

PATHS = {  # audit events -> how many of their first arguments are paths
    "open": 1,
    "os.listdir": 1,
    "os.scandir": 1,
    "os.mkdir": 1,
    "os.remove": 1,
    "os.rmdir": 1,
    "os.rename": 2,
    "os.link": 2,
    "os.symlink": 2,
    "os.truncate": 1,
    "os.chmod": 1,
    "os.chdir": 1,
    "shutil.rmtree": 1,
    "shutil.copyfile": 2,
}
NEVER = (
    "os.system",
    "os.exec",
    "os.fork",
    "os.posix_spawn",
    "os.spawn",
    "os.kill",
    "os.putenv",
    "subprocess.Popen",
    "socket.connect",
    "socket.getaddrinfo",
    "pickle.find_class",
    "ctypes.dlopen",
    "exec",
    "webbrowser.open",
)
_INSTALLED = tuple(str(Path(place).resolve()) for place in {sys.prefix, sys.base_prefix, *sys.path[1:]} if place)
_folder: list[str] = []  # the one that may be touched now; empty: nobody looks
_touched: list[str] = []
_others: set[int] = set()  # threads that ran before anybody looked: an engine's, that watches its workers


@contextmanager
def watched(folder: Path) -> Iterator[None]:
    """Fail if anything outside a folder is touched, or anything is started.

    Raises:
        AssertionError: Naming all of it.
    """
    _others.update(each.ident for each in threading.enumerate() if each.ident)
    _others.discard(threading.get_ident())
    _folder.append(str(folder.resolve()))
    _touched.clear()
    try:
        yield
    finally:
        _folder.clear()
        _others.clear()
    assert not _touched, f"touched {_touched}"


def _hook(event: str, arguments: tuple[Any, ...]) -> None:
    if not _folder or threading.get_ident() in _others:
        return
    if event in PATHS:
        for number, path in enumerate(arguments[: PATHS[event]]):
            if isinstance(path, str | bytes | os.PathLike) and not _in_opened(event, path, arguments):
                place = str(Path(_base(event, arguments, number)) / os.fsdecode(path))
                if not _may(place):
                    _touched.append(f"{event} {place!r}")
    elif event.startswith(NEVER) and not (event == "exec" and _is_import()):
        _touched.append(event)


def _in_opened(event: str, path: str | bytes | os.PathLike[str], arguments: tuple[Any, ...]) -> bool:
    """Whether `os.open` is given a bare name: one in a folder whose own opening was seen."""
    return event == "open" and arguments[1] is None and os.sep not in os.fsdecode(path)


def _base(event: str, arguments: tuple[Any, ...], number: int) -> str:
    """The folder that a relative path starts from: the event has its descriptor, -1 or None without one."""
    at = {"os.remove": -1, "os.rmdir": -1, "os.rename": 2 + number, "shutil.rmtree": 1}.get(event)
    descriptor = None if at is None else arguments[at]
    return str(Path(f"/proc/self/fd/{descriptor}").readlink()) if descriptor not in (None, -1) else ""


def _may(path: str) -> bool:
    real = os.path.realpath(path)
    return real.startswith((_folder[0] + os.sep, *_INSTALLED)) or real == _folder[0]


def _is_import() -> bool:
    """Whether code runs because a module is imported for the first time."""
    frame = sys._getframe(2)
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False


sys.addaudithook(_hook)
