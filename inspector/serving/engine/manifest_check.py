"""What the server knows of a checkpoint by itself, and no answer about it may contradict.

The manifest in the store lists files, tensors and configuration. An answer that says otherwise comes from a
worker that cannot be trusted. What is not compared here is the worker's word: SECURITY.md says so.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable, Iterator, Mapping, Set
from contextlib import suppress
from functools import cached_property, lru_cache
from typing import Any

from inspector.errors import CheckpointError, WorkerError
from inspector.serving.engine.wire import OpenRequest, RunRequest
from inspector.settings import Settings
from inspector.store import pairs
from inspector.store.configs import BLOCKS
from inspector.store.manifests.columns import TensorInfo, Tensors, count_by_dtype, count_nbytes
from inspector.store.manifests.entries import MANIFEST, OPENED, UPLOADS, load_manifest
from inspector.store.manifests.manifest import Manifest
from inspector.store.names import shown_name
from inspector.store.readers.ggml import as_stored
from inspector.store.readers.pickles import ITEMSIZES

REMEMBERED = 4  # manifests of a hundred thousand tensors may take 50 MB each
PACKED = ("int", "uint")  # dtypes that quantized weights are packed in
DEPTH = ("layer", "block", "depth")  # in the name of a setting that counts layers
ENDS = 2  # states beside those after each layer: embeddings, and a final norm


class Known:
    """What a manifest says, ready to be compared with."""

    def __init__(self, manifest: Manifest) -> None:
        self.manifest = manifest

    @cached_property
    def tensors(self) -> Tensors:
        """The stored tensors as answers list them: blocks of a GGUF file with their type, and as many numbers."""
        return as_stored(self.manifest.tensors, self.manifest.quantization.get(BLOCKS, {}))

    @cached_property
    def bases(self) -> frozenset[str]:
        """Names without their last part, of tensors that may be parts of a quantized weight."""
        tensors = self.manifest.tensors
        coded = {place for place, kind in enumerate(tensors.kinds) if kind.dtype.startswith((*PACKED, "float8"))}
        numbers = {number for number, place in enumerate(tensors.places) if place in coded} - tensors.buffers
        return frozenset(tensors.names[number].rpartition(".")[0] for number in numbers)

    @cached_property
    def sizes(self) -> frozenset[int]:
        """Every axis of every tensor, and every whole number of the configuration."""
        axes = {size for kind in (*self.manifest.tensors.kinds, *self.tensors.kinds) for size in kind.shape}
        return frozenset(axes | {number for _, number in _numbers(self.manifest.config or {})})

    @cached_property
    def most_rows(self) -> int:
        """No tensor has more rows, however its numbers are packed."""
        kinds = {(kind.shape, kind.dtype) for kind in self.manifest.tensors.stored}
        packed = {dtype: 8 * ITEMSIZES[dtype] if dtype.startswith(PACKED) else 1 for _, dtype in kinds}
        return max((size * packed[dtype] for shape, dtype in kinds for size in shape), default=0)

    @cached_property
    def most_layers(self) -> float:
        """No model of this configuration has more states; stacks may be in each other, as in Perceiver's."""
        settings = _numbers(self.manifest.config or {})
        counts = [1 + abs(number) for key, number in settings if any(word in key for word in DEPTH)]
        return math.prod(counts) + ENDS if counts else math.inf

    @cached_property
    def files(self) -> Set[str]:
        """The names of the files."""
        return {file.name for file in self.manifest.files}

    @cached_property
    def nbytes(self) -> int:
        """Bytes of the weights, each place in a file once."""
        return count_nbytes(self.manifest.tensors.stored)


def _numbers(value: Any, key: str = "") -> Iterator[tuple[str, int]]:
    """The whole numbers of a configuration, each with the name of its setting."""
    if type(value) is int:
        yield key, value
    elif isinstance(value, dict):
        for name, inner in value.items():
            yield from _numbers(inner, name)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _numbers(inner, key)


