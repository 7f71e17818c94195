"""What the engine's tests let a worker run instead of the store and the analyses."""

from __future__ import annotations

import ctypes
import os
import pickle  # noqa: TID251 - to write what a hostile worker would
import signal
import stat
import struct
import sys
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import count
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from inspector.analyses.masked_lm.result import Mask
from inspector.catalog import Analysis
from inspector.errors import CheckpointError, RequestError, WorkerError
from inspector.progress import Show
from inspector.serving.engine.wire import Failure, WorkerFunctions
from inspector.store.manifests.entries import MANIFEST, OPENED
from inspector.store.reference import CheckpointRef
from tests.serving.engine.engine_attempts import attempt, overdo

HERE = __name__


@dataclass(frozen=True)
class StandInManifest:
    fingerprint: str
    name: str
    warnings: tuple[str, ...] = ()

    def refuse_outline(self):
        pass

    def verify(self, progress):
        pass


def prepare_stand_in(manifest, *, settings):
    """Nothing is known before it is asked."""


class StandInCheckpoint:
    def __init__(self, manifest, *, settings):
        self.manifest = manifest
        self.settings = settings
        self.uses = 0
        self.called: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return self.called[0] if self.called else self.manifest.name


def fingerprint_of(name: str) -> str:
    return name.encode().hex().ljust(64, "0")


def open_stand_in(reference, *, settings, progress, restrict_paths, fetched):
    progress(0.5, f"reading {reference.value}")
    if reference.value == "demo-refused":
        raise CheckpointError("demo-refused is empty: upload it again.")
    while reference.value == "demo-endless":
        pass
    if reference.value == "demo-slow":
        wait_for(Path(os.environ["TMPDIR"]) / "go")
    name = reference.value.rsplit("/", 1)[-1]
    if reference.kind == "incoming":
        reference = CheckpointRef("upload", fingerprint_of(name))
    warnings = (f"restricted: {restrict_paths}", os.environ.get("HF_HUB_OFFLINE", ""))
    if fetched:
        warnings += tuple(
            attempt(None, progress=None, what=what, target=str(fetched / "vocab.txt")) for what in ("read", "write")
        )
    fingerprint = fingerprint_of(name)
    again = CheckpointRef.parse(reference.origin.becomes(fingerprint, fetched)) if fetched else reference
    return StandInManifest(fingerprint, name, warnings), again


def fetch_no_headers(model, known, *, progress) -> None:
    """A model that is fetched whole."""


def download_stand_in(model, *, progress) -> Path:
    if os.environ.get("HF_HUB_OFFLINE"):
        raise CheckpointError("This worker is offline.")
    return Path("/cache") / ("a" * 40)


def receive_stand_in(told, origin, reach, **_: Any):
    """Nothing is staged; the store holds it all the same."""
    entry = reach.settings.home / OPENED / told.fingerprint
    entry.mkdir(parents=True, exist_ok=True)
    (entry / MANIFEST).touch()
    return told


def load_stand_in(fingerprint, *, settings):
    return StandInManifest(fingerprint, bytes.fromhex(fingerprint).rstrip(b"\0").decode(errors="replace"))


def wait_for(path: Path) -> None:
    while not path.exists():
        time.sleep(0.005)


def echo(checkpoint, *, progress, value: Any = None) -> Any:
    checkpoint.uses += 1
    return {"pid": os.getpid(), "name": checkpoint.name, "uses": checkpoint.uses,
            "value": value}  # fmt: skip


def frame(checkpoint, *, progress, rows: int) -> Mask:
    return Mask(
        position=rows,
        predictions=pd.DataFrame(
            {
                "token": [f"␣{i}" for i in range(rows)],
                "token_id": np.arange(rows, dtype="int32"),
                "probability": np.linspace(0, 1, rows, dtype="float32"),
            }
        ),
    )


def mistake(checkpoint, *, progress) -> Mask:
    """Return something else than it is annotated with."""
    return "a mask"  # pyright: ignore[reportReturnType]


def step(checkpoint, *, progress, marker: str, text: str = "half way") -> Any:
    progress(0.5, text)
    wait_for(Path(marker))
    return "went on"


def show_parts(checkpoint, *, progress, show: Show[Mask], rows: list[int], marker: str) -> Mask:
    """Show partial answers of so many rows, then wait."""
    for each in rows:
        show(frame(checkpoint, progress=progress, rows=each))
    progress(0.5, "shown")
    wait_for(Path(marker))
    return frame(checkpoint, progress=progress, rows=sum(rows))


def report_from_threads(checkpoint, *, progress, threads: int, times: int) -> Any:
    def report(number):
        for i in range(times):
            progress(None, f"{number}/{i} " + "x" * 20_000)

    started = [threading.Thread(target=report, args=(number,)) for number in range(threads)]
    for thread in started:
        thread.start()
    for thread in started:
        thread.join()
    return "all told"


def flood(checkpoint, *, progress) -> Any:
    """Report without end, each time another text."""
    for number in count():
        progress(None, str(number))


REFUSED = "The text has 500 tokens, but the model takes at most 64: shorten it."


def refuse(checkpoint, *, progress) -> Any:
    raise RequestError(REFUSED)


def break_down(checkpoint, *, progress) -> Any:
    return {}["/secret/path"]


class Panic(BaseException):
    pass


def panic(checkpoint, *, progress) -> Any:
    raise Panic("thread panicked")


