"""Which layers a reading covers, and what they are called."""

from __future__ import annotations

from collections.abc import Sequence

from inspector.errors import RequestError


def choose_layers(layers: Sequence[int], count: int, *, option: str = "layers") -> list[int]:
    """List the requested layers in order; all where none is named.

    Args:
        layers: Numbers from 0, the embeddings.
        count: Of the model's hidden states.

    Raises:
        RequestError: If there is no such layer.
    """
    chosen = sorted(set(layers)) or list(range(count))
    if outside := [layer for layer in chosen if not 0 <= layer < count]:
        raise RequestError(
            f"There is no layer {outside[0]}: this model has layers 0 (embeddings) to {count - 1}.", option=option
        )
    return chosen


def layer_names(count: int) -> tuple[str, ...]:
    """Labels of hidden states: the embeddings, then the layers from 1."""
    return ("embeddings", *(str(layer) for layer in range(1, count)))