def check_against_manifest(outcome: Any, request: OpenRequest | RunRequest, settings: Settings) -> None:
    """Believe no answer that contradicts what is known of its checkpoint.

    Raises:
        WorkerError: Naming what does.
    """
    if isinstance(request, OpenRequest) or not dataclasses.is_dataclass(outcome):
        return
    known = load_known(request.fingerprint, settings)
    if known is None:  # it has just been deleted
        return
    compared = request.parameters.get("other")
    other = load_known(compared, settings) if isinstance(compared, str) else None
    for place in (*_of_another(outcome, known), *lies(outcome, known, other)):
        raise WorkerError(
            f"The worker's answer contradicts the headers of the checkpoint ({place}), so the worker was ended. "
            "Try again: a new worker takes over."
        )


def load_known(fingerprint: str, settings: Settings) -> Known | None:
    """What is known of a checkpoint, or of a base with an adapter on it; None: it is no longer in the store."""
    known = [_load(each, settings) for each in pairs.fingerprints_in(fingerprint)]
    there = [each for each in known if each]
    if len(there) < len(known):
        return None
    return _know_both(*there) if len(there) > 1 else there[0]


@lru_cache(maxsize=REMEMBERED)
def _know_both(base: Known, adapter: Known) -> Known:
    return Known(pairs.both(base.manifest, adapter.manifest))


def _of_another(answer: Any, known: Known) -> Iterator[str]:
    if getattr(answer, "fingerprint", known.manifest.fingerprint) != known.manifest.fingerprint:
        yield f"{type(answer).__name__}.fingerprint"


def _load(fingerprint: str, settings: Settings) -> Known | None:
    stamps = []
    for kind in (UPLOADS, OPENED):
        try:
            found = (settings.home / kind / fingerprint / MANIFEST).lstat()
            stamps.append((found.st_ino, found.st_mtime_ns))
        except OSError:
            continue
    with suppress(CheckpointError):
        return _know(fingerprint, settings, tuple(stamps)) if stamps else None
    return None


@lru_cache(maxsize=REMEMBERED)
def _know(fingerprint: str, settings: Settings, _stamps: tuple[tuple[int, int], ...]) -> Known:
    return Known(load_manifest(fingerprint, settings=settings))


def lies(answer: Any, known: Known, other: Known | None = None) -> Iterator[str]:
    """Where an answer contradicts what is known, "Class.field" or "Class.field.column".

    Args:
        answer: Any result, or a part of one.
        known: Of the checkpoint that it is about.
        other: Of the second one.
    """
    name = type(answer).__name__
    if name in OBJECTS and not OBJECTS[name](answer, known):
        yield name
    for field in dataclasses.fields(answer):
        place, value = f"{name}.{field.name}", getattr(answer, field.name)
        if place in FIELDS and not FIELDS[place](value, known):
            yield place
        if hasattr(value, "to_dict"):  # a frame
            yield from _lies_of_frame(place, value, known, other)
        for part in value if isinstance(value, tuple) else (value,):
            if not dataclasses.is_dataclass(part):
                break  # the parts of a tuple are alike
            yield from lies(part, known, other)


def _lies_of_frame(place: str, frame: Any, known: Known, other: Known | None) -> Iterator[str]:
    for column in frame.columns:
        limit = COLUMNS.get(column)
        about = other if column.startswith("other_") else known
        if limit and about and place not in BEYOND and not _is_below(frame[column], limit(about)):
            yield f"{place}.{column}"


def _is_below(column: Any, limit: float) -> bool:
    """Whether every number of a column is less; -1 and what is absent stand for none."""
    if column.dtype.kind not in "iuf":
        return column.dtype.kind == "O"  # an empty column, or a label
    numbers = column.dropna()
    return not len(numbers) or bool(-1 <= numbers.min() <= numbers.max() < limit)


def _is_tensor(name: str, known: Known) -> bool:
    return name in known.manifest.by_name or name.rpartition(".")[0] in known.bases


def _is_size(size: int | None, known: Known) -> bool:
    return size is None or size in known.sizes or (bool(known.bases) and 0 <= size <= known.most_rows)


