"""Judge every token by what a masked-LM head says when it is masked: leave one out."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

import torch
from tokenizers import Encoding

from inspector.analyses.plausibility.compute_reading import (
    TokenReading,
    Totals,
    alternative_frame,
    find_words,
    judge,
    token_frame,
    warnings,
)
from inspector.analyses.plausibility.request import PlausibilityRequest
from inspector.analyses.plausibility.result import Plausibility
from inspector.errors import RequestError
from inspector.models.checkpoint import StagedCheckpoint
from inspector.models.loading import load
from inspector.models.masking.head import USUAL, Room, Row, masked_logits
from inspector.models.masking.text import require_masked_lm
from inspector.models.running import Loaded, memory_guard
from inspector.progress import Progress


def judge_masked(
    checkpoint: StagedCheckpoint, request: PlausibilityRequest, *, progress: Progress, room: Room = USUAL
) -> Plausibility:
    """Mask each token in turn.

    The sum of the log probabilities is the text's pseudo-log-likelihood (Salazar et al. 2020,
    "Masked Language Model Scoring"). A word's later pieces give its earlier ones away, so that rare
    words of many pieces look likely; by "word" they are masked too (PLL-word-l2r of Kauf and
    Ivanova 2023, "A Better Way to Do Masked Language Model Scoring").

    Special tokens are given as they are and not judged; neither are mask tokens in the text, which
    stay masked in every pass. A token that stands for an unknown word is judged as that token.

    Args:
        request: A text with at least one ordinary token, and what is masked with each: words are
            what the tokenizer splits a text into before it looks for pieces.
        room: What a pass and a block of scores may take.

    Raises:
        NotInCheckpointError: If there is no masked-LM head, no tokenizer or no mask token.
        RequestError: If the text has no ordinary token or does not fit the model.
    """
    tokens, _, mask = require_masked_lm(checkpoint)
    encoding = tokens.encoding(request.text)
    checkpoint.check_ids(tuple(encoding.ids), encoding.type_ids)
    places = tokens.ordinary(encoding)
    if not places:
        raise RequestError("The text has no ordinary token to judge: type a word or a sentence.", option="text")
    loaded = load(checkpoint, "masked_lm", device=request.device, dtype=request.dtype, progress=progress)
    words = find_words(tokens, encoding) if request.by == "word" else None
    rows = [_row(encoding, place, mask, words) for place in places]
    readings: dict[int, TokenReading] = {}
    milliseconds = 0.0
    for number, (index, reading, took) in enumerate(_read(checkpoint, loaded, rows, encoding, k=request.k, room=room)):
        readings[places[index]] = reading
        milliseconds += took
        progress((number + 1) / len(rows), f"Judging {len(rows):,} tokens")
    totals = Totals.of(readings, checkpoint, loaded)
    return Plausibility(
        text=request.text,
        by=request.by,
        device=str(loaded.device),
        dtype=loaded.precision,
        milliseconds=milliseconds,
        tokens=token_frame(
            tokens, encoding, readings, special=[place not in readings for place in range(len(encoding.ids))]
        ),
        judged=len(places),
        pseudo_log_likelihood=totals.log_likelihood,
        pseudo_perplexity=totals.perplexity,
        method="masked",
        log_likelihood=None,
        perplexity=None,
        alternatives=alternative_frame(tokens, readings),
        warnings=(*loaded.notes, *warnings(tokens, encoding, readings)),
    )


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
    checkpoint: StagedCheckpoint, loaded: Loaded, rows: Sequence[Row], encoding: Encoding, *, k: int, room: Room
) -> Iterator[tuple[int, TokenReading, float]]:
    """Read each row's logits as they come: which row, what it says, milliseconds to get it."""
    started = time.perf_counter()
    for answered in masked_logits(checkpoint, loaded, rows, room=room):
        took = 1000 * (time.perf_counter() - started)
        own = encoding.ids[rows[answered.index].positions[0]]
        with memory_guard(loaded), torch.inference_mode():
            (reading,) = judge(answered.logits, [own], k=k)
        yield answered.index, reading, took
        started = time.perf_counter()
