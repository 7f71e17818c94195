"""Bring the tensors of a model that is built on the meta device in from the files when they are needed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import torch
from torch import nn
from transformers import PreTrainedModel

from inspector.models.naming import TensorRecipe
from inspector.models.placing.routing import Experts
from inspector.progress import Progress

if TYPE_CHECKING:
    from inspector.models.checkpoint import StagedCheckpoint


@dataclass(slots=True, eq=False)
class Stream:
    """Brings a model's tensors in from the files.

    A tensor is known by what stands for it on the meta device: tied names have that in common.
    """

    checkpoint: StagedCheckpoint
    model: PreTrainedModel
    device: torch.device
    held: dict[str, torch.Tensor]  # name in the model -> what stands for it
    recipes: dict[int, TensorRecipe]  # id of what stands for a tensor -> what makes it
    blocks: dict[str, list[str]] = field(default_factory=dict)  # those that come and go -> their tensors
    mixtures: list[Experts] = field(default_factory=list)  # whose experts do
    progress: Progress = field(default=lambda *_: None)
    began: float = 0.0  # when the first block of the pass came in

    def make(self, names: Iterable[str]) -> dict[int, torch.Tensor]:
        """Read some of the model's tensors, each once; those that the files hold."""
        return self.read(self.needed(names))

    def read(self, wanted: Sequence[TensorRecipe]) -> dict[int, torch.Tensor]:
        """Read what some recipes make."""
        stored = self.checkpoint.read([source for recipe in wanted for source, _ in recipe.sources])
        made: dict[int, torch.Tensor] = {}
        for recipe in wanted:
            found = recipe.make(self.model, stored.__getitem__, self.held[recipe.place].dtype)
            made |= {id(self.held[name]): self._settled(name, value) for name, value in found.items()}
        return made

    def _settled(self, name: str, value: torch.Tensor) -> torch.Tensor:
        """A tensor where the model computes, as the kind that the model has."""
        there = value.to(self.device)
        return nn.Parameter(there, requires_grad=False) if isinstance(self.held[name], nn.Parameter) else there

    def needed(self, names: Iterable[str]) -> list[TensorRecipe]:
        """What makes those of some tensors that the files hold."""
        found = (self.recipes.get(id(self.held[name])) for name in names)
        return list({recipe.place: recipe for recipe in found if recipe}.values())

    def put(self, name: str, tensor: torch.Tensor) -> None:
        """Put a tensor into the model."""
        path, _, attribute = name.rpartition(".")
        module = self.model.get_submodule(path)
        kind = module._parameters if attribute in module._parameters else module._buffers
        kind[attribute] = tensor  # type: ignore[assignment]  # a parameter is put where one was
