"""Fill all masks of a text together: a beam, mask after mask, each given those filled before."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from inspector.analyses.masked_lm.result import Joint
from inspector.models.masking.head import Row
from inspector.models.masking.reading import MaskReading, Question, Wanted, keep_token
from inspector.models.masking.text import MaskedText
from inspector.models.tokens import Tokens

BEAM = 5  # answers kept
LARGEST_JOINT = 12  # masks up to which a joint answer is searched


@dataclass(frozen=True, slots=True)
class _Partial:
    """A text with some of its masks filled."""

    ids: tuple[int, ...]
    open: tuple[int, ...]  # positions of the masks that are left
    total: float  # log probability of what was filled in
    last: tuple[int, float]  # position filled last, and its part of the total


def fill_together(text: MaskedText, tokens: Tokens, order: str, *, beam: int = BEAM) -> Question:
    """Search for the most likely ways to fill all masks.

    Every order is a chain of conditional probabilities; a masked-LM head was not trained to make
    them agree, so each order has its own totals. Next to them stand the sum of the masks' own
    log probabilities and the pseudo-log-likelihood (Salazar et al. 2020), which depend on none.

    Args:
        order: "left" fills from left to right; "sure" fills the mask whose best token is
            most likely, then looks again (easiest first).
        beam: Answers kept.

    Returns:
        Up to so many joint answers, most likely first; none for more than LARGEST_JOINT masks.
    """
    if len(text.masks) > LARGEST_JOINT:
        return ()
    first = (yield [Wanted(text.row, _keep_scores)])[0]
    if not all(len(scores) for scores in first):
        return ()
    best = [[_best(scores, beam) for scores in first]]
    partials = [_Partial(text.ids, text.masks, 0.0, (0, 0.0))]
    while True:
        partials = _grow(partials, best, order, beam)
        if not partials[0].open:
            break
        best = yield [
            Wanted(
                Row(each.ids, text.type_ids, each.open[:1] if order == "left" else each.open),
                lambda reading: [_best(scores, beam) for scores in reading.log_probability],
            )
            for each in partials
        ]
    likelihoods = yield from _pseudo_log_likelihoods(text, partials)
    return tuple(
        Joint(
            tokens=tuple(tokens.visible(each.ids[place]) for place in text.masks),
            log_probability=each.total,
            independent=sum(scores[each.ids[place]].item() for place, scores in zip(text.masks, first, strict=True)),
            pseudo_log_likelihood=likelihood,
        )
        for each, likelihood in zip(partials, likelihoods, strict=True)
    )


def _keep_scores(reading: MaskReading) -> list[torch.Tensor]:
    """The log probabilities of each mask, (vocab,); nothing of a mask without numbers."""
    scores = reading.log_probability.cpu()
    return [each if fine else each[:0] for each, fine in zip(scores, reading.finite, strict=True)]


def _best(scores: torch.Tensor, beam: int) -> list[tuple[float, int]]:
    """The best tokens of one mask: log probability and id, best first."""
    best = scores.topk(min(beam, len(scores)))
    return list(zip(best.values.tolist(), best.indices.tolist(), strict=True))


def _grow(partials: list[_Partial], best: list[list[list[tuple[float, int]]]], order: str, beam: int) -> list[_Partial]:
    """Fill one mask more of each, and keep the best of all."""
    grown = []
    for each, masks in zip(partials, best, strict=True):
        place = 0 if order == "left" else max(range(len(masks)), key=lambda i: masks[i][0][0])
        position = each.open[place]
        for log_probability, index in masks[place]:
            ids = (*each.ids[:position], index, *each.ids[position + 1 :])
            left = (*each.open[:place], *each.open[place + 1 :])
            total = each.total + log_probability
            grown.append(_Partial(ids, left, total, (position, log_probability)))
    return sorted(grown, key=lambda each: -each.total)[:beam]


def _pseudo_log_likelihoods(text: MaskedText, filled: list[_Partial]) -> Question:
    """For each answer the sum over its masks of log p(token | all the others filled)."""
    questions, places = [], []
    for number, each in enumerate(filled):
        for position in text.masks:
            if position != each.last[0]:  # the last was filled with all the others there
                ids = (*each.ids[:position], text.mask_id, *each.ids[position + 1 :])
                row = Row(ids, text.type_ids, (position,))
                questions.append(Wanted(row, keep_token(each.ids[position])))
                places.append(number)
    totals = [each.last[1] for each in filled]
    answers: list[list[Any]] = (yield questions) if questions else []
    for number, (log_probability,) in zip(places, answers, strict=True):
        totals[number] += log_probability
    return totals
