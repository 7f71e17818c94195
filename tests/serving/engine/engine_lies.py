"""What a taken-over worker does: it lies in every way that its pipe and its folder allow."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from inspector.analyses.overview.result import Overview
from inspector.catalog import Analysis
from inspector.progress import Show
from inspector.results.checkpoint import Opened
from inspector.sandbox.confinement import Confinement
from inspector.serving.encoding import encode
from inspector.serving.engine.protocol import Progress
from inspector.serving.engine.wire import Answers, Failure, Partial, Ready, Warm, WorkerFunctions
from inspector.serving.storing.opening import open_checkpoint
from inspector.settings import Settings
from inspector.store.hashing import HASHES, HashCache
from inspector.store.manifests.entries import results_folder
from inspector.store.manifests.manifest import Manifest
from tests.serving.engine.engine_stand_ins import is_socket, wait_for

HERE = __name__
LIAR = "liar"  # a checkpoint of this name, and a lie's after it, takes its worker over
DEEP = 300  # folders in folders; more would stay in the way of pytest itself, if it were ended
MANY = 20_000


class Held:
    """A checkpoint as its worker holds it; no model is built."""

    def __init__(self, manifest: Manifest, *, settings: Settings) -> None:
        self.manifest, self.settings = manifest, settings
        self.called: tuple[str, ...] = ()


def digests(checkpoint, *, progress, other: str = "") -> Any:
    """Answer honestly: the SHA-256 of each file, kept as an overview keeps it."""
    manifest = checkpoint.manifest
    cache = HashCache(results_folder(manifest.fingerprint, settings=checkpoint.settings) / HASHES)
    return cache.digests(manifest.paths, progress=progress)


def open_and_lie(reference, *, settings, progress, restrict_paths, fetched) -> Any:
    """Stage honestly; then, for a checkpoint that says so, lie about it."""
    manifest, found = open_checkpoint(
        reference, settings=settings, progress=progress, restrict_paths=restrict_paths, fetched=fetched
    )
    about, _, lie = manifest.name.partition(" ")
    if about == LIAR and lie in STAGED:
        staged = settings.home / ("checkpoints" if found.kind == "upload" else "opened") / manifest.fingerprint
        with suppress(OSError):  # what the sandbox refuses is tried in vain
            STAGED[lie](staged)
    if about == LIAR and lie in TOLD:
        return replace(manifest, **TOLD[lie]), found
    return manifest, found


def lie(checkpoint, *, progress, what: str, victim: str = "", other: str = "") -> Any:
    """Tell a lie in the middle of a question."""
    with suppress(OSError):
        return ASKED[what](checkpoint, victim or other)
    return "refused"


def say(checkpoint, *, progress, show: Show[Progress], said: list[bytes], end: str) -> Any:
    """Put messages into the pipe as they are, then go on, or end."""
    pipe = _pipe()
    for message in said:
        pipe.send_bytes(message)
    ENDS[end](pipe)
    return "said"


def overview_but(checkpoint, *, progress, changes: dict[str, Any] | None = None) -> Overview:
    """Answer honestly, but for some fields."""
    from inspector.catalog import answer

    return replace(answer("overview", checkpoint, progress=progress), **(changes or {}))


def _pipe() -> Connection:
    (found,) = (number for number in range(3, 64) if is_socket(number))
    return Connection(os.dup(found))


def _change(staged: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    path = staged / "manifest.json"
    stored = json.loads(path.read_text("utf-8"))
    change(stored)
    path.write_text(json.dumps(stored), "utf-8")


def _first(**changes: Any) -> Callable[[Path], None]:
    return lambda staged: _change(staged, lambda stored: stored["files"][0].update(changes))


def _whole(**changes: Any) -> Callable[[Path], None]:
    return lambda staged: _change(staged, lambda stored: stored.update(changes))


def _text(text: str) -> Callable[[Path], Any]:
    return lambda staged: (staged / "manifest.json").write_text(text, "utf-8")


def _deep(staged: Path) -> None:
    """Folders in folders, of which a name that is too long is made by their descriptors alone."""
    here = os.open(staged, os.O_RDONLY | os.O_DIRECTORY)
    for _ in range(DEEP):
        os.mkdir("d", dir_fd=here)
        below = os.open("d", os.O_RDONLY | os.O_DIRECTORY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)


def _closed(staged: Path) -> None:
    """Folders that their owner may not list."""
    (staged.parents[1] / "closed" / "in").mkdir(parents=True)
    (staged.parents[1] / "closed" / "in" / "file").write_bytes(b"x")
    for folder in (staged.parents[1] / "closed" / "in", staged.parents[1] / "closed"):
        folder.chmod(0)


def _link(staged: Path) -> None:
    (staged / "manifest.json").unlink()
    (staged / "manifest.json").symlink_to("/etc/passwd")


def _many(staged: Path) -> None:
    for number in range(200):
        (staged.parents[1] / "checkpoints" / f"{number:064x}" / "folder").mkdir(parents=True)


def _other_upload(staged: Path) -> None:
    """A second entry, which nobody uploaded, as a copy of the first."""
    twin = staged.parent / ("f" * 64)
    twin.mkdir()
    for path in staged.rglob("*"):
        if path.is_file():
            (twin / path.relative_to(staged)).parent.mkdir(exist_ok=True)
            (twin / path.relative_to(staged)).write_bytes(path.read_bytes())


def _restless(staged: Path) -> None:
    """Change the manifest and the weights while the server takes them."""
    for path in (staged / "manifest.json", *staged.glob("*/*.safetensors")):
        data, file = path.read_bytes(), path.open("r+b", buffering=0)
        threading.Thread(target=_flip, args=(file, data), daemon=True).start()


def _flip(file: Any, data: bytes) -> None:
    while True:
        for written in (data.replace(b"model.safetensors", b"other.safetensors"), data, data + b" " * 1000):
            with suppress(OSError):
                os.pwrite(file.fileno(), written, 0)
                os.ftruncate(file.fileno(), len(written))


STAGED: dict[str, Callable[[Path], Any]] = {
    "climbs": _first(name="../../../etc/passwd"),
    "path": _first(path="/etc/passwd", stamp=[0, 0]),
    "dots": _first(path="folder/../../x"),
    "digest": _first(sha256="../../../canary"),
    "another digest": _first(sha256="0" * 64),
    "size": _first(nbytes=2**60),
    "negative size": _first(nbytes=-1),
    "no files": _whole(files=[]),
    "one file twice": lambda staged: _change(staged, lambda s: s.update(files=s["files"] * 2)),
    "a fingerprint": _whole(fingerprint="f" * 64),
    "a format": _whole(format=True),
    "a source": _whole(source="system"),
    "a name": _whole(name="\x1b[2J\u202e<script>" * 50),
    "a config": _whole(config={"auto_map": {"AutoModel": "evil.Model"}}),
    "warnings": _whole(warnings=["w"] * 20_000),
    "tensors": _whole(tensors=[["t", "F32", [2**40], [1], "model.safetensors", 0, 2**42, "s", 2**42]]),
    "not JSON": _text("{"),
    "nested": _text("[" * 200_000),
    "values": _text("[" + "0," * 9_000_000 + "0]"),
    "not a number": _text('{"format": NaN}'),
    "no manifest": lambda staged: (staged / "manifest.json").unlink(),
    "a folder for a manifest": lambda staged: (_text("")(staged), (staged / "manifest.json").unlink(),
                                               (staged / "manifest.json").mkdir()),
    "a link": _link,
    "a hard link": lambda staged: os.link("/etc/passwd", staged / "folder" / "vocab.txt"),
    "a long configuration": lambda staged: os.truncate(staged / "folder" / "config.json", 10**9),
    "code": lambda staged: (staged / "folder" / "modeling_evil.py").write_text("raise SystemExit", "utf-8"),
    "other weights": lambda staged: (staged / "weights" / "model.safetensors").write_bytes(b"evil"),
    "deep": _deep,
    "closed": _closed,
    "many": _many,
    "another upload": _other_upload,
    "restless": _restless,
    "gone": lambda staged: staged.rename(staged.with_name("0" * 64)),
    "dies": lambda staged: os._exit(9),
    "long text on stderr": lambda staged: sys.stderr.write("E" * 5_000_000 + "\n"),
}  # fmt: skip
TOLD: dict[str, dict[str, Any]] = {  # of an opened checkpoint, in an answer
    "told fingerprint": {"fingerprint": "f" * 64},
    "told folder": {"fingerprint": "../../../canary"},
    "told name": {"name": "\x1b[31m" * 1000},
    "told warnings": {"warnings": ("w" * 1000,) * 20_000},
    "told surrogate": {"warnings": ("\ud800\x00\u202e",)},
    "told numbers": {"warnings": (1, 2)},
}


def _poison(checkpoint, victim: str) -> str:
    """Leave results of a checkpoint that is somebody else's, and change those that are here."""
    folder = results_folder(victim, settings=checkpoint.settings)
    folder.mkdir(parents=True, exist_ok=True)
    known = (folder / HASHES).read_text("utf-8") if (folder / HASHES).exists() else ""
    for line in filter(None, known.splitlines()):
        with (folder / HASHES).open("r+", encoding="utf-8") as file:
            file.write("\n".join(json.dumps(dict.fromkeys(json.loads(line), "0" * 64)) for line in known.split()))
    (folder / f"{'0' * 64}.arrays").write_bytes(b"evil")
    return "poisoned"