def _is_row(number: int | None, known: Known) -> bool:
    return number is None or 0 <= number < known.most_rows


def _is_matrix(found: Any, known: Known) -> bool:
    """Rows and columns are those of the tensor that is named."""
    tensor = known.tensors.by_name.get(found.tensor)
    return tensor.shape == (found.rows, found.columns) if tensor else _is_tensor(found.tensor, known)


def _is_header(found: Any, known: Known) -> bool:
    tensor = known.tensors.by_name.get(found.name)
    in_file = known.manifest.translated.names.get(found.name)
    return (
        tensor is not None
        and found.name_in_file == in_file
        and _header(tensor) == (found.dtype, found.shape, found.nbytes, found.file, found.parameters)
    )


def _header(tensor: TensorInfo) -> tuple[Any, ...]:
    return tensor.dtype, tensor.shape, tensor.nbytes, tensor.file, math.prod(tensor.shape)


def _is_place(found: Any, known: Known) -> bool:
    """A name in the file, and the file; or neither."""
    if not found.stored_as:
        return not found.file
    return found.file in known.files and _is_tensor(found.stored_as, known)


def _are_files(files: Any, known: Known) -> bool:
    told = [(each.name, each.format, each.nbytes, each.linked_from) for each in files]
    held = known.manifest.files
    hashes = {shown_name(each.name): each.sha256 for each in held if each.sha256}
    return told == [(shown_name(each.name), each.format, each.nbytes, each.linked_from) for each in held] and all(
        each.sha256 == hashes.get(each.name, each.sha256) for each in files
    )


def _is_counted(found: Any, known: Known) -> bool:
    """Parameters are counted by class and codes, but no file holds more than one in each bit."""
    return 0 <= found.unique_parameters <= min(found.listed_parameters, 8 * known.nbytes)


def _text(config: Mapping[str, Any]) -> str:
    """What can be compared: two NaN are not equal."""
    return json.dumps(config, sort_keys=True)


def _most_rows(known: Known) -> float:
    return known.most_rows


def _most_layers(known: Known) -> float:
    return known.most_layers


Holds = Callable[[Any, Known], bool]
OBJECTS: dict[str, Holds] = {
    "Embeddings": _is_matrix,
    "ListedTensor": _is_header,
    "Overview": _is_counted,
    "SharedMember": _is_place,
    "Vitals": _is_matrix,
}
FIELDS: dict[str, Holds] = {
    "Climb.layers": lambda layers, known: len(layers) <= known.most_layers,
    "Embeddings.pad_id": _is_row,
    "Embeddings.query_id": _is_row,
    "Lens.layers": lambda layers, known: len(layers) <= known.most_layers,
    "Overview.config": lambda config, known: _text(config) == _text(known.manifest.config or {}),
    "Overview.d_model": _is_size,
    "Overview.dtypes": lambda dtypes, known: dtypes == count_by_dtype(known.tensors.stored),
    "Overview.files": _are_files,
    # A class may count them otherwise than one setting does: both halves, two for each, its own default.
    "Overview.layers": lambda layers, known: _is_size(layers, known) or layers <= known.most_layers,
    "Overview.nbytes_in_memory": lambda nbytes, known: nbytes == known.nbytes,
    "Overview.nbytes_on_disk": lambda nbytes, known: nbytes == sum(each.nbytes for each in known.manifest.files),
    "Overview.stored": lambda stored, known: stored == stored.of(known.tensors, known.manifest.translated.names),
    "Overview.vocab_rows": _is_size,
    "PaddingRow.token_id": _is_row,
    "Vitals.pad_id": _is_row,
}
# Columns of every frame: the least number that is too large.
COLUMNS: dict[str, Callable[[Known], float]] = {
    "best_id": _most_rows,
    "layer": _most_layers,
    "other_token_id": _most_rows,
    "prediction_id": _most_rows,
    "token_id": _most_rows,
}
# Frames of what a tokenizer says, which may have ids beyond the rows.
BEYOND = frozenset({"Comparison.special_tokens", "Health.tokens_beyond_rows", "Tokenization.tokens"})
