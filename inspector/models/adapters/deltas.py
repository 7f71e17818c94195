"""What an adapter adds to a weight, in float64, with how far a float32 product may be from it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import torch

from inspector.errors import NotInCheckpointError
from inspector.models.adapters.parts import WeightChange
from inspector.models.adapters.rounding import UNIT, rounded
from inspector.models.checkpoint import StagedCheckpoint

EPSILON = UNIT[torch.float32]
Rows = Callable[[slice | torch.Tensor], torch.Tensor]  # some rows of a matrix in float64
NO_FIT = (
    "{adapter} does not fit {base}: its change of {module} is {change}, and the weight there is {weight}. Give the "
    "model that the adapter was trained on."
)


@dataclass(frozen=True, slots=True)
class Low:
    """An adapter that was merged in numbers of 16 bits."""

    dtype: torch.dtype
    twice: bool  # the product is rounded before it is scaled, as on a GPU


class Delta:
    """The change of one weight, by rows of the weight as its base stores it.

    Args:
        adapter: The adapter.
        change: The change.
        base: The base model.
        shape: Of the weight there; more than two axes are (rows, all others).
        rows: Reads rows of it.

    Raises:
        NotInCheckpointError: If the change is of another shape.
    """

    def __init__(
        self,
        adapter: StagedCheckpoint,
        change: WeightChange,
        base: StagedCheckpoint,
        shape: tuple[int, ...],
        rows: Rows,
    ) -> None:
        self._change, self._base, self._rows = change, base, rows
        self._shape = (shape[0], math.prod(shape[1:]))
        read = adapter.read([part.name for part in change.parts.values()])
        self._parts = {role: read[part.name] for role, part in change.parts.items()}
        self._called = adapter.name
        self.nonfinite = not all(bool(part.isfinite().all()) for part in self._parts.values())
        self._factors = self._oriented()
        magnitude = self._parts.get("lora_magnitude_vector")
        if magnitude is not None and magnitude.numel() != self._shape[1 if self._flipped else 0]:
            self._refuse(tuple(magnitude.shape))

    @property
    def zero(self) -> bool:
        """Whether it changes nothing at all."""
        if self._change.kind == "(IA)³":
            return bool((self._parts["ia3_l"] == 1).all())
        whole = "lora_magnitude_vector" not in self._parts
        return whole and any(not bool(left.any()) or not bool(right.any()) for left, right in self._factors)

    def bounds(self, at: slice | torch.Tensor, base: torch.Tensor, low: Low | None = None) -> tuple[torch.Tensor, ...]:
        """Least and largest of what is added to some rows, and the value itself.

        Args:
            at: Which rows.
            base: Their numbers before, float64.
            low: The adapter's numbers, if they have 16 bits; of LoRA alone.
        """
        change, slack = self._scales(at, base) if self._change.kind == "(IA)³" else self._product(at, low)
        if low:
            ends = [self._low(change + side, low) for side in (-slack, slack)]
            return torch.minimum(*ends), torch.maximum(*ends), self._low(change, low)
        if self._change.kind != "(IA)³":
            change, slack = change * self._change.scale, slack * abs(self._change.scale)
        if "lora_magnitude_vector" in self._parts:
            change, slack = self._decomposed(at, base, change, slack)
        return change - slack, change + slack, change

    def summed(self, at: slice, stored: torch.Tensor) -> torch.Tensor:
        """Some rows with the change: of a LoRA in the numbers that PEFT adds in, else in float64.

        Args:
            at: Which rows.
            stored: What they hold before.
        """
        if self.can_be_low:
            ((left, right),) = self._factors
            wide = torch.promote_types(stored.dtype, torch.float32)
            change = (left[at].float() @ right.float()).mul_(self._change.scale)
            return change.to(wide).add_(stored)
        before = stored.double()
        return before + self.bounds(at, before)[2]

    @property
    def can_be_low(self) -> bool:
        """Whether `bounds` takes `low`."""
        return self._change.kind.startswith("LoRA") and "lora_magnitude_vector" not in self._parts

    def _low(self, product: torch.Tensor, low: Low) -> torch.Tensor:
        scaled = (rounded(product, low.dtype) if low.twice else product) * self._change.scale
        return rounded(scaled, low.dtype)

    def _product(self, at: slice | torch.Tensor, low: Low | None) -> tuple[torch.Tensor, torch.Tensor]:
        """The product of the factors' rows, and its error in float32."""
        found, size, terms = torch.ones(()), torch.ones(()), 2
        if self._change.kind == "LoKr":
            return self._kronecker(at)
        for left, right in self._factors:
            one, two = left[at].double(), right.double()
            if low:
                one, two = rounded(one, low.dtype), rounded(two, low.dtype)
            found, size = found * (one @ two), size * (one.abs() @ two.abs())
            terms += right.shape[0]
        return found, terms * EPSILON * size

    def _kronecker(self, at: slice | torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        (first, second), rows = self._factors[0], torch.arange(self._shape[0])[at]
        first, second = first.double(), second.double()
        one, two = first[rows // second.shape[0]], second[rows % second.shape[0]]
        found = (one[:, :, None] * two[:, None, :]).reshape(len(rows), -1)
        return found, (2 * self._change.rank + 4) * EPSILON * found.abs() + EPSILON * self._kronecker_size

    @cached_property
    def _kronecker_size(self) -> float:
        first, second = self._factors[0]
        return float(first.double().abs().max() * second.double().abs().max()) * self._change.rank

    def _scales(self, at: slice | torch.Tensor, base: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        (scales, _), *_ = self._factors
        whole = scales.double().expand(self._shape)[at]
        return base * (whole - 1), EPSILON * (base * whole).abs()

    def _decomposed(
        self, at: slice | torch.Tensor, base: torch.Tensor, change: torch.Tensor, slack: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """DoRA: the sum, with each output's norm replaced by its magnitude."""
        magnitude = self._parts["lora_magnitude_vector"].double().reshape(-1)
        if self._flipped:
            factor = (magnitude / self._output_norms)[None, :]
        else:
            factor = (magnitude[at] / (base + change).norm(dim=1))[:, None]
        target = factor * (base + change)
        error = factor.abs() * slack + 8 * EPSILON * target.abs() + EPSILON * math.sqrt(self._shape[1]) * target.abs()
        return target - base, error

    @cached_property
    def _output_norms(self) -> torch.Tensor:
        """Of each output, where outputs are columns."""
        total = torch.zeros(self._shape[1], dtype=torch.float64)
        size = max(1, (1 << 20) // self._shape[1])
        for begin in range(0, self._shape[0], size):
            at = slice(begin, begin + size)
            change, _ = self._product(at, None)
            total += (self._rows(at) + self._change.scale * change).square().sum(0)
        return total.sqrt()

    def _oriented(self) -> tuple[tuple[torch.Tensor, torch.Tensor], ...]:
        """Factors whose product has the weight's rows: (left, right) of each product."""
        self._flipped = False
        kind, parts = self._change.kind, self._parts
        if kind == "LoRA of embeddings":
            pairs = ((parts["lora_embedding_A"].T, parts["lora_embedding_B"].T),)
            self._flipped = "lora_magnitude_vector" in parts  # DoRA takes the norms of columns there
            return self._fitting(pairs, self._shape)
        if kind == "LoRA":
            left, right = (parts[role].flatten(1) for role in ("lora_B", "lora_A"))
            outputs, inputs = left.shape[0], right.shape[1]
            self._flipped = self._is_flipped(outputs, inputs)
            return self._fitting(((right.T, left.T),) if self._flipped else ((left, right),), self._shape)
        if kind == "LoHa":
            pairs = tuple((parts[f"hada_w{n}_a"], parts[f"hada_w{n}_b"]) for n in (1, 2))
            return self._fitting(pairs, self._shape)
        if kind == "LoKr":
            first, second = (self._factor(f"lokr_w{n}").flatten(1) for n in (1, 2))
            found = first.shape[0] * second.shape[0], first.shape[1] * second.shape[1]
            return ((first, second),) if found == self._shape else self._refuse(found)
        scales = parts["ia3_l"].flatten(1)
        if 1 not in scales.shape:
            self._refuse(tuple(scales.shape))
        by_output = scales.shape[1] == 1
        self._flipped = self._is_flipped(*((scales.numel(), -1) if by_output else (-1, scales.numel())))
        scales = scales.T if self._flipped else scales
        fits = all(size in (1, there) for size, there in zip(scales.shape, self._shape, strict=True))
        return ((scales, scales),) if fits else self._refuse(tuple(scales.shape))

    def _factor(self, role: str) -> torch.Tensor:
        if role in self._parts:
            return self._parts[role]
        one, two = self._parts[f"{role}_a"], self._parts[f"{role}_b"]
        if one.shape[0] * two.shape[1] > math.prod(self._shape):
            self._refuse((one.shape[0], two.shape[1]))
        return one.double() @ two.double()

    def _is_flipped(self, outputs: int, inputs: int) -> bool:
        """Whether the weight is (in, out), as GPT-2's Conv1D has it; -1: any number."""
        plain = all(size in (-1, there) for size, there in zip((outputs, inputs), self._shape, strict=True))
        turned = all(size in (-1, there) for size, there in zip((inputs, outputs), self._shape, strict=True))
        if plain != turned:
            return turned
        return plain and _is_transposed(self._base, self._change.module)

    def _fitting(
        self, pairs: tuple[tuple[torch.Tensor, torch.Tensor], ...], shape: tuple[int, int]
    ) -> tuple[tuple[torch.Tensor, torch.Tensor], ...]:
        for left, right in pairs:
            found = (left.shape[0], right.shape[1])
            if found != shape or left.shape[1] != right.shape[0]:
                self._refuse(found)
        return pairs

    def _refuse(self, found: tuple[int, ...]) -> tuple[tuple[torch.Tensor, torch.Tensor], ...]:
        change, weight = ("×".join(map(str, shape)) for shape in (found, self._shape))
        raise NotInCheckpointError(
            NO_FIT.format(
                adapter=self._called, base=self._base.name, module=self._change.module, change=change, weight=weight
            )
        )


def _is_transposed(base: StagedCheckpoint, module: str) -> bool:
    """Whether the model's class keeps a layer's weight as (in, out)."""
    if base.structure is None:
        return False
    model, _ = base.structure
    for name, layer in model.named_modules():
        if name == module or name.endswith(f".{module}") or module.endswith(f".{name}"):
            if type(layer).__name__ == "Conv1D":
                return True
            if hasattr(layer, "weight"):
                return False
    return False
