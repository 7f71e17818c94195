"""How long a text a class reads: it is run without its weights, and what fails is found as it fails."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map_only
from transformers import PreTrainedConfig, PreTrainedModel

BEYOND = 1 << 17  # tokens, more than any text has that this tool reads
TRIED = (8, 1)  # tokens of a pass that shows whether a class runs at all: Funnel pools 8 down to 2
LARGEST_KNOWN = 1 << 20  # numbers of a tensor that are computed; of more, the shape alone is
MOST_OPERATIONS = 4_000  # of a pass, enough for a block of layers: recurrent ones take some for each position
AFTER_ONE, BEFORE_ANY = (
    1,
    0,
)  # which block of layers ends a pass: the second, or where none runs without weights the first
CPU, META = torch.device("cpu"), torch.device("meta")
LOOK_UPS: Mapping[str, tuple[int, int]] = {  # operation -> places of its table and its index
    "aten::embedding": (0, 1),
    "aten::index_select": (0, 2),
    "aten::gather": (0, 2),
}


DECIDED = {torch.Tag.data_dependent_output, torch.Tag.dynamic_output_shape}  # of operations, by the numbers they read


class _ReachedError(Exception):
    """A pass has come as far as it should."""


class _UndecidedError(Exception):
    """What comes next is decided by numbers that are not known."""


class Weightless(TorchDispatchMode):
    """Runs models whose weights are not known: of what follows from them there is a shape, all else is computed.

    So a model of any size computes its positions, and is refused a row that a table does not have. What numbers decide
    that are too many to be computed is decided as in the first pass, of a short text.
    """

    def __init__(self) -> None:
        super().__init__()
        self._left = self._decided = 0
        self._decisions: list[Any] = []

    def begin(self) -> None:
        """Begin a pass."""
        self._left, self._decided = MOST_OPERATIONS, 0

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """No compiler is imported just to be switched off here."""
        return False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run one operation.

        Raises:
            IndexError: If it looks up a row that a table lacks, or the last one for several positions.
            _ReachedError: If the pass has taken as many as it may.
            _UndecidedError: If weights decide what comes out.
        """
        self._left -= 1
        if not self._left:
            raise _ReachedError
        given = (args, kwargs or {})
        operation = func.name().partition(".")[0]
        _check_rows(operation, args)
        known = "empty" not in operation and not any(map(_is_unknown, tree_leaves(given)))
        if operation == "aten::_local_scalar_dense":
            return self._decide(partial(func, *args) if known else None)
        try:
            shapes = _call(func, tree_map_only(torch.Tensor, _shape, given), META)
        except Exception as error:
            if not known and DECIDED.intersection(func.tags):
                raise _UndecidedError from error
            if not known:
                raise
            shapes = None
        if not known or any(map(_is_large, tree_leaves(shapes))):
            return shapes
        return _call(func, given, CPU)

    def _decide(self, read: Callable[[], Any] | None) -> Any:
        self._decided += 1
        decided = self._decisions[self._decided - 1 : self._decided]
        if read is None:
            if not decided:
                raise _UndecidedError
            return decided[0]
        self._decisions += [read()][len(decided) :]
        return read()


def _call(func: Any, given: tuple[Any, Any], device: torch.device) -> Any:
    """Run an operation, on this device where it names one."""
    args, kwargs = tree_map_only(torch.device, lambda _: device, given)
    return func(*args, **kwargs)


