"""Do a command's work in a child that can open the files of its checkpoints, and no others.

The parent finds these files by their names and forks. The child gives up the network, other processes and all other
files, opens the checkpoints with the library, asks, and sends plain JSON values. The parent waits, ends a child that
passes a limit, and keeps computed arrays for the next time. Where a system cannot fork, the parent does the work.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import sys
import threading
import time
import traceback
import uuid
import warnings
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from multiprocessing.connection import Connection, Pipe
from pathlib import Path
from typing import Any, Literal

from inspector import errors
from inspector.api import Checkpoint, open_here
from inspector.catalog import CATALOG
from inspector.errors import InspectorError, WorkerError
from inspector.program import lacks
from inspector.progress import Progress
from inspector.results.checkpoint import Opened
from inspector.sandbox import limits
from inspector.sandbox.compiling import Compiler
from inspector.sandbox.confinement import Access, confine, refuse_unconfined
from inspector.sandbox.deferring import defer_imports
from inspector.sandbox.disk_usage import kept_nbytes
from inspector.sandbox.environment import worker_environment
from inspector.sandbox.privileges import give_to, worker_user
from inspector.settings import Settings
from inspector.store.disk import disk_sentence
from inspector.store.files import Place, below, fresh_folder, place_of, remove_folder
from inspector.store.keeping.quota import trim
from inspector.store.keeping.results import copy_results
from inspector.store.manifests.documents import collector_paused, is_fingerprint
from inspector.store.manifests.entries import MAPS, TEMPORARY, WORKERS, results_folder
from inspector.store.manifests.manifest import HeadersAloneError, Manifest
from inspector.store.origins.hub import download, versions_folder
from inspector.store.origins.hub_headers import fetch_headers, known_headers, put_headers
from inspector.store.origins.origin import Reach
from inspector.store.reading_ahead import read_ahead
from inspector.store.reference import CheckpointRef
from inspector.text import escaped, shorten

POLL_SECONDS = 0.1  # between two looks at what the child uses
FOLDER_SECONDS = 1.0  # between two looks at its folder
SHOWN_SECONDS = 0.05  # between two messages of progress with the same text
MOST_NBYTES = 500_000_000  # of a message
MAX_TEXT = 2_000  # characters of a sentence
MOST_PRINTED = 1_000_000  # bytes that a child prints
END_OF_PARENT = 1  # PR_SET_PDEATHSIG
FORKS = hasattr(os, "fork")
# A process that has looked for a GPU cannot be forked, nor one that has loaded macOS' libraries.
PRELOADS = sys.platform == "linux" and not any(map(os.path.exists, limits.GPU_NODES))

NO_HOME = "The store cannot be written ({reason}): set INSPECTOR_HOME to a folder that you can write to."

Kind = Literal["progress", "opened", "done", "failed", "whole"]


@dataclass(frozen=True, slots=True)
class Task:
    """What a child does."""

    verb: str  # of the question, or of the command
    references: tuple[CheckpointRef, ...]
    # Gets the open checkpoints, in their order, and what tells progress; gives plain JSON values.
    work: Callable[[list[Checkpoint], Progress], Any]
    reads_all: bool = False  # True: it reads the files from end to end
    device: str = ""  # that a model is asked to run on; "" where none runs
    names_alone: bool = False  # True: it reads no number, so that headers are enough
    downloads: bool = False  # True: it keeps the network, and opens nothing
    about: int = 0  # place of the checkpoint that is opened first, and told of
    beside: tuple[str, ...] = ()  # what the others are called where they cannot be opened
    fills: tuple[int, ...] = ()  # descriptors of the files that it writes


@dataclass(frozen=True, slots=True)
class Message:
    """A message of a child."""

    kind: Kind
    # of "progress" what is done; of "opened" an Opened, once the first checkpoint is; of "done" the values; of "failed"
    # the error; of "whole" nothing: headers are not enough
    value: Any


class Child:
    """A forked process that does one task.

    Args:
        task: What it does.
        settings: Limits, and where the store is.
        fetched: The folder of each model of the hub that the task opens.

    Raises:
        WorkerError: If it cannot be started.
    """

    def __init__(self, task: Task, settings: Settings, fetched: dict[CheckpointRef, Path]) -> None:
        self._settings = settings
        self._task = task
        access, self._kept = _access(task, settings, fetched)
        try:
            self._folder, self._lock = fresh_folder(settings.home / WORKERS, uuid.uuid4().hex)
            self._own = self._folder / "own"
            (self._own / TEMPORARY).mkdir(parents=True)
        except OSError as error:
            raise WorkerError(disk_sentence(error, settings) or NO_HOME.format(reason=error.strerror)) from error
        for folder in (self._own, self._own / TEMPORARY):
            give_to(folder, worker_user(settings.worker_user))
        own = replace(settings, home=self._own, uploads=settings.home)
        self.connection, theirs = Pipe(duplex=False)
        self._printed = Printed()
        parent = os.getpid()
        try:
            self._pid = os.fork()
        except OSError as error:
            theirs.close()
            self._printed.begin()
            self._printed.close()
            self._remove()
            raise limits.start_error(error) from error
        if not self._pid:
            prints = self._printed.end
            _Inside(theirs, prints, replace(access, settings=own), task, fetched, self._kept, parent).run()
        theirs.close()
        self._printed.begin()
        self._running = True
        self._begun = time.monotonic()
        self._cpu_before = 0.0
        self._looked = 0.0
        self._opening: int | None = sum(reference.origin.costs(settings) for reference in task.references)

    def read(self) -> Message | None:
        """Read the next message; None: there is none yet.

        Raises:
            WorkerError: If the child passed a limit, ended, or sent what is no message.
        """
        self._printed.pass_on()
        if not self.connection.poll():
            self._watch()
            return None
        try:
            with collector_paused():
                said = _read(json.loads(self.connection.recv_bytes(MOST_NBYTES)))
        except EOFError:
            raise limits.death_error(self._wait()) from None
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise WorkerError("The process that read the checkpoint sent an invalid reply: try again.") from error
        if said.kind == "opened":
            self._opening = None
            self._begun, self._cpu_before = time.monotonic(), limits.cpu_seconds_of(self._pid)
        return said

    def end(self) -> None:
        """End it, keep what it computed, and remove its folder."""
        if self._running:
            with suppress(ProcessLookupError):
                os.kill(self._pid, signal.SIGKILL)
            self._wait()
        self.connection.close()
        self._printed.close()
        for folder in below(self._own / MAPS):
            copy_results(folder, self._kept)
            with suppress(OSError):
                trim(self._settings)
        self._remove()

    def _wait(self) -> int:
        self._running = False
        return os.waitstatus_to_exitcode(os.waitpid(self._pid, 0)[1])

    def _watch(self) -> None:
        usage = limits.usage_of(self._pid, since=self._begun, cpu_before=self._cpu_before)
        error = limits.exceeded(usage, self._settings, opening=self._opening, device=self._task.device)
        if error is None and time.monotonic() - self._looked > FOLDER_SECONDS:
            self._looked = time.monotonic()
            if kept_nbytes(self._own, self._pid) > self._settings.worker_disk_nbytes:
                error = limits.limit_error(limits.KEPT, self._settings)
        if error:
            raise error

    def _remove(self) -> None:
        remove_folder(self._folder)
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


class Printed:
    """What a child prints, which its parent prints in its stead: line by line, without control codes."""

    def __init__(self) -> None:
        self._ours, self.end = os.pipe()
        self._line = b""
        self._left = MOST_PRINTED

    def begin(self) -> None:
        """Leave the other end to the child."""
        os.close(self.end)
        os.set_blocking(self._ours, False)

    def pass_on(self) -> bool:
        """Print what has come; False: nothing has."""
        try:
            data = os.read(self._ours, 1 << 16)
        except BlockingIOError:
            return False
        *lines, self._line = (self._line + data[: self._left]).split(b"\n")
        self._left -= min(len(data), self._left)
        for line in lines:
            sys.stderr.write(f"{escaped(line.decode(errors='backslashreplace'))}\n")
        return bool(data)

    def close(self) -> None:
        """Print the rest."""
        while self.pass_on():
            pass
        if self._line:
            sys.stderr.write(f"{escaped(self._line.decode(errors='backslashreplace'))}\n")
        os.close(self._ours)


class InProcess:
    """The same in this process, where a system cannot fork."""

    def __init__(self, task: Task, settings: Settings, fetched: dict[CheckpointRef, Path]) -> None:
        self._said: list[Message] = []
        _do(task, settings, fetched, self._send)

    def read(self) -> Message | None:
        """Read the next message; the last one was sent before anybody could ask."""
        return self._said.pop(0)

    def end(self) -> None:
        """Nothing is left to end."""

    def _send(self, kind: Kind, value: Any) -> None:
        self._said.append(_read(json.loads(json.dumps([kind, value], allow_nan=False))))


def do(task: Task, settings: Settings, *, tell: Callable[[str], None]) -> Any:
    """Do a task in a child.

    Args:
        task: What is done.
        settings: Limits, and where the store is.
        tell: Called with what is being done.

    Returns:
        What its work gives, plain JSON values.

    Raises:
        InspectorError: What its work raised, or what ended the child.
    """
    with compiled(task.verb, settings):
        child = start(task, settings, tell=tell)
        try:
            while True:
                said = child.read()
                if said is None:
                    wait_for([child])
                elif said.kind == "progress":
                    tell(said.value)
                elif said.kind == "failed":
                    raise said.value
                elif said.kind == "done":
                    return said.value
                elif said.kind == "whole":
                    break
        finally:
            child.end()
    return do(replace(task, names_alone=False), settings, tell=tell)


@contextmanager
def compiled(verb: str, settings: Settings) -> Iterator[None]:
    """Meanwhile, compile what a question runs, unless that was done: in a process that reads no checkpoint."""
    compiler = Compiler(settings)
    if verb in CATALOG:
        compiler.start(CATALOG[verb])
    try:
        yield
    finally:
        compiler.close()


def start(
    task: Task,
    settings: Settings,
    *,
    tell: Callable[[str], None] = lambda text: None,
    kind: type[Child] | type[InProcess] = Child if FORKS else InProcess,
) -> Child | InProcess:
    """Start a task; models of the hub are fetched first, by a child that reads none of their files.

    Args:
        task: What is done.
        settings: Limits, and where the store is.
        tell: Called with what is being done while a model is fetched.
        kind: Where it is done.

    Raises:
        InspectorError: If one cannot be fetched, or no process can be started.
    """
    fetched = {
        each: _fetch(each, settings, tell, kind, names_alone=task.names_alone)
        for each in task.references
        if each.origin.downloads
    }
    return kind(task, settings, fetched)


def preload(verb: str) -> None:
    """Import what a question needs once for many children, where a process can be forked after that."""
    if PRELOADS and verb in CATALOG:
        defer_imports()
        with suppress(ImportError):  # each child says what is missing
            import_module(CATALOG[verb].function.partition(":")[0])


def wait_for(children: list[Child | InProcess]) -> None:
    """Wait until one of some children has sent something, or it is time to look at what they use."""
    from multiprocessing.connection import wait

    wait([child.connection for child in children if isinstance(child, Child)], POLL_SECONDS)


def _fetch(
    reference: CheckpointRef,
    settings: Settings,
    tell: Callable[[str], None],
    kind: type[Child] | type[InProcess],
    *,
    names_alone: bool,
) -> Path:
    """Fetch a model from the hub, or its headers alone; the folder that holds them."""
    model = reference.value
    if names_alone:
        known = known_headers(model, settings)
        found = _fetched(
            lambda progress: fetch_headers(model, known, progress=progress), reference, settings, tell, kind
        )
        if found is not None:
            try:
                return put_headers(model, found, settings)
            except OSError as error:
                raise WorkerError(disk_sentence(error, settings) or NO_HOME.format(reason=error.strerror)) from error
    name = _fetched(lambda progress: download(model, progress=progress).name, reference, settings, tell, kind)
    return versions_folder(model) / Path(str(name)).name


def _fetched(
    work: Callable[[Progress], Any],
    reference: CheckpointRef,
    settings: Settings,
    tell: Callable[[str], None],
    kind: type[Child] | type[InProcess],
) -> Any:
    """What a child brings that keeps the network and opens nothing."""
    child = kind(Task("fetch", (reference,), lambda _, progress: work(progress), downloads=True), settings, {})
    try:
        while (said := child.read()) is None or said.kind == "progress":
            if said is None:
                wait_for([child])
            else:
                tell(said.value)
    finally:
        child.end()
    if said.kind == "failed":
        raise said.value
    return said.value


class _Inside:
    """The child itself: it becomes a process that keeps what its task needs, and never returns."""

    def __init__(
        self,
        connection: Connection,
        prints: int,
        access: Access,
        task: Task,
        fetched: dict[CheckpointRef, Path],
        kept: Path,
        parent: int,
    ) -> None:
        self._connection = connection
        self._prints = prints
        self._access = access
        self._task = task
        self._fetched = fetched
        self._kept = kept
        self._parent = parent
        self._sending = threading.Lock()  # downloads report from threads of their own

    def run(self) -> None:
        """Do the task; ends the process."""
        try:
            self._become()
            _do(self._task, self._access.settings, self._fetched, self._send, kept=self._kept)
        except BaseException as error:  # nothing may unwind into the parent's frames
            _print(error)
        finally:
            os._exit(0)

    def _become(self) -> None:
        settings = self._access.settings
        os.setsid()  # Ctrl-C reaches the parent alone
        os.dup2(self._prints, 1)  # what a library prints is no answer
        os.dup2(self._prints, 2)
        _let_go({1, 2, self._connection.fileno(), *self._task.fills})
        sys.stdout = sys.stderr = open(2, "w", encoding="utf-8", errors="backslashreplace", closefd=False)  # noqa: SIM115
        store = settings.uploads or settings.home
        environment = worker_environment(
            os.environ, settings=replace(settings, home=store), network=self._access.network, login=True
        )
        os.environ.clear()
        os.environ.update(environment)
        warnings.simplefilter("ignore")
        limits.apply_limits(settings)
        refuse_unconfined(confine(self._access), settings)
        _end_with(self._parent)
        defer_imports()

    def _send(self, kind: Kind, value: Any) -> None:
        data = json.dumps([kind, value], ensure_ascii=False, allow_nan=False).encode(errors="surrogatepass")
        with self._sending:
            self._connection.send_bytes(data)


def _let_go(kept: Collection[int]) -> None:
    """Let go of what the parent has open: its terminal, the files that it writes, what other children send.

    The numbers stay taken: objects that were copied with the process would close what gets one of them next.
    """
    nothing = os.open(os.devnull, os.O_RDONLY)
    for each in list(Path("/dev/fd").iterdir()):  # each process finds its own there
        if int(each.name) not in kept:
            os.dup2(nothing, int(each.name))


def _do(
    task: Task,
    settings: Settings,
    fetched: dict[CheckpointRef, Path],
    send: Callable[[Kind, Any], None],
    *,
    kept: Path | None = None,
) -> None:
    """Do a task, and send what comes of it."""
    shown_text, shown_at = "", 0.0

    def tell(_: float | None, text: str) -> None:
        nonlocal shown_text, shown_at
        if text != shown_text or time.monotonic() - shown_at >= SHOWN_SECONDS:
            shown_text, shown_at = text, time.monotonic()
            send("progress", text)

    try:
        if task.downloads:
            send("done", task.work([], tell))
            return
        staged = partial(_prepare, settings=settings, kept=kept, reads_all=task.reads_all)
        found: dict[CheckpointRef, Checkpoint] = {}
        others = (each for place, each in enumerate(task.references) if place != task.about)
        called = dict(zip(others, task.beside, strict=False))
        for each in dict.fromkeys((task.references[task.about], *task.references)):
            with naming(called.get(each, "") if found else ""):
                found[each] = open_here(
                    each, settings, fetched=fetched.get(each), shown=lambda _: nullcontext(tell), staged=staged
                )
            if len(found) == 1:
                opened = found[each].opened
                send("opened", [opened.fingerprint, opened.reference, opened.name, list(opened.warnings)])
        send("done", task.work([found[each] for each in task.references], tell))
    except HeadersAloneError:
        send("whole", None)
    except BaseException as error:  # a tokenizer's panic is no Exception
        failure = _explained(error, settings, device=task.device)
        names = (kind.__name__ for kind in type(failure).__mro__)
        named = next(name for name in names if hasattr(errors, name))
        send("failed", [named, str(failure), failure.option])


@contextmanager
def naming(name: str) -> Iterator[None]:
    """Have a refusal say which checkpoint it is about; "": it needs no name."""
    try:
        yield
    except InspectorError as error:
        if not name:
            raise
        raise type(error)(f"{name} could not be opened: {error}", option=error.option) from error


def _prepare(manifest: Manifest, *, settings: Settings, kept: Path | None, reads_all: bool) -> None:
    """Let a checkpoint's files be mapped, and have at hand what was computed of them before."""
    limits.admit_files(sum(file.nbytes for file in manifest.files))
    if kept is not None:
        copy_results(kept, results_folder(manifest.fingerprint, settings=settings))
    if reads_all:
        read_ahead(manifest, settings=settings)


