"""What GGUF files say of themselves, and how they store each tensor."""

from __future__ import annotations

from dataclasses import dataclass

from inspector.results.plain import local


@dataclass(frozen=True, slots=True)
class GgufFacts:
    """The metadata of GGUF files, and the types of their tensors."""

    metadata: dict[str, str]  # key -> value as text; of a long array, how many values it has
    bits_per_weight: float  # of all numbers together, scales included
    types: dict[str, int]  # ggml's type, or the dtype of plain numbers -> numbers stored in it
    stored: dict[str, tuple[str, float]] = local()  # name in the file -> its type, and bits a number

    @property
    def architecture(self) -> str:
        """As llama.cpp calls it; "" if the file does not say."""
        return self.metadata.get("general.architecture", "")

    @property
    def layers(self) -> int | None:
        """As the file says; None if it does not."""
        said = self.metadata.get(f"{self.architecture}.block_count", "")
        return int(said) if said.isdecimal() else None
