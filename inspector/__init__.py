"""Open a transformer checkpoint and see what is really inside it.

For notebooks and scripts, `inspector.open("demo-bert")` and `inspector.wrap(model, tokenizer)` return
a checkpoint with a method for each analysis, such as `.lens("the capital of [MASK].", k=5)`.
"""

from __future__ import annotations  # so that a Python that is too old gets as far as the sentence that says so

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # editors and type checkers follow these; __getattr__ imports them
    from inspector.analyses.sharing.compute import find_sharing as find_sharing
    from inspector.api import Answer as Answer
    from inspector.api import Checkpoint as Checkpoint
    from inspector.api import open as open  # noqa: A004
    from inspector.api import wrap as wrap
    from inspector.errors import InspectorError as InspectorError

__version__ = "0.1.0"
__all__ = ["open", "wrap"]

# Imported when first asked for.
LIBRARY = {
    "open": "inspector.api",
    "wrap": "inspector.api",
    "Checkpoint": "inspector.api",
    "Answer": "inspector.api",
    "InspectorError": "inspector.errors",
    "find_sharing": "inspector.analyses.sharing.compute",
}


def __getattr__(name: str) -> Any:
    if name in LIBRARY:
        return getattr(import_module(LIBRARY[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *LIBRARY])