def _write_given(checkpoint, victim: str) -> str:
    """Change the files that the worker was given to read; a hard link, a move, a mode as well."""
    given = checkpoint.settings.given / "checkpoints" / (victim or checkpoint.manifest.fingerprint)
    own = checkpoint.settings.home
    for path in [path for path in given.rglob("*") if path.is_file()]:
        for attempt in (
            lambda path=path: path.write_bytes(b"evil"),
            lambda path=path: os.link(path, own / "linked"),
            lambda path=path: path.rename(own / "moved"),
            lambda path=path: path.unlink(),
            lambda path=path: os.truncate(path, 0),
        ):
            with suppress(OSError):
                attempt()
    return "written"


def _answer_early(checkpoint, victim: str) -> str:
    """Answer what has not been asked yet."""
    pipe = _pipe()
    for number in range(50):
        pipe.send_bytes(encode(Answers.of([f"early {number}"])))
    return "early"


def _print_on(checkpoint, victim: str) -> str:
    """Fill the server's log."""
    for number in range(MANY):
        os.write(2, b"line %d\n" % number)
    return "printed"


ASKED: dict[str, Callable[[Any, str], Any]] = {
    "poison": _poison,
    "write given": _write_given,
    "early": _answer_early,
    "print": _print_on,
    "part": lambda *_: _pipe().send_bytes(encode(MESSAGES["a part"])),
    "deep": lambda checkpoint, _: _deep(checkpoint.settings.home),
    "closed": lambda checkpoint, _: _closed(checkpoint.settings.home / "a" / "b"),
    "panic": lambda checkpoint, _: os.abort(),
    "thread": lambda checkpoint, _: threading.Thread(target=_flood_later, daemon=True).start(),
}


