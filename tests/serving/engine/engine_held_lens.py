"""A lens that never ends: what a worker runs for the test that cancels it."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Any

from inspector.analyses.lens.result import Lens, LensRows
from inspector.catalog import CATALOG
from inspector.progress import Progress, Show
from inspector.serving.engine.wire import WorkerFunctions

AT = "Block 4 of 4"


def held_lens(checkpoint: Any, *, progress: Progress, show: Show[LensRows], **parameters: Any) -> Lens:
    """The lens, which stays at a block for ever and listens to nobody."""
    from inspector.analyses.lens.compute import lens

    def hold(fraction: float | None, text: str) -> None:
        progress(fraction, text)
        if text.startswith(AT):
            threading.Event().wait()

    return lens(checkpoint, progress=hold, show=show, **parameters)


# A worker reads the packages that hold what it imports, and no others.
FUNCTIONS = WorkerFunctions(light=(*WorkerFunctions().light, __name__))
HELD = replace(CATALOG["lens"], verb="held", function=f"{__name__}:held_lens")
