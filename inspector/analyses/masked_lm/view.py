"""What the masked-LM head predicts."""

from __future__ import annotations

from collections.abc import Iterator

from inspector.analyses.masked_lm import words
from inspector.analyses.masked_lm.frames import joint_answers
from inspector.analyses.masked_lm.request import PredictRequest
from inspector.analyses.masked_lm.result import Mask, Prediction
from inspector.analyses.plausibility.request import PlausibilityRequest
from inspector.plotting.predictions import topk_bars
from inspector.report.content import Context, Section
from inspector.request import Request
from inspector.text import percent_text
from inspector.view.blocks import Bars, Block, Figure, Grid, Sentence, Table, share_bars
from inspector.view.view import Headline, Picture, Tab, View, Why

BARS = 30  # tokens of a mask that are drawn
SEEN = ("word", "probability", "log_probability", "tokens")  # of the words compared


def view(prediction: Prediction, request: PredictRequest, *, name: str) -> View:
    """Bars for each mask, and what fills all of them together."""
    first, *others = (_bars(prediction, number, name) for number in range(len(prediction.masks)))
    return View(
        Headline(words.headline(prediction)),
        picture=Picture(first, _text(prediction)),
        beside=(Sentence(f"The text: {prediction.text}", "text"), *others, *_together(prediction, request)),
        more="-k N lists more tokens; --json prints their logits.",
        tabs=(Tab("Answers", lambda: _answers(prediction)),),
        why=(Why(words.WHY_HOW, words.HOW),),
    )


def _bars(prediction: Prediction, place: int, name: str) -> Figure:
    mask: Mask = prediction.masks[place]
    several = len(prediction.masks) > 1
    where = f"mask {place + 1} at position {mask.position}" if several else "the mask"
    return Figure(
        f"mask-{place + 1}",
        lambda theme: topk_bars(
            mask.predictions.head(BARS),
            title=f"What {name} predicts for {where}",
            subtitle=words.OTHERS_OPEN if several else "",
            theme=theme,
        ),
        f"The most likely tokens of {where}, as bars",
    )


def _text(prediction: Prediction) -> Bars | Grid:
    """The bars of one mask as text; of several masks what they predict, side by side."""
    answers = [
        [(row["token"], row["probability"]) for row in mask.predictions.to_dict("records")] for mask in prediction.masks
    ]
    if len(answers) == 1:
        return share_bars([token for token, _ in answers[0]], [share for _, share in answers[0]])
    ranks = range(max(map(len, answers)))
    table = [[each[rank] if rank < len(each) else ("", None) for each in answers] for rank in ranks]
    return Grid(
        tuple(str(rank + 1) for rank in ranks),
        tuple(f"mask {number}" for number in range(1, len(answers) + 1)),
        tuple(
            tuple(f"{token} {percent_text(share)}" if share is not None else "" for token, share in row)
            for row in table
        ),
        tuple(tuple(share for _, share in row) for row in table),
        "probability",
    )


def _together(prediction: Prediction, request: PredictRequest) -> Iterator[Block]:
    if len(prediction.masks) > 1 and prediction.joint:
        yield Sentence(words.joint(request.order))
        yield Table("joint", "All masks together", joint_answers(prediction), meanings=words.JOINT)


def _answers(prediction: Prediction) -> Iterator[Block]:
    for number, mask in enumerate(prediction.masks, start=1):
        yield Table(f"mask-{number}", f"Most likely tokens at position {mask.position}", mask.predictions)
        if mask.words is not None:
            yield Table(
                f"words-{number}",
                f"The words compared at position {mask.position}",
                mask.words,
                seen=SEEN,
                meanings=words.WORDS,
            )


def _ask(context: Context) -> tuple[Request, ...]:
    """The masks of the text, if it has any, and the text itself; of a causal model the text alone."""
    setting = context.setting
    judge = PlausibilityRequest(text=setting.text, device=setting.device, dtype=setting.dtype)
    return (_asked(context), judge) if _has_mask(context) else (judge,)


def _has_mask(context: Context) -> bool:
    return not context.overview.is_causal and bool(context.mask and context.mask in context.setting.text)


def _asked(context: Context) -> PredictRequest:
    setting = context.setting
    return PredictRequest(text=setting.text, device=setting.device, dtype=setting.dtype)


def _note(context: Context) -> str:
    """Why no mask is predicted."""
    return "" if context.overview.is_causal or _has_mask(context) else words.NO_MASK


SECTION = Section("masked_lm", ask=_ask, query=lambda context: _asked(context).to_query(), note=_note)
