"""Let transformers place the tensors of a file in little time: it expects a thousand, and gets a hundred thousand."""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import lru_cache, partial
from types import SimpleNamespace
from typing import Any

from transformers import PreTrainedModel, core_model_loading, initialization
from transformers.core_model_loading import WeightConverter, dot_natural_key

from inspector.store.manifests.documents import collector_paused

INIT_CONTEXT: Any = vars(PreTrainedModel)["get_init_context"]
SYNCHRONOUS = "HF_DEACTIVATE_ASYNC_LOAD"  # transformers' own switch
PARTS = 10_000  # of names that are remembered: "layers", "0", "weight"


class _Late:
    """A pattern that is compiled when it is first used: transformers makes one of each name, and uses few."""

    def __init__(self, pattern: str, flags: int = 0) -> None:
        self._made = partial(re.compile, pattern, flags)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._made(), name)


LATE = SimpleNamespace(**{**vars(re), "compile": _Late})


@contextmanager
def light_loading(*, meta: bool, initialize: Callable[[PreTrainedModel], None] | None = None) -> Iterator[None]:
    """Load with cheap copies of conversions, patterns, sorting and making; the result is the same.

    Args:
        meta: The tensors have no numbers: then nothing is read, a thread for each only costs time, and
            what the file lacks gets no random numbers.
        initialize: What is done to the loaded model instead of that.
    """
    with ExitStack() as changes:
        changes.enter_context(_changed(WeightConverter, "__deepcopy__", _light_copy))
        changes.enter_context(_changed(core_model_loading, "dot_natural_key", natural_key))
        changes.enter_context(_changed(PreTrainedModel, "get_init_context", classmethod(_light_context)))
        if meta:
            changes.enter_context(_switched_on(SYNCHRONOUS))
            changes.enter_context(_changed(core_model_loading, "re", LATE))
            finish = initialize or (lambda _: None)
            changes.enter_context(
                _changed(PreTrainedModel, "_initialize_missing_keys", lambda model, *_: finish(model))
            )
            changes.enter_context(collector_paused())
        yield


def natural_key(name: str) -> tuple[Any, ...]:
    """What transformers sorts names by: their parts, numbers as numbers."""
    return tuple(map(_natural_part, name.split(".")))


@lru_cache(maxsize=PARTS)
def _natural_part(part: str) -> tuple[Any, ...]:
    return dot_natural_key(part)[0]


def _light_copy(conversion: WeightConverter, memo: dict[int, Any]) -> WeightConverter:
    """Copy a conversion in no time.

    transformers makes a deep copy of one for each tensor that goes into it, 45,000 for DeepSeek-V3, and
    drops all but one a parameter. Of what a conversion holds, only two dictionaries change.
    """
    copied = object.__new__(type(conversion))
    for each in type(conversion).__mro__:
        for name in getattr(each, "__slots__", ()):
            object.__setattr__(copied, name, getattr(conversion, name))
    copied.collected_tensors = defaultdict(list)
    copied.layer_targets = defaultdict(set)
    return copied


def _light_context(model_class: type[PreTrainedModel], *asked: Any) -> list[Any]:
    """What a class is made under: on the meta device, where random numbers only cost time."""
    return [*INIT_CONTEXT.__func__(model_class, *asked), initialization.no_init_weights()]


@contextmanager
def _changed(owner: Any, name: str, value: Any) -> Iterator[None]:
    """Give an attribute another value for a while."""
    before = vars(owner).get(name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        if before is None:
            delattr(owner, name)
        else:
            setattr(owner, name, before)


@contextmanager
def _switched_on(variable: str) -> Iterator[None]:
    before = os.environ.get(variable)
    os.environ[variable] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[variable]
        else:
            os.environ[variable] = before
