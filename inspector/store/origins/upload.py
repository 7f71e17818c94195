"""Uploads that the store holds."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from inspector.errors import CheckpointError
from inspector.settings import Settings
from inspector.store.files import below
from inspector.store.manifests.documents import is_fingerprint, is_plain_folder
from inspector.store.manifests.entries import UPLOADS
from inspector.store.origins.origin import Origin, Reach
from inspector.store.origins.sources import Source

TYPED_DIGITS = 16  # of a fingerprint


@dataclass(frozen=True, slots=True)
class Upload(Origin):
    """An upload in the store, by its fingerprint or the first digits of it."""

    word: ClassVar[str] = "upload"
    values: ClassVar[re.Pattern[str]] = re.compile(r"[0-9a-f]{12,64}")
    fixed: ClassVar[bool] = True
    public: ClassVar[bool] = True

    @property
    def typed(self) -> str:
        """The first digits are enough."""
        return f"{self.word}:{self.value[:TYPED_DIGITS]}"

    @property
    def digits(self) -> str:
        """As it is named."""
        return self.value

    def find(self, reach: Reach) -> Source:
        """Nothing: its files are staged."""
        raise CheckpointError("An upload of the store is opened as it was stored: pick it from the list.")

    def reads(self, reach: Reach) -> Iterator[Path]:
        """Nothing: it is in the store."""
        return iter(())

    def held(self, settings: Settings) -> Iterable[Path]:
        """Its entry; none where it is gone, several where its digits are not enough."""
        for entry in below((settings.uploads or settings.readable) / UPLOADS):
            if entry.name.startswith(self.value) and is_fingerprint(entry.name) and is_plain_folder(entry):
                yield entry

    def becomes(self, fingerprint: str, fetched: Path | None = None) -> str:
        """The same with every digit."""
        return f"{self.word}:{fingerprint}"
