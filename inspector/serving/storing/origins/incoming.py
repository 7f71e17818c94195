"""Uploads whose bytes have arrived, and that are not staged yet."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from inspector.errors import CheckpointError
from inspector.serving.storing.marks import read_told
from inspector.serving.storing.registry import incoming_folder, read_names
from inspector.settings import Settings
from inspector.store.files import FRESH, below
from inspector.store.names import INNER, is_archive, weight_format
from inspector.store.origins.origin import Origin, Reach, size_of
from inspector.store.origins.sources import Source, choose_members
from inspector.store.origins.upload import Upload
from inspector.text import quoted


@dataclass(frozen=True, slots=True)
class Incoming(Origin):
    """An upload that has arrived, by its id."""

    word: ClassVar[str] = "incoming"
    values: ClassVar[re.Pattern[str]] = FRESH
    fixed: ClassVar[bool] = True
    arrives: ClassVar[bool] = True

    def find(self, reach: Reach) -> Source:
        """Its files by the names that the browser told; or the archive that holds them."""
        folder = incoming_folder(self.value, settings=reach.settings)
        names = read_names(folder)
        if not names:
            raise CheckpointError("The upload has no files, or is no longer there: upload it again.")
        archives = [name for name in names if is_archive(name)]
        if archives and len(names) > 1:
            raise CheckpointError(
                f"{quoted(archives[0])} was uploaded together with other files: upload either one "
                "archive or the checkpoint's separate files."
            )
        if archives:
            return Source("upload", archives[0], {}, (), owned=True, packed=names[archives[0]])
        nbytes = sum(path.stat().st_size for path in names.values())
        if nbytes > reach.settings.upload_nbytes:
            raise CheckpointError(
                f"The upload has {nbytes:,} bytes, more than the limit of "
                f"{reach.settings.upload_nbytes:,}: open it as a folder or from the hub instead."
            )
        chosen, ignored = choose_members(names)
        files = {name: names[member] for name, member in chosen.items()}
        told = read_told(folder)  # one that came from the shared store keeps its name
        name = told.name if told else _name(list(chosen.values()))
        return Source("upload", name, files, ignored, owned=True, told=told.warnings if told else ())

    def reads(self, reach: Reach) -> Iterator[Path]:
        """Nothing: they are in the store."""
        return iter(())

    def held(self, settings: Settings) -> Iterable[Path]:
        """The folder of its files."""
        return (incoming_folder(self.value, settings=settings),)

    def costs(self, settings: Settings) -> int:
        """All its bytes."""
        return sum(map(size_of, below(incoming_folder(self.value, settings=settings))))

    def becomes(self, fingerprint: str, fetched: Path | None = None) -> str:
        """An upload of the store."""
        return str(Upload(fingerprint))


def _name(members: list[str]) -> str:
    """The folder that was uploaded, or the weight file."""
    weights = next((member for member in members if weight_format(member)), "upload")
    folder, slash, file = weights.rpartition("/")
    above, _, name = folder.rpartition("/")
    if above and INNER.fullmatch(name):
        name = above.rpartition("/")[2]
    return (name if slash else file)[:80]
