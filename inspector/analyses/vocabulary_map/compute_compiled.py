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
        home: The store's folder; NUMBA_CACHE_DIR goes before it. numba looks for its setting when
            a function is decorated.
    """
    from numba.core import config

    # Attributes that numba sets at run time, so that a type checker does not see them.
    setattr(config, SETTING, getattr(config, SETTING, "") or str(home / FOLDER))
    return import_module("inspector.analyses.vocabulary_map.compute_kernels")
