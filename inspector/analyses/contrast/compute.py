"""What two texts with one mask each make of the whole vocabulary."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import torch

from inspector.analyses.contrast.request import ContrastRequest
from inspector.analyses.contrast.result import Contrast
from inspector.errors import RequestError
from inspector.models.checkpoint import StagedCheckpoint
from inspector.models.damage import refuse_damaged
from inspector.models.loading import load
from inspector.models.masking.head import Row, masked_logits
from inspector.models.masking.text import require_masked_lm
from inspector.models.running import memory_guard
from inspector.models.vocabulary.labels import label_rows
from inspector.progress import Progress
from inspector.request import answers

LISTED = ["token", "token_id", "kind", "first", "second", "likelihood", "difference"]


@answers(ContrastRequest)
def contrast(checkpoint: StagedCheckpoint, request: ContrastRequest, *, progress: Progress) -> Contrast:
    """Compare what the head says for the one mask of two texts, token by token.

    Likelihood against difference, as in the explorable "What Have Language Models Learned?" of
    Google's PAIR; in log probabilities, so that texts and checkpoints can be compared.

    Args:
        request: Two texts with exactly one mask token each; the frame `tokens` holds the whole
            vocabulary, whatever is listed.

    Raises:
        NotInCheckpointError: If there is no masked-LM head, no tokenizer or no mask token.
        RequestError: If a text does not hold exactly one mask token or does not fit the model.
    """
    first, second = request.first, request.second
    rows = [_row(checkpoint, text, name) for name, text in (("first", first), ("second", second))]
    loaded = load(checkpoint, "masked_lm", device=request.device, dtype=request.dtype, progress=progress)
    progress(None, "Running the model")
    once = list(dict.fromkeys(rows))  # a batch rounds its rows apart: equal texts have no difference
    answers = sorted(masked_logits(checkpoint, loaded, once), key=lambda answered: answered.index)
    with memory_guard(loaded), torch.inference_mode():
        logits = torch.cat([answers[once.index(row)].logits for row in rows]).cpu().double()
    refuse_damaged(checkpoint.name, loaded, logits)
    one, other = logits.log_softmax(dim=1).numpy()
    tokens = label_rows(checkpoint, len(one))
    tokens = tokens.assign(first=one, second=other, likelihood=(one + other) / 2, difference=one - other)
    floor = -math.log(len(one))
    return Contrast(
        first_text=first,
        second_text=second,
        device=str(loaded.device),
        dtype=loaded.precision,
        # Texts of much different lengths have a pass each; those of one pass tell its time twice.
        milliseconds=sum({answered.milliseconds for answered in answers}),
        rows=len(one),
        jensen_shannon=jensen_shannon(one, other),
        floor=floor,
        favours_first=favored(tokens, 1, floor, request.k),
        favours_second=favored(tokens, -1, floor, request.k),
        file=None,
        warnings=loaded.notes,
        tokens=tokens,
    )


def _row(checkpoint: StagedCheckpoint, text: str, name: str) -> Row:
    tokens, token, mask = require_masked_lm(checkpoint)
    encoded = tokens.encode(text)
    checkpoint.check_ids(encoded.ids, encoded.type_ids)
    positions = tuple(place for place, index in enumerate(encoded.ids) if index == mask)
    if len(positions) != 1:
        many = f"{len(positions)} {token}" if positions else f"no {token}"
        raise RequestError(
            f"The {name} text has {many}: write {token} exactly once, at the place to compare.", option=name
        )
    return Row(encoded.ids, encoded.type_ids, positions)


def jensen_shannon(first: np.ndarray, second: np.ndarray) -> float:
    """The Jensen-Shannon divergence of two distributions (Lin 1991).

    Args:
        first: Natural logarithms of probabilities that add up to 1, float64.
        second: Likewise, of the same length.

    Returns:
        Bits, from 0 (the same) to 1 (nothing in common).
    """
    middle = np.logaddexp(first, second) - math.log(2)
    nats = (_divergence(first, middle) + _divergence(second, middle)) / 2
    return float(np.clip(nats / math.log(2), 0, 1))


def _divergence(first: np.ndarray, second: np.ndarray) -> float:
    """Kullback-Leibler divergence in nats; a probability of 0 adds nothing."""
    shares = np.exp(first)
    return float(np.sum(np.where(shares == 0, 0, shares * (first - second))))


def favored(tokens: pd.DataFrame, sign: int, floor: float, k: int) -> pd.DataFrame:
    """The tokens that one text makes more likely, the most contrasted first, equal ones by id."""
    likely = pd.DataFrame(tokens[tokens["likelihood"] >= floor])
    mine = pd.DataFrame(likely[np.sign(likely["difference"]) == sign])
    chosen = mine.nlargest if sign > 0 else mine.nsmallest
    return chosen(k, "difference").reindex(columns=LISTED).reset_index(drop=True)
