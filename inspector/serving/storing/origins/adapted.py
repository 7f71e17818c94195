"""A base with an adapter on it, each of which is opened by its own reference."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar

from inspector.errors import CheckpointError
from inspector.store import pairs
from inspector.store.origins.origin import Origin, Reach
from inspector.store.origins.sources import Source


@dataclass(frozen=True, slots=True)
class Adapted(Origin):
    """Both, by their references."""

    word: ClassVar[str] = pairs.WORD
    values: ClassVar[re.Pattern[str]] = re.compile(r"(?!adapted:)[^,]+,(?!adapted:)[^,]+")  # a part is no such pair

    @property
    def parts(self) -> tuple[str, ...]:
        """The references of base and adapter."""
        return pairs.references_in(self.value)

    def find(self, reach: Reach) -> Source:
        """Nothing: its files are those of its parts."""
        raise CheckpointError("A base with an adapter on it is opened by its parts: open the base.")
