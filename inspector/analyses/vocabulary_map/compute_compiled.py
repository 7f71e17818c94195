"""Load the compiled inner loops, whose machine code is kept on disk between processes."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType

FOLDER = "compiled"  # below home
SETTING = "CACHE_DIR"


@cache
def kernels(home: Path) -> ModuleType:
    """The module of compiled loops; the first process on a machine compiles them.

    Args:
        home: The store's folder.
    """
    keep_compiled(home)
    return import_module("inspector.analyses.vocabulary_map.compute_kernels")


def keep_compiled(home: Path) -> None:
    """Have numba keep machine code in the store; call it before any function is decorated.

    Args:
        home: The store's folder; NUMBA_CACHE_DIR goes before it.
    """
    from numba.core import config

    # Attributes that numba sets at run time, so that a type checker does not see them.
    setattr(config, SETTING, getattr(config, SETTING, "") or str(home / FOLDER))
