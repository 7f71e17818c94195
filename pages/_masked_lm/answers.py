"""Answers for each mask, for words of several pieces, and for all masks together."""

from __future__ import annotations

import streamlit as st

from inspector.analyses.masked_lm.request import PredictRequest
from inspector.analyses.masked_lm.result import Mask, Prediction
from inspector.results.checkpoint import Opened
from inspector.text import percent_text
from inspector.view.blocks import Figure, Sentence
from pages._ui import parts
from pages._ui.answer.rendering import PageView

DRAWN = 6  # masks with bars of their own


def draw(checkpoint: Opened, request: PredictRequest, prediction: Prediction) -> None:
    """Draw the bars of the masks side by side, and below them what holds for several."""
    masks = len(prediction.masks)
    elsewhere = [(Sentence, "text"), *((Figure, f"mask-{number}") for number in range(2, masks + 1))]
    page = PageView.of(prediction, request, name=checkpoint.name, instead=dict.fromkeys(elsewhere, lambda _: True))
    page.headline()
    with st.container(key="picture"):
        bars = [each for each in page.view.figures if each.name.startswith("mask-")]
        for place, each in zip(parts.grid(min(masks, DRAWN), wide=2), bars, strict=False):
            with place:
                parts.chart(parts.drawn(each.draw), alt=each.alt, key=each.name)
        if masks > DRAWN:
            st.caption(f"The charts show the first {DRAWN} of {masks} masks; the tables list all of them.")
    page.beside()
    page.below()


def best(mask: Mask) -> str:
    """The most likely token of a mask with its probability: "france 41.3 %"."""
    first = mask.predictions.iloc[0]
    return f"{first['token']} {percent_text(first['probability'])}"
