"""Load the compiled inner loops, whose machine code is kept on disk between processes."""

from __future__ import annotations

import os
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType

from inspector.store.keeping.compiled import CHECKED, OWN, compiled_folder, copy_checked

SETTING = "CACHE_DIR"


@cache
def kernels(home: Path) -> ModuleType:
    """The module of compiled loops; a process that finds no compiled code compiles them."""
    keep_compiled(home)
    return import_module("inspector.analyses.vocabulary_map.compute_umap.kernels")


@cache
def keep_compiled(home: Path) -> None:
    """Have numba look for machine code where it may; call it before any function is decorated.

    A worker has it look in a folder of its own, which holds copies of checked files.

    Args:
        home: The store's folder; NUMBA_CACHE_DIR goes before it.
    """
    from numba.core import config

    if checked := os.environ.get(CHECKED):
        copy_checked(Path(checked), Path(os.environ[OWN]))
    # An attribute that numba sets at run time, so that a type checker does not see it.
    setattr(config, SETTING, str(compiled_folder(home)))
