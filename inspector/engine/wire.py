"""What goes through a worker's pipe, and how it is turned into bytes and back.

The worker has read files that strangers made, so the web process does not trust it: the unpickler
below admits the result classes, plain values and NumPy arrays, and nothing that could be called.
Data frames travel as Arrow streams, checked before use; that is also quick (250,000 rows of a
projection: 0.1 s there, a few milliseconds back). Frames must hold numbers, booleans, text or
categories.
"""

from __future__ import annotations

import io
import pickle  # noqa: TID251 - with an allow-list on the side that does not trust
import re
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, is_dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

from inspector import errors
from inspector.engine.protocol import Confinement
from inspector.errors import InspectorError, WorkerError
from inspector.results.checkpoint import Opened
from inspector.settings import Settings
from inspector.store.reference import CheckpointRef

if TYPE_CHECKING:  # frames are late in a worker's life: opening one does without
    import pandas as pd


@dataclass(frozen=True, slots=True)
class WorkerFunctions:
    """Names ("package.module:name") of what a worker imports, and the web process never does."""

    open: str = "inspector.store.opening:open_checkpoint"
    load_manifest: str = "inspector.store.holding:load_held"
    checkpoint: str = "inspector.models.checkpoint:Checkpoint"
    # Modules that a worker imports while nobody asks it anything, one at a time: two threads that
    # import transformers at once fail.
    light: tuple[str, ...] = ("pandas", "inspector.models.tokens")  # what an overview needs
    warm_up: tuple[str, ...] = (
        "torch",
        "transformers",
        "transformers.modeling_utils",
        "transformers.models.auto.modeling_auto",
        "transformers.models.bert.modeling_bert",
        "transformers.models.gpt2.modeling_gpt2",
    )


@dataclass(frozen=True, slots=True)
class Setup:
    """First message to a worker."""

    settings: Settings
    functions: WorkerFunctions
    restrict_paths: bool
    network: bool = False  # True: it downloads, and is confined afterwards


@dataclass(frozen=True, slots=True)
class OpenRequest:
    """Stage a checkpoint."""

    reference: CheckpointRef


@dataclass(frozen=True, slots=True)
class RunRequest:
    """Run one analysis on a staged checkpoint."""

    fingerprint: str
    function: str
    parameters: dict[str, Any]
    batch: str | None = None  # function that answers many such requests at once
    called: tuple[str, ...] = ()  # as in Engine.run


@dataclass(frozen=True, slots=True)
class BatchRequest:
    """What a worker does next; several requests are for one analysis of one checkpoint."""

    requests: tuple[bytes, ...]  # as `encode` wrote each when it was asked


@dataclass(frozen=True, slots=True)
class Answers:
    """A batch is done: for each request, in their order, its result or its Failure."""

    values: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Failure:
    """A request failed, or a whole batch; the class is one of inspector.errors, by name."""

    error: str
    text: str


@dataclass(frozen=True, slots=True)
class Ready:
    """The process is up and takes requests, confined as far as the platform can."""

    confinement: Confinement


@dataclass(frozen=True, slots=True)
class Warm:
    """Everything slow is imported."""


RESULT_MODULES = re.compile(
    r"inspector\.results\.\w+|inspector\.analyses\.\w+\.result\w*"
    r"|inspector\.engine\.(protocol|wire|ray\.messages)"
)
ADMITTED = {
    ("builtins", "complex"),
    ("builtins", "frozenset"),
    ("builtins", "set"),
    ("numpy", "dtype"),
    ("numpy", "ndarray"),
    ("numpy._core.multiarray", "_reconstruct"),
    ("numpy._core.multiarray", "scalar"),
    ("numpy._core.numeric", "_frombuffer"),
    ("pathlib", "PosixPath"),
    ("pathlib._local", "PosixPath"),
}


def encode(message: Any) -> bytes:
    """Turn a message into bytes; `decode` gives it back.

    Raises:
        Exception: Whatever pickle or Arrow say of a value that does not travel.
    """
    buffer = io.BytesIO()
    _Pickler(buffer, protocol=5).dump(message)
    return buffer.getvalue()


def decode(data: bytes) -> Any:
    """Read a message that an untrusted process sent.

    Raises:
        pickle.UnpicklingError: If it names anything but results and plain values.
        Exception: Whatever pickle or Arrow say of broken bytes.
    """
    return _Unpickler(io.BytesIO(data)).load()


def decode_trusted(data: bytes) -> Any:
    """Read a message of the process that started this one."""
    return pickle.loads(data)


def read_outcomes(message: Any, requests: Sequence[OpenRequest | RunRequest]) -> list[Any]:
    """Read what an untrusted process answers to a batch: for each request its result or its error.

    Raises:
        Exception: If the message is not what it seems to be.
    """
    values = message.values if isinstance(message, Answers) else ()
    if isinstance(message, Failure):
        values = (message,) * len(requests)
    if len(values) != len(requests) or not all(map(_fits, values, requests)):
        error = WorkerError("The worker sent an unexpected reply. Try again: a new worker takes over.")
        return [error] * len(requests)
    return [_error(value) if isinstance(value, Failure) else value for value in values]


def as_message(value: Any) -> Any:
    """A result as it is, or an error as the Failure that `read_outcomes` reads."""
    if not isinstance(value, InspectorError):
        return value
    names = (cls.__name__ for cls in type(value).__mro__)
    return Failure(next(name for name in names if hasattr(errors, name)), str(value))


def _fits(value: Any, request: OpenRequest | RunRequest) -> bool:
    if isinstance(value, Failure):
        return True
    return isinstance(value, Opened) == isinstance(request, OpenRequest)


def _error(failure: Failure) -> InspectorError:
    return getattr(errors, failure.error, InspectorError)(failure.text)


def frame_to_arrow(frame: pd.DataFrame) -> bytes:
    """Write a frame as an Arrow stream."""
    import pyarrow as pa

    table = pa.Table.from_pandas(frame)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


def frame_from_arrow(data: bytes) -> pd.DataFrame:
    """Read a frame, its offsets and text checked.

    Raises:
        pyarrow.ArrowInvalid: If the stream is broken.
    """
    import pyarrow as pa

    table = pa.ipc.open_stream(data).read_all()
    table.validate(full=True)
    return table.to_pandas()


def _ours(module_name: str) -> Any:
    """A module of results or messages; a replica has not imported them all, as pages have."""
    with suppress(ModuleNotFoundError):
        return import_module(module_name)
    return None


class _Pickler(pickle.Pickler):
    def reducer_override(self, value: Any) -> Any:
        pandas = sys.modules.get("pandas")
        if pandas and type(value) is pandas.DataFrame:
            return frame_from_arrow, (frame_to_arrow(value),)
        return NotImplemented


class _Unpickler(pickle.Unpickler):
    def find_class(self, module_name: str, global_name: str) -> Any:
        if (module_name, global_name) == (__name__, "frame_from_arrow"):
            return frame_from_arrow
        if (module_name, global_name) in ADMITTED:
            return super().find_class(module_name, global_name)
        if RESULT_MODULES.fullmatch(module_name):
            found = getattr(_ours(module_name), global_name, None)
            if isinstance(found, type) and is_dataclass(found):
                return found
        raise pickle.UnpicklingError(f"{module_name}.{global_name} does not belong in a result.")