def _explained(error: BaseException, settings: Settings, *, device: str) -> InspectorError:
    """What a person reads of an error."""
    if isinstance(error, InspectorError):
        return error
    if isinstance(error, ModuleNotFoundError) and (lack := lacks(error)):
        return errors.RequestError(lack)
    _print(error)
    return limits.explain(error, settings, device=device) or InspectorError(
        "The work failed unexpectedly. Try again; if it fails again, report it with the lines above."
    )


def _print(error: BaseException) -> None:
    """Print a traceback; what it quotes of a file stays on its line."""
    for line in "".join(traceback.format_exception(error)).splitlines():
        sys.stderr.write(f"{escaped(line)}\n")
    sys.stderr.flush()  # the process ends without it


def _read(message: Any) -> Message:
    """Read a message of a process that has read a stranger's files.

    Raises:
        ValueError, TypeError: If it is none.
    """
    kind, value = message
    if kind == "progress":
        return Message("progress", escaped(shorten(str(value), MAX_TEXT)))
    if kind == "opened":
        fingerprint, reference, name, said = value
        if not is_fingerprint(fingerprint):
            raise ValueError("no fingerprint")
        return Message("opened", Opened(fingerprint, str(reference), str(name), tuple(map(str, said))))
    if kind == "failed":
        named, text, option = value
        found = getattr(errors, str(named), None)
        if not (isinstance(found, type) and issubclass(found, InspectorError)):
            raise ValueError("no error of ours")
        return Message("failed", found(shorten(str(text), MAX_TEXT), option=shorten(str(option), MAX_TEXT)))
    if kind not in {"done", "whole"}:
        raise ValueError("no such message")
    return Message(kind, value)


