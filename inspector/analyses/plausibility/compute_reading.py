"""What logits say of the tokens that the text has, and which tokens they would have chosen."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pandas as pd
import torch
from tokenizers import Encoding

from inspector.analyses.plausibility.words import stands_for_unknown
from inspector.models.checkpoint import StagedCheckpoint
from inspector.models.damage import damaged
from inspector.models.reading.readout import read
from inspector.models.running import Loaded
from inspector.models.tokens import SPACE, Tokens


@dataclass(frozen=True, slots=True)
class TokenReading:
    """What the head says of the token at a position."""

    log_probability: float  # natural; NaN where the head's answer is not finite
    rank: int | None  # 1 = most likely
    # The most likely first: ids and natural log probabilities
    best: tuple[tuple[int, float], ...]


NOTHING = TokenReading(math.nan, None, ())


@dataclass(frozen=True, slots=True)
class Totals:
    """What the judged tokens add up to."""

    log_likelihood: float  # sum of the log probabilities, natural
    perplexity: float  # exp of the negative mean

    @classmethod
    def of(cls, readings: Mapping[int, TokenReading], checkpoint: StagedCheckpoint, loaded: Loaded) -> Totals:
        """Add readings up.

        Raises:
            CheckpointError: If the model that gave them answers with NaN.
        """
        total = math.fsum(reading.log_probability for reading in readings.values())
        if math.isnan(total):
            raise damaged(checkpoint.name, loaded)
        try:
            return cls(total, math.exp(-total / len(readings)))
        except OverflowError:
            return cls(total, math.inf)


def judge(logits: torch.Tensor, own: Sequence[int], *, k: int) -> list[TokenReading]:
    """Find one token in each line of logits.

    Args:
        logits: (lines, vocab) in float32, which are used up.
        own: Id of the token that is judged by each line.
        k: Of the most likely tokens that are kept.

    Returns:
        A reading for each line; equal scores rank by id.
    """
    ids = torch.tensor(own, device=logits.device)[:, None]
    mine = logits.gather(1, ids)
    ahead = torch.arange(logits.shape[1], device=logits.device) < ids
    ranks = (1 + (logits > mine).sum(dim=1) + ((logits == mine) & ahead).sum(dim=1)).tolist()
    found = read(logits, k=min(k, logits.shape[1]), pins=ids[:0, 0])
    usable = found.normalizer.isfinite().tolist()  # minus infinity rules a token out and is no damage
    logs = (mine - found.normalizer[:, None])[:, 0].tolist()
    best = (found.scores - found.normalizer[:, None]).tolist()
    lines = zip(usable, logs, ranks, found.ids.tolist(), best, strict=True)
    return [
        TokenReading(log, rank, tuple(zip(names, scores, strict=True))) if fine else NOTHING
        for fine, log, rank, names, scores in lines
    ]


def token_frame(
    tokens: Tokens, encoding: Encoding, readings: Mapping[int, TokenReading], *, special: Sequence[bool]
) -> pd.DataFrame:
    """Every token of a text with its numbers: `Plausibility.tokens`."""
    read_at = [readings.get(place, NOTHING) for place in range(len(encoding.ids))]
    first = [next(iter(reading.best), (None, math.nan)) for reading in read_at]
    logs = [reading.log_probability for reading in read_at]
    return pd.DataFrame(
        {
            "position": range(len(encoding.ids)),
            "token": [tokens.visible(index) for index in encoding.ids],
            "token_id": encoding.ids,
            "special": special,
            "word": find_words(tokens, encoding),
            "judged": [place in readings for place in range(len(encoding.ids))],
            "probability": [math.exp(log) for log in logs],
            "log_probability": logs,
            "rank": pd.array([reading.rank for reading in read_at], dtype="Int64"),
            "best_token": ["" if index is None else tokens.visible(index) for index, _ in first],
            "best_id": pd.array([index for index, _ in first], dtype="Int64"),
            "best_probability": [math.exp(log) for _, log in first],
            "bits": [abs(log) / math.log(2) for log in logs],
        }
    )


def alternative_frame(tokens: Tokens, readings: Mapping[int, TokenReading]) -> pd.DataFrame:
    """The most likely tokens of every place: `Plausibility.alternatives`."""
    rows = [
        (place, rank, tokens.visible(index), index, math.exp(log), log)
        for place in sorted(readings)
        for rank, (index, log) in enumerate(readings[place].best, start=1)
    ]
    return pd.DataFrame(rows, columns=["position", "rank", "token", "token_id", "probability", "log_probability"])


def find_words(tokens: Tokens, encoding: Encoding) -> list[int]:
    """Count the words of a text.

    A word is what the tokenizer splits a text into before it looks for pieces, and where it does
    not split at spaces, what is between those.

    Returns:
        The word of each token, from 0; -1 for tokens that stand for no text.
    """
    words: list[int] = []
    last, before = -1, None
    for index, word in zip(encoding.ids, encoding.word_ids, strict=True):
        if word is not None and (word != before or tokens.visible(index).startswith(SPACE)):
            last += 1
        words.append(-1 if word is None else last)
        before = word
    return words


def warnings(tokens: Tokens, encoding: Encoding, readings: Mapping[int, TokenReading]) -> Iterator[str]:
    """What a reader must know of some numbers."""
    name, unknown = tokens.role("unk")
    count = sum(encoding.ids[place] == unknown for place in readings)
    if count:
        yield stands_for_unknown(count, name)
