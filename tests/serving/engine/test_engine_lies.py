"""A worker that was taken over, driven at random: the server stays up, tells one sentence, believes nothing."""

from __future__ import annotations

import hashlib
import io
import logging
import threading
import zipfile
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test
from safetensors.numpy import save

from inspector.errors import InspectorError
from inspector.results.checkpoint import Opened
from inspector.serving.encoding import encode
from inspector.serving.engine.local import LocalEngine
from inspector.serving.storing.registry import delete_checkpoint
from inspector.settings import read_settings
from inspector.store.hashing import fingerprint_of
from inspector.store.reference import CheckpointRef
from inspector.store.stored import list_checkpoints
from tests.serving.engine.engine_harness import WAIT
from tests.serving.engine.engine_lies import ASKED, CATALOG, ENDS, FUNCTIONS, LIAR, MESSAGES, STAGED, TOLD
from tests.store.store_builders import uploaded
from tools.fuzz.property import checked

SERIAL = count()
HONEST = 2
SECONDS = 15  # of a request that hangs
ANSWERED = {"said", "refused", "early", "poisoned", "written", "printed", None}


def checkpoint_files(serial: str) -> dict[str, bytes]:
    """A few tensors, unlike any others by their metadata."""
    tensors = {"layer.weight": np.arange(6, dtype="float32").reshape(2, 3), "layer.bias": np.ones(3, "float32")}
    return {"config.json": b"{}", "model.safetensors": save(tensors, metadata={"serial": serial}),
            "vocab.txt": b"[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n"}  # fmt: skip


def digests_of(files: dict[str, bytes]) -> dict[str, str]:
    return {name: hashlib.sha256(data).hexdigest() for name, data in files.items()}


def zipped(files: dict[str, bytes], folder: str) -> dict[str, bytes]:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as file:
        for name, data in files.items():
            file.writestr(f"{folder}/{name}", data)
    return {f"{folder}.zip": packed.getvalue()}


