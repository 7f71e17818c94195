"""Sentences about training."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from inspector.models.quantized.layout import Quantised


def warn_of_codes(quantised: Mapping[str, Quantised]) -> tuple[str, ...]:
    """Say, where weights are stored as codes, that no optimizer moves those."""
    if not quantised:
        return ()
    what = "1 weight is" if len(quantised) == 1 else f"{len(quantised):,} weights are"
    schemes = " and ".join(dict.fromkeys(each.scheme for each in quantised.values()))
    return (
        f"{what} stored as {schemes}: no optimizer changes codes. What is said here is for the "
        "numbers that they stand for, as plain weights; to train beside the codes, add adapters "
        "(QLoRA), and to train the weights themselves, start from the float original.",
    )
