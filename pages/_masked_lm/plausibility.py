"""How plausible is each token of the text?"""

from __future__ import annotations

import streamlit as st

from inspector.analyses.masked_lm.request import PredictRequest
from inspector.analyses.plausibility import words
from inspector.analyses.plausibility.request import PlausibilityRequest
from inspector.analyses.plausibility.result import Plausibility
from inspector.results.checkpoint import Opened
from pages._ui import inputs, options, parts, session
from pages._ui.answer.rendering import PageView


def choose(asked: PredictRequest) -> PlausibilityRequest:
    """Ask what is masked at a time; text and placement are those of the predictions."""
    return PlausibilityRequest(
        text=asked.text, by=options.ask(PlausibilityRequest, "by", width=180), device=asked.device, dtype=asked.dtype
    )


def draw(checkpoint: Opened, request: PlausibilityRequest) -> Plausibility | None:
    """Judge each token of the text."""
    result: Plausibility | None = session.ask(request)
    if result is not None:
        parts.warnings(result.warnings)
        PageView.of(result, request, name=checkpoint.name).show()
    return result


def draw_causal(checkpoint: Opened) -> None:
    """Draw the whole page for a causal model, which has no masks to fill."""
    st.caption(f":material/info: {words.CAUSAL}")
    line, below = inputs.controls()
    with line:
        text = inputs.text(checkpoint, slug="masked_lm")
        with inputs.folded_options():
            k = options.ask(PlausibilityRequest, "k")
            device, dtype = inputs.placement(below)
    request = options.make(PlausibilityRequest, text=text, k=k, device=device, dtype=dtype)
    if draw(checkpoint, request) is not None:
        parts.elsewhere(checkpoint, request)
