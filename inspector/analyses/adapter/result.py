"""What the numbers of an adapter say of the change that it makes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # half a second of the first paint, and of every worker's start
    import pandas as pd


@dataclass(frozen=True, slots=True)
class Survival:
    """What of a change is left when the sum is rounded to the base's dtype; all targets as one vector.

    W is the base's weight, Δ the change and Ŵ = W + Δ, rounded once.
    """

    dtype: str  # the base's; several: the one with most of the numbers that were read
    effective_alpha: float  # ⟨Ŵ − W, Δ⟩ / |Δ|²: 1 keeps all of the change, 0 nothing
    noise: float  # |Ŵ − W − Δ| / |Δ|
    share: float  # of the numbers that the change would change, those that rounding lets change
    rows: int  # of each matrix, at most, from all over it


@dataclass(frozen=True, slots=True)
class Adapter:
    """The change that an adapter makes, weight by weight."""

    name: str
    fingerprint: str
    type: str  # as PEFT writes it: LORA, LOHA, IA3; DORA for a LORA with magnitudes
    base: str | None  # the hub id that adapter_config.json gives; None: none, or a path
    base_name: str | None  # of the base that was given
    base_fingerprint: str | None
    # One row for each weight, in the file's order: module, method, shape (of the change, as text; "" where the file
    # does not tell), rank (0: it has none), scale, norm (of the scaled change; NaN: not known without the base),
    # effective_rank (NaN: likewise), dead (it changes nothing), finite, parameters (of the adapter), share (of them to
    # the weight's numbers), layer ("" outside of layers), kind (its name within the layer), and with a base
    # effective_alpha, noise and share_kept, as Survival has them
    targets: pd.DataFrame
    replaced: tuple[str, ...]  # tensors that it brings whole, by the base's names
    biases: tuple[str, ...]  # that it adds to
    unreadable: tuple[str, ...]  # its tensors whose effect is not known here
    parameters: int  # numbers in the file
    base_parameters: int | None  # numbers that the base stores; None without one
    survival: Survival | None  # None without a base, or if nothing can be measured
    warnings: tuple[str, ...]
