"""How the numbers of one tensor are distributed."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Histogram:
    """What the numbers of a tensor are, all of a small one, evenly spaced pieces of a large one."""

    tensor: str  # its name
    shape: tuple[int, ...]
    dtype: str  # of the numbers; of quantized weights, what they are dequantized to
    file: str  # that holds it
    scheme: str  # of a quantized weight, whose numbers are dequantized; "" otherwise
    numbers: int  # that it has
    read: int  # of them; all below are of these
    nan: int
    infinite: int
    zeros: int
    least: float | None  # of the finite numbers; None: there is none
    most: float | None
    mean: float | None
    rms: float | None
    edges: tuple[float, ...]  # of the bins, one more than counts; () without finite numbers
    counts: tuple[int, ...]  # of the finite numbers, by bin

    @property
    def is_sample(self) -> bool:
        """Whether only some of the numbers were read."""
        return self.read < self.numbers
