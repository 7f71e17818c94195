"""What a staged checkpoint holds, as read from its headers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from inspector.errors import NotInCheckpointError
from inspector.progress import Progress, no_progress
from inspector.store.hashing import verify
from inspector.store.manifests.columns import TensorInfo, Tensors
from inspector.store.manifests.findings import FileProblem
from inspector.store.names import HEADERS, weight_format
from inspector.store.readers.ranges import Bytes, PlainBytes
from inspector.text import bytes_text

OUTLINE = "arriving"  # the source of a checkpoint whose weights are still on their way
STILL_COMING = (
    "The weights of {name} are still being uploaded: this needs their numbers, and can be answered when all of them "
    "are here."
)
NOT_FETCHED = (
    "This needs the numbers of {name}, whose weights ({size}) are still on the hub: fetch them, and ask again."
)


class HeadersAloneError(Exception):
    """Numbers are asked for, and of a model on the hub the headers alone were fetched.

    No refusal, which a question might tell as its answer: whoever asked fetches the model whole, and asks again.
    """


@dataclass(frozen=True, slots=True)
class FileInfo:
    """One file of a checkpoint."""

    name: str  # basename, as the checkpoint calls it
    format: str  # "safetensors", "pytorch", "gguf", "json", "text", "sentencepiece"
    nbytes: int
    sha256: str | None  # hex digest of the whole file; None: not computed yet
    path: Path  # where its bytes are: in the staged folder, or in the folder that was opened
    quick: str | None = None  # hashing's digest of a large local file; None: the SHA-256 tells
    # Of a file that is not the store's: time of its last change in ns, inode and device
    stamp: tuple[int, int, int] | None = field(default=None, compare=False)
    link: bool = False  # whether it lies where a link of its name led

    @property
    def linked_from(self) -> str | None:
        """Where a link of its name led; None: it was none."""
        return str(self.path) if self.link else None

    @property
    def digest(self) -> str:
        """What tells this file from others."""
        return self.quick or self.sha256 or ""


@dataclass(frozen=True, slots=True)
class Translated:
    """How names and numbers in the files differ from those of the model."""

    names: Mapping[str, str] = field(default_factory=dict)  # the model's own -> in the files, where that is another
    # Parameters that the model was made without, and its class in transformers has: name -> shape
    zeros: Mapping[str, tuple[int, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class Manifest:
    """A staged checkpoint: where its files are and what their headers say.

    `folder` holds config.json and tokenizer files rebuilt from allow-listed keys: nothing else
    may be given to transformers. Weight files are read through `tensors` only.
    """

    fingerprint: str  # sha256 hex over the sorted (name, digest) of the files
    name: str  # what the person calls it
    source: str  # "demo", "upload", "folder", "hub" or "arriving"
    folder: Path
    files: tuple[FileInfo, ...]  # sorted by name
    tensors: Tensors  # in file order, shards in name order
    aliases: dict[str, str]  # name listed only in safetensors metadata -> stored name
    config: dict[str, Any] | None  # rebuilt config; None when there is no config.json
    warnings: tuple[str, ...]
    # What config.json says of how its codes are to be read, and nothing else of it: configs.FACTS
    quantization: dict[str, Any] = field(default_factory=dict)
    adapter: str = ""  # what the weights are that are an adapter's, in a sentence: the config beside them is not kept
    findings: tuple[FileProblem, ...] = ()  # each detail is one of the warnings, too
    translated: Translated = field(default_factory=Translated)

    @property
    def by_content(self) -> bool:
        """Whether every byte counts for the fingerprint: equal files have equal ones, anywhere."""
        return not any(file.quick for file in self.files)

    @property
    def is_gguf(self) -> bool:
        """Whether its weights are GGUF files, which bring their own configuration and tokenizer."""
        return bool(self.says_all)

    @property
    def says_all(self) -> str:
        """The GGUF file that settings and special tokens are from, as no file of JSON is there; "" if there are."""
        return next((file.name for file in self.files if file.format == "gguf"), "")

    @property
    def by_name(self) -> Mapping[str, TensorInfo]:
        """The tensors by name."""
        return self.tensors.by_name

    @property
    def summed(self) -> frozenset[str]:
        """The tensors whose numbers are computed where they are read: they take memory, as mapped ones do not."""
        return frozenset()

    def found(self, *problems: str) -> tuple[FileProblem, ...]:
        """What is odd about the set of weight files, of some problems."""
        return tuple(each for each in self.findings if each.problem in problems)

    @property
    def is_outline(self) -> bool:
        """Whether the weights are still on their way, or on the hub: all but their numbers is known."""
        return self.source in {OUTLINE, HEADERS}

    @property
    def is_on_hub(self) -> bool:
        """Whether all but their numbers was fetched from the hub, which still has them."""
        return self.source == HEADERS

    @property
    def on_hub_nbytes(self) -> int:
        """Bytes of the weights that are still on the hub."""
        return sum(file.nbytes for file in self.files if weight_format(file.name)) if self.is_on_hub else 0

    def bytes_of(self, name: str) -> Bytes:
        """The bytes of a file: whoever reads numbers asks here.

        Raises:
            NotInCheckpointError: If the weights are still on their way.
            CheckpointError: As `verify` does.
        """
        self.refuse_outline()
        self.verify(no_progress, file=name)
        return PlainBytes(self._by_name[name])

    @cached_property
    def paths(self) -> Mapping[str, Path]:
        """Where each file is, by its name, for those that are read whole.

        Raises:
            NotInCheckpointError: If the weights are still on their way.
            CheckpointError: As `verify` does.
        """
        self.refuse_outline()
        self.verify(no_progress)
        return {file.name: file.path for file in self.files}

    @cached_property
    def _by_name(self) -> Mapping[str, FileInfo]:
        return {file.name: file for file in self.files}

    def verify(self, progress: Progress, *, file: str | None = None) -> None:
        """Read stored weights once in this process, before their numbers are used.

        Args:
            progress: Told what is read.
            file: The only one that is; None: all.

        Raises:
            CheckpointError: If they are no longer what was uploaded.
        """
        files = self.files if file is None else (self._by_name[file],)
        stored = (each for each in files if each.stamp is None and weight_format(each.name))
        verify({each.name: (each.path, each.sha256) for each in stored if each.sha256}, progress=progress)

    def refuse_outline(self) -> None:
        """Refuse what takes numbers while the weights are still on their way.

        Raises:
            NotInCheckpointError: If they are.
            HeadersAloneError: If they are still on the hub.
        """
        if self.is_on_hub:
            raise HeadersAloneError(NOT_FETCHED.format(name=self.name, size=bytes_text(self.on_hub_nbytes)))
        if self.is_outline:
            raise NotInCheckpointError(STILL_COMING.format(name=self.name))


@dataclass(frozen=True, slots=True)
class StoredCheckpoint:
    """One entry of the list of uploads."""

    fingerprint: str
    name: str
    nbytes: int
    created: str  # ISO 8601, UTC
    pinned: bool = False  # True: never removed to make room
