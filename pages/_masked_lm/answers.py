"""Answers for each mask, for words of several pieces, and for all masks together."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import streamlit as st

from inspector.analyses.masked_lm import words
from inspector.analyses.masked_lm.frames import joint_answers
from inspector.analyses.masked_lm.request import PredictRequest
from inspector.analyses.masked_lm.result import Mask, Prediction
from inspector.plotting.predictions import topk_bars
from inspector.results.checkpoint import Opened
from inspector.text import literal, percent_text, plural
from pages._masked_lm.inputs import Sentence
from pages._ui import parts, session, table_files

DRAWN = 6  # masks with bars of their own
BARS = 30
FEW, HEIGHT = 10, 315  # bars that are drawn in this many pixels
JOINT_COLUMNS = {
    name: st.column_config.NumberColumn(label, format=form, help=words.JOINT[name])
    for name, label, form in (
        ("probability", "joint probability", "percent"),
        ("log_probability", "joint log", "%.3f"),
        ("independent", "independent log", "%.3f"),
        ("pseudo_log_likelihood", "pseudo-log-likelihood", "%.3f"),
    )
}
WORD_COLUMNS = {
    "tokens": st.column_config.TextColumn("tokens", help=words.WORDS["tokens"]),
    "probability": st.column_config.NumberColumn("probability", format="percent", help=words.WORDS["probability"]),
}


def draw(checkpoint: Opened, sentence: Sentence, request: PredictRequest, prediction: Prediction) -> None:
    """Draw bars and a table for each mask, and what holds for several."""
    masks = prediction.masks
    for column, mask in zip(parts.grid(len(masks[:DRAWN]), wide=2), masks, strict=False):
        with column:
            _mask(checkpoint, sentence, mask, several=len(masks) > 1)
    if len(masks) > DRAWN:
        st.caption(f"The charts show the first {DRAWN} of {len(masks)} masks; the table lists all of them.")
    if len(masks) > 1:
        every = together(masks)
        with st.expander(f"Table of all {len(masks)} masks", icon=":material/table:"):
            parts.table(every, alt="Most likely tokens of every mask")
            table_files.offer(every, name=f"{checkpoint.name}-masks")
        _joint(checkpoint, request, prediction)


def best(mask: Mask) -> str:
    """The most likely token of a mask with its probability: "france 41.3 %"."""
    first = mask.predictions.iloc[0]
    return f"{first['token']} {percent_text(first['probability'])}"


def together(masks: Sequence[Mask]) -> pd.DataFrame:
    """The predictions of every mask: position, rank, token, token_id, probability, logit."""
    frames = [
        mask.predictions.assign(position=mask.position, rank=range(1, len(mask.predictions) + 1)) for mask in masks
    ]
    every = pd.concat(frames, ignore_index=True)
    return every.loc[:, ["position", "rank", "token", "token_id", "probability", "logit"]]


def _mask(checkpoint: Opened, sentence: Sentence, mask: Mask, *, several: bool) -> None:
    hidden = next(
        (piece.token for piece in sentence.pieces if piece.position == mask.position and piece.kind == "word"), None
    )
    number = f"mask at position {mask.position}"
    said = [words.in_place(hidden)] if hidden else []
    said += [words.OTHERS_OPEN] if several else []
    parts.chart(
        topk_bars(
            mask.predictions.head(BARS),
            title=f"{checkpoint.name}, {number}",
            subtitle="; ".join(said),
            theme=session.theme(),
        ),
        alt=f"Most likely tokens for the {number}, as bars; the table below lists the same",
        key=f"bars {mask.position}",
        height=HEIGHT if len(mask.predictions) <= FEW else None,
    )
    first = mask.predictions.iloc[0]
    with st.expander(f"Table: {literal(first['token'])} first, {percent_text(first['probability'])}"):
        parts.table(mask.predictions, alt=f"Most likely tokens for the {number}")
        table_files.offer(mask.predictions, name=f"{checkpoint.name}-mask-{mask.position}")
    if mask.words is not None and max(mask.words["pieces"].tolist(), default=0) > 1:
        _words(checkpoint, mask, mask.words)


def _words(checkpoint: Opened, mask: Mask, found: pd.DataFrame) -> None:
    """Words of several pieces cannot stand among single tokens: they fill more than one mask."""
    st.markdown(f"**Whole words, mask at position {mask.position}**")
    parts.table(
        found,
        columns=WORD_COLUMNS,
        order=("word", "probability", "log_probability", "tokens"),
        alt=f"Whole words for the mask at position {mask.position}",
    )
    table_files.offer(found, name=f"{checkpoint.name}-words-{mask.position}")


def _joint(checkpoint: Opened, request: PredictRequest, prediction: Prediction) -> None:
    if not prediction.joint:
        return
    st.header("All masks together", anchor=False)
    st.caption(f"{literal(words.joint(request.order))} Choose the other order under Options.")
    frame = joint_answers(prediction)
    parts.table(frame, columns=JOINT_COLUMNS, alt=f"{plural(len(frame), 'joint answer')}, most likely first")
    table_files.offer(frame, name=f"{checkpoint.name}-joint")
