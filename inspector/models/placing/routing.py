"""Read the experts of a mixture that tokens are routed to, and no others, while a streamed model runs.

A loader merges all experts of a block into one tensor. Here its own conversion merges those that are
used, as many at a time as memory may hold; the module then runs on them as on a smaller mixture.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from transformers import PreTrainedModel

from inspector.models.naming import TensorRecipe

EXPERT = re.compile(r"\bexperts\.(\d+)\.")
AT_ONCE = 1_000_000_000  # bytes of experts that are read at once
# Every expert's rows are computed by themselves and joined afterwards; other ways join them as they go.
APART = "grouped_mm"


@dataclass(frozen=True, slots=True)
class Experts:
    """The experts of one module."""

    path: str  # of the module
    count: int
    recipes: tuple[TensorRecipe, ...]
    names: frozenset[str]  # of the module's tensors, all of them by expert
    nbytes: int  # of one expert
    most_nbytes: int  # that are read at once; one expert at least

    @property
    def at_once(self) -> int:
        """How many are read together."""
        return min(self.count, max(1, self.most_nbytes // self.nbytes))

    def of(self, chosen: Iterable[int]) -> Iterator[TensorRecipe]:
        """What makes some of them, in rising order."""
        wanted = set(chosen)
        for recipe in self.recipes:
            sources = [source for source in recipe.sources if _number(source[0]) in wanted]
            yield TensorRecipe(recipe.place, recipe.converter, sources)


def find_experts(
    model: PreTrainedModel,
    held: Mapping[str, torch.Tensor],
    recipes: Mapping[int, TensorRecipe],
    outlines: Mapping[str, torch.Tensor],
    most_nbytes: int,
) -> list[Experts]:
    """Find the modules whose experts are stored one by one, and that compute them one by one.

    Args:
        model: On the meta device.
        held: Name in the model -> what stands for it.
        recipes: id of what stands for a tensor -> what makes it.
        outlines: The stored tensors, on the meta device.
        most_nbytes: Of experts that are read at once; one expert at least.
    """
    found = []
    for path, module in model.named_modules():
        if getattr(module, "_is_expert_parallel", None) is False and _computes_apart(module):
            names = [f"{path}.{name}" for name, _ in (*module.named_parameters(), *module.named_buffers())]
            made = {id(recipe): recipe for name in names if (recipe := recipes.get(id(held[name])))}
            count: Any = module.num_experts
            nbytes = _nbytes(held, names, count)
            experts = Experts(path, count, tuple(made.values()), frozenset(names), nbytes, most_nbytes)
            if made and _are_apart(model, experts, held, outlines):
                found.append(experts)
    return found


def run_routed(module: Any, experts: Experts, put: Any, hidden: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    """Run the experts that tokens are routed to, some at a time.

    Args:
        module: The experts' own, whose class says how one is computed.
        experts: What they are.
        put: Called with some of their numbers: gives the module these alone.
        hidden: States, (tokens, width).
        index: Experts of each token, (tokens, experts a token).

    Returns:
        What each expert answers for each of its tokens, (tokens * experts a token, width).
    """
    routed = index.reshape(-1)
    answers = torch.empty(len(routed), hidden.shape[-1], dtype=hidden.dtype, device=hidden.device)
    for chosen in routed.unique().split(experts.at_once):
        put(chosen.tolist())
        module.num_experts = len(chosen)
        rows = torch.isin(routed, chosen).nonzero()[:, 0]
        place = torch.searchsorted(chosen, routed[rows])[:, None]
        whole = torch.ones_like(place, dtype=hidden.dtype)
        answers[rows] = type(module).forward(module, hidden[rows // index.shape[-1]], place, whole)
    return answers


def join(answers: torch.Tensor, hidden: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    """Add up what experts answer for a token, as transformers' own function does in the end."""
    weighted = answers * weights.reshape(-1).unsqueeze(-1)
    return weighted.view(*weights.shape, -1).sum(dim=1).to(hidden.dtype)


def _computes_apart(module: nn.Module) -> bool:
    return getattr(getattr(module, "config", None), "_experts_implementation", None) == APART


def _nbytes(held: Mapping[str, torch.Tensor], names: Iterable[str], count: int) -> int:
    return max(1, sum(held[name].nbytes for name in names) // max(1, count))


def _are_apart(
    model: PreTrainedModel, experts: Experts, held: Mapping[str, torch.Tensor], outlines: Mapping[str, torch.Tensor]
) -> bool:
    """Whether one expert's stored tensors alone make its row of each tensor of the module."""
    made: dict[str, torch.Tensor] = {}
    for recipe in experts.recipes:
        numbers = {_number(name) for name, _ in recipe.sources}
        if recipe.converter is None or numbers != set(range(experts.count)):
            return False
    for recipe in experts.of([0]):
        made |= recipe.make(model, outlines.__getitem__, held[recipe.place].dtype)
    shapes = {name: (1, *held[name].shape[1:]) for name in experts.names}
    return {name: tuple(tensor.shape) for name, tensor in made.items()} == shapes


def _number(name: str) -> int | None:
    found = EXPERT.search(name)
    return int(found[1]) if found else None
