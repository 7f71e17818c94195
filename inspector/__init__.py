"""Open a transformer checkpoint and see what is really inside it.

For notebooks: `inspector.find_sharing(module)` audits a live `torch.nn.Module`.
"""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

LIBRARY = {
    "find_sharing": "inspector.analyses.sharing.compute"
}  # imported when first asked for: torch


def __getattr__(name: str) -> Any:
    if name in LIBRARY:
        return getattr(import_module(LIBRARY[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *LIBRARY])
