"""The ladder from a hidden state to the logits: the head's own modules, one step at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import reduce
from typing import Any

import torch
from transformers import PreTrainedModel
from transformers.activations import gelu

from inspector.models.families import GELU, Family, Step

FUNCTIONS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {GELU: gelu}


@dataclass(frozen=True, slots=True)
class Unembedding:
    """The output layer: logits = cap(x · weightᵀ + bias)."""

    weight: torch.Tensor  # (vocab, width)
    bias: torch.Tensor | None  # (vocab,)
    cap: float | None
    fused: bool = True  # False: the bias is added after the product was rounded to the dtype

    def score(self, vectors: torch.Tensor, *, plain: bool = False) -> torch.Tensor:
        """Map vectors to logits in the model's dtype; `plain` leaves bias and cap out.

        Args:
            vectors: (..., width).
            plain: Whether to stop at the product.

        Returns:
            (..., vocab).
        """
        bias = None if plain else self.bias
        scores = torch.nn.functional.linear(vectors, self.weight, bias if self.fused else None)
        if bias is not None and not self.fused:
            scores = scores + bias
        return self.cap * torch.tanh(scores / self.cap) if self.cap and not plain else scores


@dataclass(frozen=True, slots=True)
class Ladder:
    """The steps of one model's language-model head."""

    steps: tuple[tuple[Step, Callable[[torch.Tensor], torch.Tensor]], ...]
    unembedding: Unembedding

    @property
    def rungs(self) -> tuple[str, ...]:
        """Names of the steps that are no logits yet; the last one only if something follows it."""
        names = tuple(step.rung for step, _ in self.steps)
        plain = self.unembedding.bias is None and self.unembedding.cap is None
        return names[:-1] if plain else names

    def climb(self, hidden: torch.Tensor, *, last: bool) -> Iterator[tuple[str, torch.Tensor]]:
        """Take hidden states through the steps.

        Args:
            hidden: (..., d_model).
            last: Whether they are hidden_states[-1], which have the steps inside the base model.

        Yields:
            Name of the step and the vectors after it, (..., width).
        """
        for step, apply in self.steps:
            if not (last and step.inside):
                hidden = apply(hidden)
            yield step.rung, hidden

    def top(self, hidden: torch.Tensor, *, last: bool) -> torch.Tensor:
        """What the unembedding gets for hidden states, (..., width)."""
        return reduce(lambda _, step: step[1], self.climb(hidden, last=last), hidden)

    def logits(self, hidden: torch.Tensor, *, last: bool = True) -> torch.Tensor:
        """Map hidden states to logits as the model's forward method does, (..., vocab)."""
        return self.unembedding.score(self.top(hidden, last=last))


def build_ladder(model: PreTrainedModel, family: Family) -> Ladder | None:
    """Find the steps of a model's head by the table of families.

    Returns:
        None where the model has not what the table names: another version of the head.
    """
    weight = _find(model, family.unembedding)
    if weight is None:
        return None
    steps = []
    for step in family.steps:
        apply = FUNCTIONS.get(step.path) or _find(model, step.path)
        if apply is not None:
            steps.append((step, apply))
        elif not step.inside:  # those inside the base model depend on the config
            return None
    if family.scaled and getattr(model.config, family.scaled, False):
        factor = model.config.d_model**-0.5
        steps.append((Step("scale", ""), lambda vectors: vectors * factor))
    bias = _find(model, family.bias) if family.bias else None
    cap = getattr(model.config, family.softcap, None) if family.softcap else None
    unembedding = Unembedding(
        weight.detach(),
        None if bias is None else bias.detach().reshape(-1),
        cap,
        fused=bias is None or bias.dim() == 1,  # BART's, (1, vocab), is no part of the layer
    )
    return Ladder(tuple(steps), unembedding)


def _find(model: PreTrainedModel, path: str) -> Any:
    return reduce(lambda part, name: getattr(part, name, None), path.split("."), model)
