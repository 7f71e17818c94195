"""Follow a streamed pass: its hidden states as its blocks are done, long before it ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

if TYPE_CHECKING:
    from inspector.models.running import Loaded

# Called with the hidden states so far, the embeddings first, and how many there will be.
Taker = Callable[[Sequence[torch.Tensor], int], None]


@contextmanager
def following(loaded: Loaded, take: Taker) -> Iterator[None]:
    """Hand over the hidden states of a streamed pass after each of its blocks but the last.

    A class of transformers that records hidden states makes them of what its first block receives and of
    what each block returns, and puts the model's own last state in the place of the last one. So all but
    the last are final when a block is done. Models that collect them in another way are not followed.
    """
    blocks, states = _recorded(loaded), []

    def enter(_: nn.Module, received: tuple[torch.Tensor, ...]) -> None:
        if not states:
            states.append(received[0])

    def leave(_: nn.Module, __: Any, returned: Any) -> None:
        states.append(returned[0] if isinstance(returned, tuple) else returned)
        if len(states) <= len(blocks):
            take(states, len(blocks) + 1)

    handles = [blocks[0].register_forward_pre_hook(enter)] if blocks else []
    handles += [block.register_forward_hook(leave) for block in blocks]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _recorded(loaded: Loaded) -> list[nn.Module]:
    """The blocks of a streamed model that make its hidden states; none where that is not plain."""
    if loaded.stream is None:
        return []
    base = loaded.model.base_model
    kind = (getattr(base, "_can_record_outputs", None) or {}).get("hidden_states")
    if not isinstance(kind, type):
        return []
    blocks = [loaded.model.get_submodule(name) for name in loaded.stream.blocks]
    every = [module for module in base.modules() if isinstance(module, kind)]
    return blocks if blocks == every else []
