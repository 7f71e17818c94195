"""Put readouts into the lens' tables."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
import torch

from inspector.models.reading.readout import Readout
from inspector.models.reading.scores import COSINE, LOWEST
from inspector.models.tokens import Tokens

NO_SCORE = LOWEST / 10


def cell_frame(read: Readout, *, rung: str, layers: Sequence[int]) -> pd.DataFrame:
    """One row a kept token: layer, position, rung, rank, token_id, score, probability.

    Args:
        read: States of the layers, one layer's after the other's.
    """
    states, k = read.ids.shape
    frame = pd.DataFrame(
        {
            **_places(states, layers, each=k),
            "rung": rung,
            "rank": np.tile(np.arange(k), states),
            "token_id": read.ids.flatten().numpy(),
            "score": read.scores.flatten().numpy(),
            "probability": read.probabilities.flatten().numpy(),
        }
    )
    return pd.DataFrame(frame[frame["score"] > NO_SCORE])


def pinned_frame(read: Readout, *, rung: str, layers: Sequence[int], pins: torch.Tensor) -> pd.DataFrame:
    """One row a pinned token: layer, position, rung, token_id, rank, score, probability."""
    states, count = read.pinned_ranks.shape
    return pd.DataFrame(
        {
            **_places(states, layers, each=count),
            "rung": rung,
            "token_id": np.tile(pins.numpy(), states),
            "rank": read.pinned_ranks.flatten().numpy(),
            "score": read.pinned_scores.flatten().numpy(),
            "probability": read.pinned_probabilities.flatten().numpy(),
        }
    )


def state_frame(read: Readout, *, rung: str, layers: Sequence[int], compared: dict[str, torch.Tensor]) -> pd.DataFrame:
    """One row a state: layer, position, rung, entropy, top token, and the comparisons."""
    return pd.DataFrame(
        {
            **_places(len(read.ids), layers, each=1),
            "rung": rung,
            "entropy": read.entropy.where(read.scores[:, 0] > NO_SCORE, torch.nan).numpy(),
            "top": read.ids[:, 0].numpy(),
            **{name: values.numpy() for name, values in compared.items()},
        }
    )


def _places(states: int, layers: Sequence[int], *, each: int) -> dict[str, np.ndarray]:
    """Layer and position of so many rows for each state."""
    positions = states // len(layers)
    return {
        "layer": np.repeat(layers, positions * each),
        "position": np.tile(np.repeat(np.arange(positions), each), len(layers)),
    }


def with_tokens(frame: pd.DataFrame, tokens: Tokens, *, place: int) -> pd.DataFrame:
    """Put the visible form of `token_id` before it."""
    names = {index: tokens.visible(index) for index in frame["token_id"].unique().tolist()}
    frame.insert(place, "token", [names[index] for index in frame["token_id"].tolist()])
    return frame


def by_layer(frames: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Put frames below each other, layer after layer; no rows where there are none."""
    if not frames:
        return EMPTY.copy()
    whole = pd.concat(frames, ignore_index=True)
    return whole.sort_values("layer", kind="stable", ignore_index=True)


EMPTY = pd.DataFrame(
    {
        "layer": pd.Series(dtype="int64"),
        "position": pd.Series(dtype="int64"),
        "rung": pd.Series(dtype="str"),
        "token_id": pd.Series(dtype="int64"),
        "rank": pd.Series(dtype="int64"),
        "score": pd.Series(dtype="float64"),
        "probability": pd.Series(dtype="float64"),
    }
)
WITHOUT_SOFTMAX = frozenset({COSINE})