def _is_unknown(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.is_meta


def _is_large(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.numel() > LARGEST_KNOWN


def _shape(tensor: torch.Tensor) -> torch.Tensor:
    return tensor if tensor.is_meta else tensor.to(META)


def _check_rows(operation: str, args: Sequence[Any]) -> None:
    for table, axis, index in _looked_up(operation, args):
        if isinstance(index, torch.Tensor) and not index.is_meta and index.numel() and index.dtype != torch.bool:
            rows, lowest, highest = table.shape[axis], int(index.min()), int(index.max())
            if not -rows <= lowest <= highest < rows:
                raise IndexError(f"rows {lowest} to {highest} of {rows}")
            if _is_clamped(index, highest):
                raise IndexError(f"row {highest} more than once")


def _is_clamped(index: torch.Tensor, highest: int) -> bool:
    """Whether rows count up by one, as positions do, and the last one serves for all that follow."""
    line = index.flatten()
    counts = len(line) == index.shape[-1] and len(line) > TRIED[0] and bool((line[: TRIED[0]].diff() == 1).all())
    return counts and int((line == highest).sum()) > 1


def _looked_up(operation: str, args: Sequence[Any]) -> Iterator[tuple[torch.Tensor, int, Any]]:
    """Each table that an operation reads by row, the axis, and the rows."""
    if operation == "aten::index":
        yield from ((args[0], axis, index) for axis, index in enumerate(args[1]))
    elif operation in LOOK_UPS:
        table, index = LOOK_UPS[operation]
        yield args[table], 0 if operation == "aten::embedding" else args[1], args[index]


def longest_run(build: Callable[[], PreTrainedModel], *, decoder: bool = False) -> int | None:
    """Find how many tokens a class reads: with one more it fails.

    Args:
        build: Builds the class on the meta device.
        decoder: Whether the decoder of two reads them, not the encoder.

    Returns:
        The number of tokens; None where nothing bounds it.

    Raises:
        LookupError: If the class does not run without its weights.
    """
    with Weightless() as mode, torch.no_grad():
        model = build()

        def fate(length: int, block: int) -> bool | None:
            mode.begin()
            return _runs(model, length, block=block, decoder=decoder)

        ways = ((block, length) for block in (AFTER_ONE, BEFORE_ANY) for length in TRIED)
        block, runs = next(((block, length) for block, length in ways if fate(length, block)), (None, 0))
        if block is None:
            raise LookupError(f"{type(model).__name__} does not run without its weights")
        if fate(fails := BEYOND, block) is not False:
            return None
        for near in _stated(model.config):
            if runs < near < fails:
                runs, fails = (near, fails) if fate(near, block) is not False else (runs, near)
        while fails - runs > 1:
            middle = (runs + fails) // 2
            runs, fails = (middle, fails) if fate(middle, block) is not False else (runs, middle)
        return runs


def _runs(model: PreTrainedModel, length: int, *, block: int, decoder: bool) -> bool | None:
    """Whether a text of so many tokens gets to a block of layers, or through the model where it has none.

    None where it gets to what is decided by the weights.
    """
    few, many = _ids(model, TRIED[0]), _ids(model, length)
    inputs = {"input_ids": few if decoder else many}
    if "attention_mask" in inspect.signature(model.forward).parameters:
        inputs["attention_mask"] = torch.ones_like(inputs["input_ids"])
    if model.config.is_encoder_decoder:
        inputs["decoder_input_ids"] = many if decoder else few
    try:
        with _ending_at(model.get_decoder() if decoder else model, block):
            model(**inputs)
    except _ReachedError:
        return True
    except _UndecidedError:
        return None
    except Exception:  # whatever a class raises at a text that is too long
        return False
    return True


def _stated(config: PreTrainedConfig) -> Iterator[int]:
    """Lengths that are tried first: numbers of positions, and one more."""
    for name, value in config.to_dict().items():
        if "position" in name and type(value) is int:
            yield from (value, value + 1)


def _ids(model: PreTrainedModel, length: int) -> torch.Tensor:
    """Ids of an ordinary token: some classes count padding as no position."""
    named = (value for name, value in model.config.to_dict().items() if name.endswith("token_id"))
    special = set(tree_leaves(list(named)))  # there may be several ends of a text
    ordinary = next(index for index in range(len(special) + 1) if index not in special)
    shape = (1, 1, length) if type(model).__name__.endswith("ForMultipleChoice") else (1, length)
    return torch.full(shape, ordinary)


@contextmanager
def _ending_at(part: nn.Module, block: int) -> Iterator[None]:
    """End a pass where a block of layers of that number begins."""

    def end(*_: object) -> None:
        raise _ReachedError

    lists = (module for module in part.modules() if isinstance(module, nn.ModuleList) and len(module) > block)
    handles = [each[block].register_forward_pre_hook(end) for each in lists if any(each[block].children())]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()
