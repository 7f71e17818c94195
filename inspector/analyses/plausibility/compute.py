"""How plausible is each token in its place: mask it, and ask the head for it."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pandas as pd
import torch
from tokenizers import Encoding

from inspector.analyses.plausibility.request import PlausibilityRequest
from inspector.analyses.plausibility.result import Plausibility
from inspector.errors import RequestError
from inspector.models.checkpoint import Checkpoint
from inspector.models.damage import damaged
from inspector.models.masking.head import Row, masked_logits
from inspector.models.masking.text import require_masked_lm
from inspector.models.reading.readout import read
from inspector.models.running import Loaded, memory_guard
from inspector.models.tokens import SPACE, Tokens
from inspector.progress import Progress
from inspector.request import answers


@dataclass(frozen=True, slots=True)
class Reading:
    """What the head says of the token that stands at a position."""

    log_probability: float  # natural; NaN where the head's answer is not finite
    rank: int | None  # 1 = most likely
    best: int | None  # id of the most likely
    best_probability: float


NOTHING = Reading(math.nan, None, None, math.nan)


@answers(PlausibilityRequest)
def plausibility(checkpoint: Checkpoint, request: PlausibilityRequest, *, progress: Progress) -> Plausibility:
    """Judge every token by what the head says when it is masked: leave one out.

    The sum of the log probabilities is the text's pseudo-log-likelihood (Salazar et al. 2020,
    "Masked Language Model Scoring"). A word's later pieces give its earlier ones away, so that rare
    words of many pieces look likely; by "word" they are masked too (PLL-word-l2r of Kauf and
    Ivanova 2023, "A Better Way to Do Masked Language Model Scoring").

    Special tokens are given as they are and not judged; neither are mask tokens in the text, which
    stay masked in every pass. A token that stands for an unknown word is judged as that token.

    Args:
        checkpoint: With a masked-LM head.
        request: A text with at least one ordinary token, and what is masked with each: words are
            what the tokenizer splits a text into before it looks for pieces.
        progress: Told how many tokens are done.

    Raises:
        NotInCheckpointError: If there is no masked-LM head, no tokenizer or no mask token.
        RequestError: If the text has no ordinary token or does not fit the model.
    """
    text, by = request.text, request.by
    tokens, _, mask = require_masked_lm(checkpoint)
    encoding = tokens.encoding(text)
    checkpoint.check_ids(tuple(encoding.ids), encoding.type_ids)
    places = tokens.ordinary(encoding)
    if not places:
        raise RequestError("The text has no ordinary token to judge: type a word or a sentence.")
    loaded = checkpoint.load(
        "masked_lm",
        device=request.device,  # type: ignore[arg-type]
        dtype=request.dtype,  # type: ignore[arg-type]
        progress=progress,
    )
    words = find_words(tokens, encoding)
    rows = [_row(encoding, place, mask, words if by == "word" else None) for place in places]
    readings: dict[int, Reading] = {}
    milliseconds = 0.0
    for number, (index, reading, took) in enumerate(_read(checkpoint, loaded, rows, encoding)):
        readings[places[index]] = reading
        milliseconds += took
        progress((number + 1) / len(rows), f"Judging {len(rows):,} tokens")
    if any(math.isnan(reading.log_probability) for reading in readings.values()):
        raise damaged(checkpoint.name, loaded)
    total = math.fsum(reading.log_probability for reading in readings.values())
    return Plausibility(
        text=text,
        by=by,
        device=str(loaded.device),
        dtype=str(loaded.dtype).removeprefix("torch."),
        milliseconds=milliseconds,
        tokens=_frame(tokens, encoding, words, readings),
        judged=len(places),
        pseudo_log_likelihood=total,
        pseudo_perplexity=_exp(-total / len(places)),
        warnings=(*loaded.notes, *_warnings(tokens, encoding, readings)),
    )


def find_words(tokens: Tokens, encoding: Encoding) -> list[int]:
    """Count the words of a text.

    A word is what the tokenizer splits a text into before it looks for pieces, and where it does
    not split at spaces, what stands between those.

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


def _row(encoding: Encoding, place: int, mask: int, words: Sequence[int] | None) -> Row:
    """The text with one place masked, and where words are given, the rest of its word after it."""
    ids = list(encoding.ids)
    ids[place] = mask
    if words is not None and words[place] >= 0:
        for later in range(place + 1, len(ids)):
            if words[later] == words[place]:
                ids[later] = mask
    return Row(tuple(ids), tuple(encoding.type_ids), (place,))


def _read(
    checkpoint: Checkpoint, loaded: Loaded, rows: Sequence[Row], encoding: Encoding
) -> Iterator[tuple[int, Reading, float]]:
    """Read each row's logits as they come: which row, what it says, milliseconds to get it."""
    started = time.perf_counter()
    for answered in masked_logits(checkpoint, loaded, rows):
        took = 1000 * (time.perf_counter() - started)
        own = encoding.ids[rows[answered.index].positions[0]]
        with memory_guard(loaded), torch.inference_mode():
            reading = _judge(answered.logits, own)
        yield answered.index, reading, took
        started = time.perf_counter()


def _judge(logits: torch.Tensor, own: int) -> Reading:
    """Find one token in (1, vocab) logits, which are used up; equal ones rank by id."""
    if not logits.logsumexp(dim=1).isfinite().all():
        return NOTHING
    found = read(logits, k=1, pins=torch.tensor([own], device=logits.device))
    return Reading(
        log_probability=(found.pinned_scores - found.normalizer[:, None]).item(),
        rank=int(found.pinned_ranks.item()) + 1,
        best=int(found.ids.item()),
        best_probability=found.probabilities.item(),
    )


def _frame(tokens: Tokens, encoding: Encoding, words: Sequence[int], readings: dict[int, Reading]) -> pd.DataFrame:
    read_at = [readings.get(place, NOTHING) for place in range(len(encoding.ids))]
    logs = [reading.log_probability for reading in read_at]
    return pd.DataFrame(
        {
            "position": range(len(encoding.ids)),
            "token": [tokens.visible(index) for index in encoding.ids],
            "token_id": encoding.ids,
            "special": [place not in readings for place in range(len(encoding.ids))],
            "word": words,
            "probability": [math.exp(log) for log in logs],
            "log_probability": logs,
            "rank": pd.array([reading.rank for reading in read_at], dtype="Int64"),
            "best_token": ["" if reading.best is None else tokens.visible(reading.best) for reading in read_at],
            "best_id": pd.array([reading.best for reading in read_at], dtype="Int64"),
            "best_probability": [reading.best_probability for reading in read_at],
            "bits": [abs(log) / math.log(2) for log in logs],
        }
    )


def _exp(power: float) -> float:
    try:
        return math.exp(power)
    except OverflowError:
        return math.inf


def _warnings(tokens: Tokens, encoding: Encoding, readings: dict[int, Reading]) -> Iterator[str]:
    name, unknown = tokens.role("unk")
    count = sum(encoding.ids[place] == unknown for place in readings)
    if count:
        yield (
            f"{count} {'token stands' if count == 1 else 'tokens stand'} for text that the vocabulary lacks: the score "
            f"there is for {name} itself."
        )