def _access(task: Task, settings: Settings, fetched: dict[CheckpointRef, Path]) -> tuple[Access, Path]:
    """What a child may read, and the folder that keeps what is computed of just these files."""
    if task.downloads:
        return Access(settings, network=True, login=True), settings.home / MAPS / "none"
    reads: list[Place] = []
    whole: list[Path] = []
    for reference in task.references:
        whole += reference.origin.held(settings)
        with suppress(OSError, RuntimeError, ValueError, InspectorError):  # the child says what is wrong
            found = reference.origin.reads(Reach(settings, restrict_paths=False, fetched=fetched.get(reference)))
            reads += map(place_of, found)
    key = hashlib.sha256()
    for path in sorted({*(path for path, *_ in reads), *whole}):
        with suppress(OSError):
            found = path.stat()
            key.update(f"{path}|{found.st_size}|{found.st_mtime_ns}|{found.st_ino}\n".encode(errors="surrogatepass"))
    kept = settings.home / MAPS / key.hexdigest()
    modules = (CATALOG[task.verb].function,) if task.verb in CATALOG else ()
    return Access(settings, reads=tuple(reads), whole=(*whole, kept), modules=modules), kept


def _end_with(parent: int) -> None:
    """End this process when its parent does, where the system can tell."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(END_OF_PARENT, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:
            os._exit(0)
