"""Sentences about training."""

from __future__ import annotations

from collections.abc import Sequence


def warn_of_codes(schemes: Sequence[str]) -> tuple[str, ...]:
    """Say, where weights are quantized, that no optimizer moves those.

    Args:
        schemes: The scheme of each quantized weight.
    """
    if not schemes:
        return ()
    what = "1 weight is" if len(schemes) == 1 else f"{len(schemes):,} weights are"
    return (
        f"{what} stored as {' and '.join(dict.fromkeys(schemes))}: no optimizer changes codes. "
        "What is said here is for the numbers that they stand for, as plain weights; to train "
        "beside the codes, add adapters (QLoRA), and to train the weights themselves, start from "
        "the float original.",
    )
