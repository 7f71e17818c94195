"""What a worker process does, once it is forked (see `forkserver`).

It answers the requests of one checkpoint, batch by batch, and keeps the model loaded between them.
While nobody asks, it imports the slow libraries, step by step, so that the first question
that needs a model finds them there. When the server is gone its pipe closes and the worker ends.
"""

from __future__ import annotations

import faulthandler
import os
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import nullcontext, suppress
from functools import partial
from importlib import import_module
from multiprocessing.connection import Connection
from queue import Empty, SimpleQueue
from typing import Any

from inspector import errors
from inspector.catalog import find
from inspector.program import lacks
from inspector.results.checkpoint import Opened
from inspector.sandbox import limits
from inspector.sandbox.confinement import Confinement, confine, refuse_unconfined
from inspector.serving.encoding import decode, encode
from inspector.serving.engine.protocol import Progress
from inspector.serving.engine.wire import (
    ASKED,
    MAX_PARTIAL,
    MOST_PARTIALS,
    Answers,
    BatchRequest,
    Failure,
    Fetched,
    OpenRequest,
    Partial,
    Ready,
    RunRequest,
    Setup,
    Warm,
    as_message,
    device_of,
    result_class,
)
from inspector.store.manifests.documents import collector_paused
from inspector.store.manifests.manifest import HeadersAloneError

QUIET_SECONDS = 1.5  # without a request, before the slow imports go on
SHORT_SECONDS = 0.05  # without a request, before an import that takes a moment
PROGRESS_SECONDS = 0.05  # between two progress messages of the same text


class Worker:
    """Answers requests on a pipe."""

    def __init__(self, connection: Connection, setup: Setup, confinement: Confinement) -> None:
        self._connection = connection
        self._confinement = confinement
        self._sending = threading.Lock()  # downloads report from threads of their own
        self._setup = setup
        self._loaded: tuple[Any, ...] = ()  # fingerprint of the checkpoint, and where its files lie
        self._files: tuple[Any, ...] = ()  # the same files alone
        self._checkpoint: Any = None
        self._opened: Any = None  # the manifest of the checkpoint that it has just opened
        self._admitted = False  # whether the limits count its files
        self._shown = ("", 0.0)
        self._partials = 0  # that were sent about the request
        self._device = ""  # that it names

    def serve(self, requests: SimpleQueue[Any]) -> None:
        """Answer for ever; import the slow modules in between."""
        self._send(Ready(self._confinement))
        functions = self._setup.functions
        for module in functions.light:
            self._answer_next(requests, SHORT_SECONDS)
            _import_quietly(module)
        pause = QUIET_SECONDS
        for module in functions.warm_up:
            while self._answer_next(requests, pause):
                pause = QUIET_SECONDS
            _import_quietly(module)
            pause = 0.0
        self._send(Warm())
        while True:
            self._answer_next(requests, None)

    def _answer_next(self, requests: SimpleQueue[Any], pause: float | None) -> bool:
        try:
            batch = requests.get(timeout=pause)
        except Empty:
            return False
        self._answer(batch)
        return True

    def _answer(self, batch: BatchRequest) -> None:
        self._shown, self._partials, self._device = ("", 0.0), 0, ""
        try:
            refuse_unconfined(self._confinement, self._setup.settings)
            requests = [decode(request, *ASKED) for request in batch.requests]
            self._device = device_of(requests[0])
            with collector_paused() if _reads_names(requests[0]) else nullcontext():
                self._send(Answers.of(self._values(requests)))
                self._prepare()
        except errors.InspectorError as error:
            self._send(as_message(error))
        except HeadersAloneError as error:
            self._send(as_message(errors.WeightsOnHubError(str(error))))
        except FileNotFoundError as error:  # deleted at this moment, perhaps by another server
            self._send(self._gone(batch) or self._unexpected(error))
        except ModuleNotFoundError as error:
            lack = lacks(error)
            self._send(as_message(errors.MissingLibraryError(lack)) if lack else self._unexpected(error))
        except BaseException as error:  # a tokenizer's panic is no Exception
            self._send(self._unexpected(error))

    def _values(self, requests: Sequence[OpenRequest | RunRequest]) -> Sequence[Any]:
        """For each request its result, or the error that refuses it."""
        first = requests[0]
        if isinstance(first, OpenRequest):
            return [self._open(first)]
        checkpoint = self._load(first)
        if first.needs != "names":
            if not first.early:
                checkpoint.manifest.refuse_outline()
            self._admit_files([checkpoint.manifest])
            if not first.early:
                checkpoint.manifest.verify(self._progress)
        checkpoint.called = first.names
        if first.batch is None:
            shows = {"show": self._show} if first.partial else {}
            answers = [find(first.function)(checkpoint, progress=self._progress, **shows, **first.parameters)]
        else:
            asked = [request.parameters for request in requests if isinstance(request, RunRequest)]
            answers = find(first.batch)(checkpoint, asked, progress=self._progress)
        _refuse_other_class(answers, first)
        return answers

    def _open(self, request: OpenRequest) -> Opened | Fetched:
        if request.downloads:
            return self._fetch(request)
        manifest, reference = find(self._setup.functions.open)(
            request.reference,
            settings=self._setup.settings,
            progress=self._progress,
            restrict_paths=self._setup.restrict_paths,
            fetched=request.fetched,
        )
        self._opened = manifest
        return Opened(
            fingerprint=manifest.fingerprint,
            reference=str(reference),
            name=manifest.name,
            warnings=tuple(manifest.warnings),
        )

    def _fetch(self, request: OpenRequest) -> Fetched:
        functions, named = self._setup.functions, request.reference.value
        if not request.whole:
            found = find(functions.fetch_headers)(named, request.known, progress=self._progress)
            if found is not None:
                headers = found.get("headers", {})
                return Fetched(found["commit"], alone=True, small=tuple(found.get("small", ())), headers=headers)
        return Fetched(find(functions.download)(named, progress=self._progress).name)

    def _prepare(self) -> None:
        """Find out what most questions need of a checkpoint, while the server puts it into the store."""
        if self._opened is not None:
            opened, self._opened = self._opened, None
            prepare = find(self._setup.functions.prepare)
            with suppress(Exception):  # a question that needs it meets the same, and says so
                prepare(opened, settings=self._setup.settings)

    def _load(self, request: RunRequest) -> Any:
        """The checkpoint, once its files are known to be those that were opened."""
        functions, settings = self._setup.functions, self._setup.settings
        manifests = [find(functions.load_manifest)(each, settings=settings) for each in request.about]
        files = tuple(file.path for each in manifests for file in getattr(each, "files", ()))
        names = request.called[: len(manifests)] if len(manifests) > 1 else ()  # what is said of two has their names
        loaded = request.fingerprint, *names, *files  # equal files may have been opened elsewhere since
        if self._loaded != loaded:
            self._admitted = self._admitted and self._files == files  # the limit grows once for them
            checkpoints = [find(functions.checkpoint)(each, settings=settings) for each in manifests]
            made, *adapter = checkpoints
            if adapter:
                self._admit_files(manifests)
                for checkpoint, name in zip(checkpoints, names, strict=False):
                    checkpoint.called = (name,)
                made = find(functions.adapted)(*checkpoints)
            self._checkpoint, self._loaded, self._files = made, loaded, files
        return self._checkpoint

    def _admit_files(self, manifests: Sequence[Any]) -> None:
        """Let the checkpoint's files be mapped."""
        if not self._admitted:
            limits.admit_files(sum(file.nbytes for each in manifests for file in getattr(each, "files", ())))
            self._admitted = True

    def _progress(self, fraction: float | None, text: str) -> None:
        shown_text, shown_at = self._shown
        now = time.monotonic()
        if text != shown_text or now - shown_at >= PROGRESS_SECONDS:
            self._shown = (text, now)
            self._send(Progress(fraction, text))

    def _show(self, partial: Any) -> None:
        """Send a partial answer, unless it is one that the server would refuse."""
        data = encode(partial)
        if len(data) <= MAX_PARTIAL and self._partials < MOST_PARTIALS:
            self._partials += 1
            self._send(Partial(self._partials, data))

    def _gone(self, batch: BatchRequest) -> Failure | None:
        """What to say if the checkpoint is no longer there; None: it is."""
        request = decode(batch.requests[0], *ASKED)
        try:
            if isinstance(request, RunRequest):
                self._load(request)
        except errors.InspectorError as error:
            return as_message(error)
        return None

    def _unexpected(self, error: BaseException) -> Failure:
        traceback.print_exception(error)
        if known := limits.explain(error, self._setup.settings, device=self._device):
            return as_message(known)
        # What is no Exception left the libraries in an unknown state: a WorkerError ends the worker
        ending = "InspectorError" if isinstance(error, Exception) else "WorkerError"
        return Failure(
            ending,
            "The work failed unexpectedly. Try again; if it fails again, report it with the lines in the server's log.",
        )

    def _send(self, message: Any) -> None:
        data = encode(message)
        with self._sending:
            self._connection.send_bytes(data)


