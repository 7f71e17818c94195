"""Read states of several vectors a position as the model's own head does: as one vector, made by its own last steps.

Gemma 3n and models with hyper-connections keep several streams between their blocks. What comes after the last
block makes one vector of them, and the final norm reads it. Here the same code does that to the states of every
layer: the model runs with blocks in the place of its own that compute nothing and return those states.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

VECTORS = 3  # dimensions of states that are one vector a position: batch, positions, width


@dataclass(slots=True)
class Tail:
    """What a model does after its blocks, noted while it ran."""

    owner: nn.ModuleList | None = None  # of the blocks whose states are recorded
    returned: Any = None  # by the last of them
    reader: tuple[nn.Module, torch.Tensor] | None = None  # the last module that ran later, and what it returned

    def read(self, states: Sequence[torch.Tensor], run: Callable[[], Any]) -> tuple[torch.Tensor, ...] | None:
        """Make one vector a position of each layer's state.

        Args:
            states: The hidden states, the last of which the model has read itself.
            run: Runs the base model once more.

        Returns:
            As many, each (batch, positions, width); None where the model's last steps are not found.
        """
        if self.owner is None or self.reader is None:
            return None
        norm, final = self.reader
        if final.dim() != VECTORS or (states[-1].dim() == VECTORS and not torch.equal(final, states[-1])):
            return None
        found = []
        for state in states[:-1]:
            with _standing_in(self.owner, state, self.returned), _received(norm) as given:
                run()
            found.append(given[0])
        return (*found, final)


class _BlockStandIn(nn.Module):
    """Returns a state in a block's place, and has the block's settings."""

    def __init__(self, block: nn.Module, returned: Any) -> None:
        super().__init__()
        vars(self).update(block=block, returned=returned)  # no submodule of it: it is neither run nor read

    def __getattr__(self, name: str) -> Any:
        return getattr(vars(self)["block"], name)

    def forward(self, *_: Any, **__: Any) -> Any:
        return vars(self)["returned"]


@contextmanager
def noting_tail(base: nn.Module) -> Iterator[Tail]:
    """Note what a model does after its last block while it runs."""
    tail = Tail()
    kind = (getattr(base, "_can_record_outputs", None) or {}).get("hidden_states")
    blocks = [module for module in base.modules() if isinstance(kind, type) and isinstance(module, kind)]
    tail.owner = next((each for each in base.modules() if isinstance(each, nn.ModuleList) and [*each] == blocks), None)
    if not blocks or tail.owner is None:
        yield tail
        return
    inside = {id(module) for block in blocks for module in block.modules()}

    def leave(_: nn.Module, __: Any, returned: Any) -> None:
        tail.returned = returned
        tail.reader = None

    def note(module: nn.Module, _: Any, returned: Any) -> None:
        if isinstance(returned, torch.Tensor):
            tail.reader = (module, returned)

    handles = [blocks[-1].register_forward_hook(leave)]
    handles += [module.register_forward_hook(note) for module in base.modules() if id(module) not in inside]
    try:
        yield tail
    finally:
        for handle in handles:
            handle.remove()


@contextmanager
def _standing_in(owner: nn.ModuleList, state: torch.Tensor, returned: Any) -> Iterator[None]:
    """Put blocks in the place of a model's own that return a state."""
    blocks = [*owner]
    answer = (state, *returned[1:]) if isinstance(returned, tuple) else state
    try:
        for number, block in enumerate(blocks):
            owner[number] = _BlockStandIn(block, answer)
        yield
    finally:
        for number, block in enumerate(blocks):
            owner[number] = block


@contextmanager
def _received(module: nn.Module) -> Iterator[list[torch.Tensor]]:
    """What a module is given meanwhile."""
    given: list[torch.Tensor] = []
    handle = module.register_forward_pre_hook(lambda _, inputs: given.append(inputs[0].detach()))
    try:
        yield given
    finally:
        handle.remove()
