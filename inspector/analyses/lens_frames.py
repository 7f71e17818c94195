"""Put readouts into the lens' tables."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pandas as pd
import torch

from inspector.analyses.lens_scores import COSINE, LOWEST
from inspector.analyses.readout import Readout
from inspector.models.tokens import Tokens

NO_SCORE = LOWEST / 10


def cell_frame(read: Readout, *, rung: str, layer: int) -> pd.DataFrame:
    """One row a kept token: layer, position, rung, rank, token_id, score, probability."""
    positions, k = read.ids.shape
    frame = pd.DataFrame(
        {
            "layer": layer,
            "position": np.repeat(np.arange(positions), k),
            "rung": rung,
            "rank": np.tile(np.arange(k), positions),
            "token_id": read.ids.flatten().numpy(),
            "score": read.scores.flatten().numpy(),
            "probability": read.probabilities.flatten().numpy(),
        }
    )
    return pd.DataFrame(frame[frame["score"] > NO_SCORE])


def pinned_frame(read: Readout, *, rung: str, layer: int, pins: torch.Tensor) -> pd.DataFrame:
    """One row a pinned token: layer, position, rung, token_id, rank, score, probability."""
    positions, count = read.pinned_ranks.shape
    return pd.DataFrame(
        {
            "layer": layer,
            "position": np.repeat(np.arange(positions), count),
            "rung": rung,
            "token_id": np.tile(pins.numpy(), positions),
            "rank": read.pinned_ranks.flatten().numpy(),
            "score": read.pinned_scores.flatten().numpy(),
            "probability": read.pinned_probabilities.flatten().numpy(),
        }
    )


def state_frame(
    read: Readout, *, rung: str, layer: int, compared: dict[str, torch.Tensor]
) -> pd.DataFrame:
    """One row a state: layer, position, rung, entropy, top token, and the comparisons."""
    return pd.DataFrame(
        {
            "layer": layer,
            "position": np.arange(len(read.ids)),
            "rung": rung,
            "entropy": read.entropy.where(read.scores[:, 0] > NO_SCORE, torch.nan).numpy(),
            "top": read.ids[:, 0].numpy(),
            **{name: values.numpy() for name, values in compared.items()},
        }
    )


def with_tokens(frame: pd.DataFrame, tokens: Tokens, *, place: int) -> pd.DataFrame:
    """Put the visible form of `token_id` before it."""
    names = {index: tokens.visible(index) for index in frame["token_id"].unique().tolist()}
    frame.insert(place, "token", [names[index] for index in frame["token_id"].tolist()])
    return frame


def stack(frames: Iterable[pd.DataFrame], empty: pd.DataFrame) -> pd.DataFrame:
    """Put frames below each other; `empty` where there are none."""
    given = list(frames)
    return pd.concat(given, ignore_index=True) if given else empty


EMPTY_PINS = pd.DataFrame(
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
