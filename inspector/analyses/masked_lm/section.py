"""What the masked-LM head predicts, and how plausible it finds the text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from inspector.analyses.masked_lm.frames import joint_answers
from inspector.analyses.masked_lm.request import PredictRequest
from inspector.analyses.masked_lm.result import Mask, Prediction
from inspector.analyses.masked_lm.words import HOW, NO_MASK, OTHERS_OPEN, joint
from inspector.analyses.plausibility.figures import figure
from inspector.analyses.plausibility.request import PlausibilityRequest
from inspector.analyses.plausibility.result import Plausibility
from inspector.analyses.plausibility.words import CAUSAL, totals
from inspector.plotting.predictions import topk_bars
from inspector.report.content import Block, Context, Drawn, Said, Section, Tabled
from inspector.request import Request


def ask(context: Context) -> tuple[Request, ...]:
    """The masks of the text, if it has any, and the text itself; of a causal model the text alone."""
    setting = context.setting
    judge = PlausibilityRequest(text=setting.text, device=setting.device, dtype=setting.dtype)
    masks = not context.overview.is_causal and bool(context.mask and context.mask in setting.text)
    return (_request(context), judge) if masks else (judge,)


def _request(context: Context) -> PredictRequest:
    setting = context.setting
    return PredictRequest(text=setting.text, device=setting.device, dtype=setting.dtype)


def show(context: Context, answers: tuple[Any, ...]) -> Iterator[Block]:
    """Bars for each mask, then the sentence colored by surprisal."""
    yield Said(f"The text: {context.setting.text}")
    if isinstance(answers[0], Prediction):
        yield from _prediction(context, answers[0])
    elif not context.overview.is_causal:
        yield Said(NO_MASK)
    else:
        yield Said(CAUSAL)
    judged = answers[-1]
    if isinstance(judged, Plausibility) and judged.judged:
        yield from _plausibility(context, judged)


def _prediction(context: Context, prediction: Prediction) -> Iterator[Block]:
    for number, mask in enumerate(prediction.masks, start=1):
        several = len(prediction.masks) > 1
        yield _bars(context, mask, number, several=several)
        yield Tabled(f"mask-{number}", f"Most likely tokens at position {mask.position}", mask.predictions)
    yield Said(HOW)
    if len(prediction.masks) > 1 and prediction.joint:
        yield Said(joint(_request(context).order))
        yield Tabled("joint", "All masks together", joint_answers(prediction))


def _bars(context: Context, mask: Mask, number: int, *, several: bool) -> Drawn:
    place = f"mask {number} at position {mask.position}" if several else "the mask"
    return Drawn(
        f"mask-{number}",
        lambda theme: topk_bars(
            mask.predictions,
            title=f"What {context.name} predicts for {place}",
            subtitle=OTHERS_OPEN if several else "",
            theme=theme,
        ),
        f"The most likely tokens of {place}, as bars",
    )


def _plausibility(context: Context, judged: Plausibility) -> Iterator[Block]:
    yield Drawn(
        "plausibility",
        lambda theme: figure(judged, name=context.name, theme=theme),
        "The text's tokens as boxes; a stronger color means a more surprising token",
    )
    yield Said(totals(judged))
    yield Tabled("plausibility", "Every token", judged.tokens)
    yield Tabled("alternatives", "Most likely tokens at each position", judged.alternatives)


SECTION = Section("masked_lm", ask=ask, show=show, query=lambda c: _request(c).to_query())
