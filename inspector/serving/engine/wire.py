"""What goes through a worker's pipe.

The worker has read files that strangers made, so the web process does not trust it: it reads each
message as one of a few classes, and each answer as the class that the question may return
(`inspector.serving.encoding`). What a class does not say does not come through.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from inspector import errors
from inspector.catalog import Needs, find
from inspector.errors import InspectorError, WorkerError
from inspector.request import beside
from inspector.results.checkpoint import Opened
from inspector.sandbox.confinement import Access, Confinement
from inspector.serving.encoding import DecodeError, decode, encode
from inspector.serving.engine.protocol import Progress
from inspector.settings import Settings
from inspector.store import pairs
from inspector.store.files import Place
from inspector.store.manifests.documents import is_fingerprint
from inspector.store.reference import CheckpointRef
from inspector.text import escaped, shorten


@dataclass(frozen=True, slots=True)
class WorkerFunctions:
    """Names ("package.module:name") of what a worker imports, and the web process never does."""

    open: str = "inspector.serving.storing.opening:open_checkpoint"
    download: str = "inspector.store.origins.hub:download"
    fetch_headers: str = "inspector.store.origins.hub_headers:fetch_headers"
    # the engine's own: it puts into the store what is staged
    receive: str = "inspector.serving.storing.receiving:receive"
    load_manifest: str = "inspector.store.keeping.holding:load_held"
    checkpoint: str = "inspector.models.checkpoint:StagedCheckpoint"
    adapted: str = "inspector.models.adapters.overlay:adapted"
    prepare: str = "inspector.models.checkpoint:prepare"
    # Modules that a worker imports while nobody asks it anything, one at a time: two threads that
    # import transformers at once fail.
    light: tuple[str, ...] = ("inspector.models.tokens", "pandas")  # an overview needs the first
    warm_up: tuple[str, ...] = (
        "torch",
        "transformers",
        "transformers.modeling_utils",
        "transformers.models.auto.modeling_auto",
        "transformers.models.bert.modeling_bert",
        "transformers.models.gpt2.modeling_gpt2",
    )

    @property
    def modules(self) -> tuple[str, ...]:
        """All that are imported before a question needs them."""
        return *self.light, *self.warm_up


@dataclass(frozen=True, slots=True)
class Setup:
    """First message to a worker."""

    settings: Settings
    functions: WorkerFunctions
    restrict_paths: bool
    network: bool = False  # True: it downloads, and reads no checkpoint
    outside: tuple[Place, ...] = ()  # of the store, what it may read besides

    @property
    def access(self) -> Access:
        """What the worker keeps."""
        functions = self.functions
        named = (functions.open, functions.load_manifest, functions.checkpoint, *functions.modules)
        return Access(
            self.settings,
            reads=self.outside,
            whole=() if self.settings.given is None else (self.settings.given,),
            modules=named,
            network=self.network,
            login=not self.restrict_paths,
        )


@dataclass(frozen=True, slots=True)
class OpenRequest:
    """Stage a checkpoint, once it is on this machine."""

    reference: CheckpointRef
    # Of one of the hub, the folder of its cache that holds it; of an upload that arrives, what there is of it
    fetched: Path | None = None
    whole: bool = False  # True: one of the hub is fetched with its numbers; False: its headers may do
    known: tuple[str, ...] = ()  # keys of the headers that are kept of it

    @property
    def downloads(self) -> bool:
        """Whether it has to be fetched first: by a worker of its own, which reads nothing of it."""
        return self.reference.origin.downloads and self.fetched is None


@dataclass(frozen=True, slots=True)
class RunRequest:
    """Run one analysis on a staged checkpoint."""

    fingerprint: str
    function: str
    parameters: dict[str, Any]
    batch: str | None = None  # function that answers many such requests at once
    called: tuple[str, ...] = ()  # as in Engine.run
    result: str = "typing:Any"  # "package.module:Class" of the answer; as here: plain values
    partial: str = ""  # the same of what it shows meanwhile; empty: nothing
    needs: Needs = "model"  # of the catalog
    early: bool = False  # headers answer it, as the catalog says

    @property
    def about(self) -> tuple[str, ...]:
        """Of the checkpoint that is asked about; two, if it is a base with an adapter on it."""
        return pairs.fingerprints_in(self.fingerprint)

    @property
    def fingerprints(self) -> tuple[str, ...]:
        """Of the checkpoint that is asked about, and of the others that the question names."""
        return (*self.about, *(each for each in beside(self.parameters).values() if isinstance(each, str)))

    @property
    def names(self) -> tuple[str, ...]:
        """What the answer calls the checkpoint, and the others that the question names."""
        parts = len(self.about)
        return (pairs.title(self.called[:parts]), *self.called[parts:]) if self.called else ()


def device_of(request: OpenRequest | RunRequest) -> str:
    """The device that a question names for the model that it runs; "" where it runs none, or names none."""
    if not isinstance(request, RunRequest) or request.needs != "model":
        return ""
    return str(request.parameters.get("device", ""))


@dataclass(frozen=True, slots=True)
class BatchRequest:
    """What a worker does next; several requests are for one analysis of one checkpoint."""

    requests: tuple[bytes, ...]  # as `encode` wrote each when it was asked


@dataclass(frozen=True, slots=True)
class Answers:
    """A batch is done: for each request, in their order, its result or its Failure, encoded.

    Each is encoded by itself, because the class that is expected depends on the request.
    """

    values: tuple[bytes, ...]

    @classmethod
    def of(cls, values: Iterable[Any]) -> Answers:
        """Encode results, and errors as Failures."""
        return cls(tuple(encode(as_message(value)) for value in values))


@dataclass(frozen=True, slots=True)
class Fetched:
    """A model of the hub has been downloaded, or its headers."""

    version: str  # 40 hex digits, which name its folder in the cache
    alone: bool = False  # True: its headers were
    small: tuple[str, ...] = ()  # names of the other files, which are in the cache
    headers: dict[str, tuple[int, str]] = field(default_factory=dict)  # as `fetch_headers` gives them; {}: are kept


@dataclass(frozen=True, slots=True)
class Partial:
    """What is known of an answer while the rest is computed; the next one takes its place."""

    number: int  # of those that were sent about this request, from 1
    value: bytes  # of the class that the catalog gives for it, encoded


@dataclass(frozen=True, slots=True)
class Failure:
    """A request failed, or a whole batch; the class is one of inspector.errors, by name."""

    error: str
    text: str
    option: str = ""  # whose value is at fault; "": no single one's


@dataclass(frozen=True, slots=True)
class Ready:
    """The process is up and takes requests, confined as far as the platform can."""

    confinement: Confinement


@dataclass(frozen=True, slots=True)
class Warm:
    """Everything slow is imported."""


NOW, WARM = b"n", b"w"  # when a fork server forks: at once, or with everything slow imported
VERSION = re.compile(r"[0-9a-f]{40}")
MAX_TEXT = 2_000  # characters of a sentence that a worker says; of each in an answer to "open"
MAX_WARNINGS, MAX_OPTION = 1_000, 100
MAX_PARTIAL, MOST_PARTIALS = 1_000_000, 1_000  # bytes of a partial answer, and how many a request may have
SAID = (Ready, Warm, Progress, Partial, Answers, Failure)  # by a worker
ASKED = (OpenRequest, RunRequest)


def read_outcomes(message: Any, requests: Sequence[OpenRequest | RunRequest]) -> list[Any]:
    """Read what an untrusted process answers to a batch: for each request its result or its error.

    Raises:
        DecodeError: If an answer is not of the class that its question returns, or is about another checkpoint.
    """
    if isinstance(message, Failure):
        return [_error(message)] * len(requests)
    values = message.values if isinstance(message, Answers) else ()
    if len(values) != len(requests):
        error = WorkerError("The worker sent an unexpected reply. Try again: a new worker takes over.")
        return [error] * len(requests)
    found = [decode(value, Failure, result_class(asked)) for value, asked in zip(values, requests, strict=True)]
    for value, asked in zip(found, requests, strict=True):
        if isinstance(value, Opened) and isinstance(asked, OpenRequest):
            _refuse_other(value, asked)
        elif isinstance(value, Fetched) and not VERSION.fullmatch(value.version):
            raise DecodeError("The worker sent an invalid hub version.")
        elif isinstance(asked, RunRequest):
            _refuse_other_answer(value, asked)
    return [_error(value) if isinstance(value, Failure) else value for value in found]


def read_progress(said: Progress) -> Progress:
    """What a bar can show of what an untrusted process says."""
    known = said.fraction is not None and 0 <= said.fraction <= 1
    return Progress(said.fraction if known else None, escaped(shorten(said.text, MAX_TEXT)))


def read_partial(said: Partial, asked: OpenRequest | RunRequest, *, number: int) -> Any:
    """Read what an untrusted process shows of an answer that it has not given yet.

    Args:
        said: By the process.
        asked: What it works on.
        number: That the partial answer must have.

    Raises:
        DecodeError: If it is too large, out of turn, one of too many or of another class than its question shows,
            or about another checkpoint.
    """
    if not isinstance(asked, RunRequest) or not asked.partial:
        raise DecodeError("This question has no partial answers.")
    if said.number != number or number > MOST_PARTIALS or len(said.value) > MAX_PARTIAL:
        raise DecodeError("A partial answer is too large or out of order.")
    value = decode(said.value, find(asked.partial))
    _refuse_other_answer(value, asked)
    return value


def _refuse_other(opened: Opened, asked: OpenRequest) -> None:
    """Believe no worker that names another checkpoint: it would answer for that one from then on."""
    if len(opened.warnings) > MAX_WARNINGS or any(len(warning) > MAX_TEXT for warning in opened.warnings):
        raise DecodeError("The worker sent too many warnings.")
    fingerprint, origin = opened.fingerprint, asked.reference.origin
    is_its_own = is_fingerprint(fingerprint) and fingerprint.startswith(origin.digits)
    if not is_its_own or opened.reference != origin.becomes(fingerprint, asked.fetched):
        raise DecodeError("The worker opened another checkpoint.")


def _refuse_other_answer(answer: Any, asked: RunRequest) -> None:
    """Believe no answer that is about another checkpoint than the question, or calls it by another user's name."""
    others = beside(asked.parameters)
    named = {f"{option}_fingerprint": each for option, each in others.items()}
    if len(asked.about) == 1:  # of two, `check_against_manifest` knows what both are known by
        named["fingerprint"] = asked.fingerprint
    named |= zip(("name", *(f"{option}_name" for option in others)), asked.names, strict=False)
    if any(getattr(answer, field, expected) != expected for field, expected in named.items()):
        raise DecodeError("The answer is about another checkpoint.")


def result_class(request: OpenRequest | RunRequest) -> Any:
    """The class of a request's answer; Any: plain values."""
    if isinstance(request, OpenRequest):
        return Fetched if request.downloads else Opened
    return find(request.result)


def as_message(value: Any) -> Any:
    """A result as it is, or an error as the Failure that `read_outcomes` reads."""
    if not isinstance(value, InspectorError):
        return value
    names = (cls.__name__ for cls in type(value).__mro__)
    return Failure(next(name for name in names if hasattr(errors, name)), str(value), value.option)


def _error(failure: Failure) -> InspectorError:
    found = getattr(errors, failure.error, None)
    if not (isinstance(found, type) and issubclass(found, InspectorError)):
        raise DecodeError("A failure has an unknown error class.")
    if len(failure.text) > MAX_TEXT or not failure.text.endswith("."):
        raise DecodeError("A failure is not one sentence.")
    return found(failure.text, option=shorten(failure.option, MAX_OPTION))