def _flood_later() -> None:
    pipe = _pipe()
    time.sleep(0.05)
    for _ in range(MANY):
        pipe.send_bytes(encode(Warm()))


def _cut_off(pipe: Connection) -> None:
    """Die in the middle of a message."""
    os.write(pipe.fileno(), b"\x00\x10\x00\x00half of it")
    os._exit(7)


ENDS: dict[str, Callable[[Connection], Any]] = {
    "answer": lambda pipe: None,
    "leave": lambda pipe: os._exit(5),
    "cut off": _cut_off,
    "close": lambda pipe: (os.close(pipe.fileno()), os._exit(0)),
    "hang": lambda pipe: wait_for(Path("/nowhere")),
}
TRUE = Opened("ab" * 32, "demo-bert", "demo-bert", ())
MESSAGES: Mapping[str, Any] = {  # each allowed at some time, or nearly
    "ready": Ready(Confinement(False, False, False, ("x" * 10_000,))),
    "warm": Warm(),
    "progress": Progress(0.5, "half way"),
    "no number": Progress(float("nan"), "nan"),
    "endless": Progress(float("inf"), "inf"),
    "beyond": Progress(-7.0, "\x1b[2J" + "[link](https://example.org)" * 10_000),
    "large": Progress(10**400, "x"),
    "surrogate": Progress(None, "\ud800\u202e\x00"),
    "a part": Partial(1, encode(Progress(0.5, "of the class that it may show"))),
    "a second part": Partial(2, encode(Progress(None, "x"))),
    "another part": Partial(1, encode("of another class")),
    "a part of no class": Partial(1, b"\x80\x04."),
    "a part out of turn": Partial(-(10**30), b""),
    "no answers": Answers(()),
    "two answers": Answers.of(["a", "b"]),
    "an answer": Answers.of(["another question's"]),
    "an object": Answers.of([TRUE]),
    "bytes": Answers((b"\x80\x04.",)),
    "nested": Answers((encode(Answers((b"",))),)),
    "refusal": Failure("CheckpointError", "\x1b[31m" + "long " * 10_000),
    "unknown error": Failure("SystemExit", "0"),
    "base error": Failure("InspectorError", ""),
    "an option": Failure("RequestError", "no", "../../x"),
}


FUNCTIONS = WorkerFunctions(
    open=f"{HERE}:open_and_lie",
    checkpoint=f"{HERE}:Held",
    light=("inspector.store.hashing", "inspector.store.opening", "inspector.store.keeping.holding", HERE),
    warm_up=(),
)  # the store's own functions receive, and load what is held
CATALOG = tuple(
    Analysis(slug=name, verb=name, title=name, question="?", function=f"{HERE}:{name}", symbol="", needs="rows")
    for name in ("digests", "lie", "say")
)  # fmt: skip
