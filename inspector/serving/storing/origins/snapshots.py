"""Archives of several snapshots that have arrived."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from inspector.errors import CheckpointError
from inspector.serving.storing.origins.incoming import Incoming
from inspector.serving.storing.registry import incoming_folder, read_names
from inspector.store.names import is_archive
from inspector.store.origins.origin import Reach
from inspector.store.origins.sources import Source


@dataclass(frozen=True, slots=True)
class SnapshotArchive(Incoming):
    """An archive of snapshots, each of which becomes an upload, by its id."""

    word: ClassVar[str] = "snapshots"

    def find(self, reach: Reach) -> Source:
        """The archive."""
        names = list(read_names(incoming_folder(self.value, settings=reach.settings)))
        if len(names) != 1 or not is_archive(names[0]):
            raise CheckpointError(
                "Upload snapshots as one archive (.zip, .tar, .tar.gz) with a folder for each: pack "
                "the run's folder, and upload it again."
            )
        return replace(Incoming.find(self, reach), several=True)
