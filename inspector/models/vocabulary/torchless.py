"""Import what reads tokenizers without torch, which it names and does not use.

Modules of transformers that a tokenizer needs import torch for others of their functions. That is a second of
processor time, and more than all the rest of what an overview takes.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.machinery import PathFinder
from types import ModuleType
from typing import Any

TORCH = "torch"


class _WhenAsked(ModuleType):
    """Stands in for a module until something of it is asked for."""

    def __getattr__(self, name: str) -> Any:
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
        return getattr(import_module(self.__name__), name)


@contextmanager
def torch_when_asked() -> Iterator[None]:
    """Have modules that are imported meanwhile import torch when they first use it, unless it is there, or nowhere."""
    installed = PathFinder.find_spec(TORCH)
    if TORCH in sys.modules or installed is None:
        yield
        return
    stand_in = _WhenAsked(TORCH)
    stand_in.__spec__ = installed  # whoever asks whether it is installed looks here
    sys.modules[TORCH] = stand_in
    try:
        yield
    finally:
        if sys.modules.get(TORCH) is stand_in:
            del sys.modules[TORCH]