class Records(logging.Handler):
    """What the server's threads and its log say of errors that nobody expected."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self.lines = 0

    def emit(self, record: logging.LogRecord) -> None:
        self.lines += 1
        if record.exc_info:
            self.found.append(record.getMessage())

    def thread_ended(self, ended: Any) -> None:
        self.found.append(f"{ended.thread}: {ended.exc_type.__name__}: {ended.exc_value}")


class Server:
    """An engine on the store itself, and what must stay as it is beside it."""

    def __init__(self, folder: Path) -> None:
        self.canary = folder / "canary"
        self.canary.mkdir()
        (self.canary / "file").write_bytes(b"alive")
        self.folders = folder / "folders"
        self.folders.mkdir()
        self.settings = read_settings(
            {
                "INSPECTOR_HOME": str(folder / "home"),
                "INSPECTOR_ROOTS": str(self.folders),
                "INSPECTOR_SECONDS": str(SECONDS),
                "INSPECTOR_WORKERS": "4",
            }
        )
        self.engine = LocalEngine(self.settings, spare=False, catalog=CATALOG, functions=FUNCTIONS)
        self.known: dict[str, dict[str, str]] = {}  # fingerprint -> digests, of all that was ever uploaded
        self.honest = [self.open(checkpoint_files(f"honest {number}"), "honest") for number in range(HONEST)]

    def sent(self, files: dict[str, bytes], name: str, *, archive: bool = False) -> CheckpointRef:
        """Upload files; what the server must call them is known from then on."""
        digests = digests_of(files)
        self.known[fingerprint_of(digests)] = digests
        packed = zipped(files, name) if archive else {f"{name}/{file}": data for file, data in files.items()}
        return uploaded(self.settings, packed)

    def open(self, files: dict[str, bytes], name: str) -> str:
        return self.engine.open(self.sent(files, name)).result(WAIT).fingerprint

    def left(self) -> Iterator[str]:
        for path in sorted(self.canary.rglob("*")):
            yield f"{path.name} {path.read_bytes()!r}"

    def check(self) -> None:
        """What must hold whatever was said."""
        assert list(self.left()) == ["file b'alive'"]
        home = self.settings.home
        listed = {each.fingerprint: each for each in list_checkpoints(self.settings)}
        assert listed.keys() <= self.known.keys()
        for fingerprint, each in listed.items():
            assert each.name.isprintable()
            entry = home / "checkpoints" / fingerprint
            for name, digest in self.known[fingerprint].items():
                places = [entry / kind / name for kind in ("originals", "weights", "folder")]
                place = next(place for place in places if place.exists())
                assert hashlib.sha256(place.read_bytes()).hexdigest() == digest, place
        held = [path for path in home.iterdir() if path.name not in {"workers", "temporary"}]
        assert not [path for each in held for path in each.rglob("*") if path.is_symlink()]
        for folder in ("maps", "opened"):
            assert {path.name for path in (home / folder).glob("*")} <= self.known.keys()


@pytest.fixture(scope="module")
def records() -> Iterator[Records]:
    found = Records()
    log, before = logging.getLogger("inspector"), threading.excepthook
    log.addHandler(found)
    threading.excepthook = found.thread_ended
    yield found
    threading.excepthook = before
    log.removeHandler(found)


@pytest.fixture(scope="module")
def server(tmp_path_factory, records) -> Iterator[Server]:
    made = Server(tmp_path_factory.mktemp("lies"))
    yield made
    made.engine.close()
    assert records.found == []


def outcome(job: Any) -> Any:
    """A result, or the one sentence in its place."""
    try:
        return job.result(WAIT)
    except InspectorError as error:
        checked(str(error))
        return error


def cut(data: bytes, place: float, written: bytes) -> bytes:
    at = int(place * len(data))
    return data[:at] + written + data[at + len(written) :]


MESSAGE = st.sampled_from(sorted(MESSAGES)).map(lambda name: encode(MESSAGES[name]))
CHANGED = st.builds(cut, MESSAGE, st.floats(0, 1, exclude_max=True), st.binary(max_size=8))
SAID = st.lists(st.one_of(MESSAGE, CHANGED, st.binary(max_size=30)), max_size=6).filter(
    lambda said: sum(map(len, said)) < 900_000  # more is no request
)


class Lies(RuleBasedStateMachine):
    """Requests of honest users, and of those whose checkpoints have taken their workers over."""

    server: Server  # all runs share it, as browsers do
    liar = ""
    waiting: list[Any]

    @initialize()
    def begin(self) -> None:
        self.waiting = []
        self.liar = self.server.open(checkpoint_files(f"liar {next(SERIAL)}"), LIAR)

    @rule(lie=st.sampled_from(sorted(STAGED | TOLD)), kind=st.sampled_from(["files", "archive", "folder"]))
    def open_a_lie(self, lie: str, kind: str) -> None:
        files = checkpoint_files(f"{lie} {next(SERIAL)}")
        fingerprint = fingerprint_of(digests_of(files))
        if kind == "folder":
            self.server.known[fingerprint] = digests_of(files)
            folder = self.server.folders / f"{LIAR} {lie}"
            folder.mkdir(exist_ok=True)
            for name, data in files.items():
                (folder / name).write_bytes(data)
            reference = CheckpointRef("path", str(folder))
        else:
            reference = self.server.sent(files, f"{LIAR} {lie}", archive=kind == "archive")
        opened = outcome(self.server.engine.open(reference))
        assert isinstance(opened, InspectorError) or (type(opened), opened.fingerprint) == (Opened, fingerprint)

    @rule(lie=st.sampled_from(sorted(ASKED)), victim=st.integers(0, HONEST - 1), compared=st.booleans())
    def lie_in_an_answer(self, lie: str, victim: int, compared: bool) -> None:
        about = {"other" if compared else "victim": self.server.honest[victim]}
        found = outcome(self.server.engine.run(self.liar, "lie", what=lie, **about))
        assert isinstance(found, InspectorError) or found in ANSWERED or found.startswith("early")

    @rule(said=SAID, end=st.sampled_from(sorted(set(ENDS) - {"hang"})))
    def say_anything(self, said: list[bytes], end: str) -> None:
        self.waiting.append(self.server.engine.run(self.liar, "say", said=said, end=end))

    @rule(said=SAID)
    def say_anything_and_hang(self, said: list[bytes]) -> None:
        job = self.server.engine.run(self.liar, "say", said=[*said, b""], end="hang")
        self.server.check()
        job.cancel()
        outcome(job)

    @rule(which=st.integers(0, HONEST - 1), compared=st.booleans())
    def ask_honestly(self, which: int, compared: bool) -> None:
        fingerprint = self.server.honest[which]
        self.server.engine.release(fingerprint)
        other = {"other": self.server.honest[which - 1]} if compared else {}
        job = self.server.engine.run(fingerprint, "digests", **other)
        assert job.result(WAIT) == self.server.known[fingerprint]
        self.server.engine.forget(fingerprint)  # or the answer would be remembered

    @rule()
    def compare_with_the_liar(self) -> None:
        job = self.server.engine.run(self.server.honest[0], "digests", other=self.liar)
        assert job.result(WAIT) == self.server.known[self.server.honest[0]]

    @rule()
    def delete_the_liar(self) -> None:
        delete_checkpoint(self.liar, settings=self.server.settings)
        self.server.engine.forget(self.liar)
        self.begin()

    @invariant()
    def nothing_was_believed(self) -> None:
        for job in self.waiting:
            outcome(job)
        self.waiting.clear()
        self.server.check()


def settings_of(examples: int, steps: int) -> settings:
    return settings(
        max_examples=examples,
        stateful_step_count=steps,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )


def test_a_worker_that_lies_at_random(server):
    run_state_machine_as_test(type("Here", (Lies,), {"server": server}), settings=settings_of(3, 10))


@pytest.mark.fuzz
def test_a_worker_that_lies_at_random_for_long(server):
    run_state_machine_as_test(type("Here", (Lies,), {"server": server}), settings=settings_of(12, 25))
