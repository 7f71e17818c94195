"""Uploads whose weights are still on their way: what their headers say."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

from inspector.errors import CheckpointError
from inspector.serving.storing.registry import incoming_folder
from inspector.settings import Settings
from inspector.store.files import FRESH
from inspector.store.manifests.manifest import OUTLINE
from inspector.store.names import weight_format
from inspector.store.origins.origin import Origin, Reach
from inspector.store.origins.sources import Source, folder_source

COMING = (
    "The weights are still being uploaded. What needs their names, shapes and dtypes alone is answered already; the "
    "rest, when all of them are here."
)
NOT_COMING = (
    "This is a link to an upload that was still arriving: pick the checkpoint from the list, or upload it again."
)


@dataclass(frozen=True, slots=True)
class Outline(Origin):
    """An upload that is arriving, by the id of what there is of it."""

    word: ClassVar[str] = OUTLINE
    values: ClassVar[re.Pattern[str]] = FRESH
    outline: ClassVar[bool] = True

    def find(self, reach: Reach) -> Source:
        """Small files, and weights that are holes behind their headers."""
        folder = reach.fetched or incoming_folder(self.value, settings=reach.settings)
        if not folder.is_dir():
            raise CheckpointError(NOT_COMING)
        source = folder_source(folder, kind=OUTLINE, name="upload")
        weights = next((name for name in source.files if weight_format(name)), source.name)
        return replace(source, name=weights[:80], told=(COMING,), outline=True)

    def lies(self, settings: Settings) -> Path:
        """Where the server writes it: a worker reads it there."""
        return incoming_folder(self.value, settings=settings)