def work(descriptor: int) -> None:
    """Serve a pipe until the server is gone."""
    faulthandler.enable(os.dup(2))  # its own: stderr is taken away while a native library may panic
    connection = Connection(descriptor)
    setup: Setup = decode(connection.recv_bytes(), Setup)
    limits.apply_limits(setup.settings)
    confinement = confine(setup.access)
    requests: SimpleQueue[Any] = SimpleQueue()
    listen = partial(_listen, connection, requests.put)
    threading.Thread(target=listen, name="requests", daemon=True).start()
    Worker(connection, setup, confinement).serve(requests)


def _listen(connection: Connection, put: Callable[[Any], None]) -> None:
    try:
        while True:
            put(decode(connection.recv_bytes(), BatchRequest))
    except (EOFError, OSError):
        os._exit(0)  # the server is gone: whatever is being computed, nobody waits for it


def _reads_names(request: OpenRequest | RunRequest) -> bool:
    """Whether a request needs no numbers, but perhaps a hundred thousand names."""
    return not request.downloads if isinstance(request, OpenRequest) else request.needs == "names"


def _refuse_other_class(answers: Sequence[Any], asked: RunRequest) -> None:
    """Refuse answers that the server would not read.

    Raises:
        InspectorError: If one is not of the class that the question's function is annotated with.
    """
    expected = result_class(asked)
    allowed = object if expected is Any else expected | errors.InspectorError
    for answer in answers:
        if not isinstance(answer, allowed):
            found, named = type(answer).__name__, expected.__name__
            raise errors.InspectorError(
                f"{asked.batch or asked.function} returned {found}, but {asked.function} is annotated with {named}."
            )


def _import_quietly(module: str) -> None:
    try:
        import_module(module)
    except BaseException as error:  # the analysis that needs it says so to the person
        if not lacks(error):
            traceback.print_exception(error)