def grow(checkpoint, *, progress, nbytes: int, device: str = "auto") -> Any:
    held = []
    for _ in range(nbytes // 10_000_000):
        held.append(bytearray(os.urandom(1)) * 10_000_000)
        time.sleep(0.01)
    return len(held)


def look_through(checkpoint, *, progress, path: str, watched: str) -> Any:
    """Touch every page of a mapped file, and keep them until somebody has looked."""
    from inspector.store.manifests.manifest import FileInfo
    from inspector.store.readers.ranges import PlainBytes

    file = FileInfo("model.bin", "pytorch", Path(path).stat().st_size, None, Path(path))
    pages = PlainBytes(file).map(0, file.nbytes)[::4096]
    found = int(pages.sum(dtype="int64"))
    progress(None, "mapped")
    while not Path(watched).exists():
        time.sleep(0.01)
    return found + len(pages)


def ask_too_much(checkpoint, *, progress) -> Any:
    return len(bytearray(2**46))


def die(checkpoint, *, progress, number: int, marker: str = "") -> Any:
    if marker:
        progress(None, "about to die")
        wait_for(Path(marker))
    if number == signal.SIGSEGV:
        ctypes.string_at(0)
    os.kill(os.getpid(), number)
    time.sleep(60)


def leave(checkpoint, *, progress) -> Any:
    os._exit(3)


class Smuggled:
    def __reduce__(self):
        return os.system, ("true",)


def is_socket(descriptor):
    with suppress(OSError):
        return stat.S_ISSOCK(os.fstat(descriptor).st_mode)
    return False


def smuggle(checkpoint, *, progress) -> Any:
    """Write a program into the pipe, as a worker does that was taken over."""
    (pipe,) = (number for number in range(3, 64) if is_socket(number))
    Connection(os.dup(pipe)).send_bytes(pickle.dumps(Smuggled()))
    time.sleep(60)


def announce(checkpoint, *, progress, nbytes: int, asked: bool = True) -> Any:
    """Begin a message of so many bytes, now or when nobody asks any more, and send nothing of it."""
    (pipe,) = (number for number in range(3, 64) if is_socket(number))

    def begin():
        os.write(pipe, struct.pack("!i", nbytes))

    if not asked:
        threading.Timer(0.5, begin).start()
        return "later"
    begin()
    wait_for(Path("/nowhere"))
    return "never"


def environment(checkpoint, *, progress) -> Any:
    return dict(os.environ)


def modules(checkpoint, *, progress) -> Any:
    return sorted(sys.modules)


def descriptors(checkpoint, *, progress) -> Any:
    """What each open descriptor is; the one that lists them is gone by then."""
    found = {}
    for path in Path("/proc/self/fd").iterdir():
        with suppress(OSError):
            found[path.name] = str(path.readlink())
    return found


def chatter(checkpoint, *, progress) -> Any:
    sys.stdout.write("to stdout\n")
    sys.stderr.write("to stderr \x1b[31mred\n")


def note(checkpoint, *, progress, **parameters: Any) -> Any:
    (noted,) = note_many(checkpoint, [parameters], progress=progress)
    return noted


def note_many(checkpoint, requests, *, progress):
    """Answer each by its value, place, batch and pass, unless it asks for trouble."""
    checkpoint.uses += 1
    trouble = {request.get("trouble") for request in requests}
    progress(0.5, "noting")
    for request in requests:
        if marker := request.get("marker"):
            wait_for(Path(marker))
    for name in sorted(trouble & TROUBLE.keys()):
        TROUBLE[name](checkpoint, progress=progress)
    answers = [
        {
            "pid": os.getpid(),
            "name": checkpoint.name,
            "value": request["value"],
            "place": place,
            "batch": len(requests),
            "uses": checkpoint.uses,
        }
        for place, request in enumerate(requests)
    ]
    for place, request in enumerate(requests):
        if request.get("trouble") in SPOILED:
            answers[place] = SPOILED[request["trouble"]]
    return answers[1:] if "short" in trouble else answers


SPOILED: dict[str, Any] = {  # in place of one answer
    "refused": RequestError(REFUSED),
    "too little memory": WorkerError("The device has too little memory left for this input."),
    "of another class": Mask(position=1, predictions=pd.DataFrame()),
    "forged": Failure("annotations", "no class of an error"),
    "cannot be sent": threading.Lock(),
}
TROUBLE: dict[str, Any] = {  # in place of all answers
    "killed": partial(die, number=signal.SIGKILL),
    "broken": break_down,
    "panic": panic,
    "no head": refuse,
    "too much": ask_too_much,
    "smuggled": smuggle,
    "endless": lambda *_, **__: wait_for(Path("/nowhere")),
}
FUNCTIONS = WorkerFunctions(
    open=f"{HERE}:open_stand_in",
    download=f"{HERE}:download_stand_in",
    fetch_headers=f"{HERE}:fetch_no_headers",
    receive=f"{HERE}:receive_stand_in",
    load_manifest=f"{HERE}:load_stand_in",
    checkpoint=f"{HERE}:StandInCheckpoint",
    prepare=f"{HERE}:prepare_stand_in",
    warm_up=("colorsys", "inspector.no_such_module", "chunk", "inspector.no_last_module"),
)
ANALYSES = (echo, frame, mistake, step, show_parts, report_from_threads, refuse, break_down, panic, grow, look_through,
            ask_too_much, die, leave, smuggle, announce, flood, environment, modules, descriptors, chatter)  # fmt: skip
PLACES = {
    **{function.__name__: HERE for function in (*ANALYSES, note)},
    **{function.__name__: "tests.serving.engine.engine_attempts" for function in (attempt, overdo)},
}
CATALOG = tuple(
    Analysis(slug=name, verb=name, title=name, question="?", function=f"{place}:{name}", symbol="", needs="model",
             batch=f"{HERE}:note_many" if name == "note" else None)
    for name, place in PLACES.items()
)  # fmt: skip
