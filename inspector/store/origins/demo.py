"""The demos that come with the program."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar

from inspector.demo import BUNDLED, DEMOS
from inspector.errors import CheckpointError
from inspector.store.origins.origin import Origin, Reach
from inspector.store.origins.sources import Source, folder_source
from inspector.text import quoted


@dataclass(frozen=True, slots=True)
class Demo(Origin):
    """A demo, by its name alone."""

    word: ClassVar[str] = "demo"
    values: ClassVar[re.Pattern[str]] = re.compile(r"demo-[a-z0-9-]+")
    fixed: ClassVar[bool] = True
    anywhere: ClassVar[bool] = True
    public: ClassVar[bool] = True

    def __str__(self) -> str:
        return self.value

    def find(self, reach: Reach) -> Source:
        """Its files; they are ours, and may be links of whoever installed them."""
        demo = BUNDLED.get(self.value)
        if demo is None:
            raise CheckpointError(f"There is no demo {quoted(self.value)}: pick one of {', '.join(DEMOS)}.")
        return folder_source(demo.folder, kind="demo", name=self.value, links=True)
