"""What every kind of checkpoint's origin says of itself: where its files are, what opening them takes, what it becomes.

Callers ask an origin and never its kind. One kind is one class in one file, which `ORIGINS` in
`inspector/store/reference.py` lists.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from inspector.settings import Settings
from inspector.store.origins.sources import Source


@dataclass(frozen=True, slots=True)
class Reach:
    """Where an origin may look."""

    settings: Settings
    restrict_paths: bool  # True where strangers ask: paths must lie below the settings' roots
    fetched: Path | None = None  # the folder that holds its files, once a process has brought them


@dataclass(frozen=True, slots=True)
class Origin(ABC):
    """Where a checkpoint comes from."""

    word: ClassVar[str]  # before the colon of a reference
    values: ClassVar[re.Pattern[str]]  # what may come after it
    fixed: ClassVar[bool] = False  # True: names the same bytes for ever
    downloads: ClassVar[bool] = False  # True: a process with the network brings its files, and reads none
    arrives: ClassVar[bool] = False  # True: its files were sent, and go when they have been opened
    outline: ClassVar[bool] = False  # True: its numbers are still on their way
    anywhere: ClassVar[bool] = False  # True: another machine opens it by itself
    public: ClassVar[bool] = False  # True: means the same to others

    value: str

    def __str__(self) -> str:
        return f"{self.word}:{self.value}"

    @property
    def typed(self) -> str:
        """What the command line takes for it."""
        return str(self)

    @property
    def path(self) -> Path | None:
        """The folder or file of this machine that a person named; None: it is named by something else."""
        return None

    @property
    def parts(self) -> tuple[str, ...]:
        """The references of what it is put together from; of one that is opened as it is, its own."""
        return (str(self),)

    @property
    def digits(self) -> str:
        """The first digits of the stored upload that it names; "": it names files that are to be staged."""
        return ""

    @abstractmethod
    def find(self, reach: Reach) -> Source:
        """Find its files, by their names alone.

        Raises:
            CheckpointError: If they are not there, may not be opened, or cannot be a checkpoint.
        """

    def reads(self, reach: Reach) -> Iterator[Path]:
        """Find what is read outside the store to open it: files, and folders whose names are listed.

        Raises:
            CheckpointError: As `find` does.
        """
        yield from self.find(reach).paths

    def inside(self, reach: Reach) -> tuple[str, ...]:
        """References of the checkpoints in a folder that holds several and none itself, the one that is meant first."""
        return ()

    def held(self, settings: Settings) -> Iterable[Path]:
        """The folders of the store that hold it."""
        return ()

    def lies(self, settings: Settings) -> Path | None:
        """The folder of its files, if it is known before anybody looks: `Reach.fetched`."""
        return None

    def costs(self, settings: Settings) -> int:
        """Bytes that opening may have to unpack, fetch or hash; 0: headers and small files alone."""
        return 0

    def becomes(self, fingerprint: str, fetched: Path | None = None) -> str:
        """The reference that opens it again; `fetched` as in `Reach`."""
        return str(self)


def size_of(path: Path) -> int:
    """Bytes of a file; 0 where it cannot be looked at."""
    try:
        return path.lstat().st_size
    except (OSError, ValueError):
        return 0
