"""Leave out of a worker's imports what transformers asks for and nothing here uses.

With a model class, transformers imports torch's compiler, for three decorators and one mode of indexing; torch's
distributed tensors; and scipy's optimizers, for the losses of object detection. And it reads its folder of models
twice. That is 1.5 of the 3.4 seconds of processor time until a process can build its first model. Workers compile
nothing, share no model between machines, and train no detector. So the compiler comes when something else of it is
asked for; the modules that would import the others find them absent, as where torch was built without the ones and
the other is not installed; and the folder is read once. A process that has imported transformers before goes on as
it is.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from threading import RLock
from types import ModuleType
from typing import Any

COMPILER = "torch._dynamo"
MARKS = ("disable", "allow_in_graph", "assume_constant_result", "graph_break")  # notes for the compiler, and no more
ALONE = {f"{COMPILER}._trace_wrapped_higher_order_op"}  # needs nothing of the package that it is in
# The question of transformers that the modules of a package find answered with no.
ABSENT = {"transformers.distributed.": "is_torch_distributed_available", "transformers.loss.": "is_scipy_available"}
READER = "transformers.utils.import_utils"


def defer_imports() -> None:
    """Have what this process imports from now on leave these out."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())


class _Deferred(ModuleType):
    """A package whose body runs when something of it is asked for that is not there."""

    _body: Callable[[ModuleType], None] | None = None
    _lock = RLock()

    def __getattr__(self, name: str) -> Any:
        if self._body is None or (name.startswith("__") and name != "__all__"):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        _run(self)
        return getattr(self, name)


def _run(package: ModuleType) -> None:
    """Run the body of a package that was put off, once."""
    if isinstance(package, _Deferred):
        with package._lock:
            body, package._body = package._body, None
            if body is not None:
                body(package)


class _Changed(Loader):
    """Loads a module in another way.

    Args:
        loader: Its own.
        execute: Called with what runs the module's body, and the module.
        create: Makes the module, of its name; None: as its loader does.
    """

    def __init__(
        self,
        loader: Loader,
        execute: Callable[[Callable[[ModuleType], None], ModuleType], None],
        create: Callable[[str], ModuleType] | None = None,
    ) -> None:
        self._loader, self._execute, self._create = loader, execute, create

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._create(spec.name) if self._create else self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        self._execute(self._loader.exec_module, module)


class _Finder(MetaPathFinder):
    """Finds the modules that are loaded in another way."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        if name.startswith(f"{COMPILER}.") and name not in ALONE:
            _run(sys.modules[COMPILER])
        execute = {COMPILER: _put_off, READER: _read_once}.get(name)
        if any(name.startswith(package) for package in ABSENT):
            execute = _run_without
        spec = PathFinder.find_spec(name, path, target) if execute else None
        if execute and spec and spec.loader:
            spec.loader = _Changed(spec.loader, execute, _Deferred if execute is _put_off else None)
        return spec


def _put_off(body: Callable[[ModuleType], None], module: Any) -> None:
    for name in MARKS:
        setattr(module, name, _as_it_is)
    module._body = body


def _as_it_is(function: Any = None, *_: Any, **__: Any) -> Any:
    """A decorator that changes nothing, with arguments or without."""
    return _as_it_is if function is None else function


def _run_without(body: Callable[[ModuleType], None], module: ModuleType) -> None:
    question = next(ABSENT[package] for package in ABSENT if module.__name__.startswith(package))
    with _answered_with_no(question):
        body(module)


@contextmanager
def _answered_with_no(question: str) -> Iterator[None]:
    asked = getattr(sys.modules[READER], question)
    modules = [sys.modules[name] for name in (READER, "transformers.utils")]  # where it is asked
    for module in modules:
        setattr(module, question, lambda: False)
    try:
        yield
    finally:
        for module in modules:
            setattr(module, question, asked)


def _read_once(body: Callable[[ModuleType], None], module: Any) -> None:
    body(module)
    read, found = module.create_import_structure_from_path, {}

    def read_once(path: str | os.PathLike[str]) -> Any:
        folder = os.path.dirname(path) if os.path.isfile(path) else os.fspath(path)  # noqa: PTH113, PTH120 - quick
        if folder not in found:
            found[folder] = read(folder)
        return deepcopy(found[folder])

    module.create_import_structure_from_path = read_once
