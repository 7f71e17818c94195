"""Two sentences with one mask each, over the whole vocabulary."""

from __future__ import annotations

import streamlit as st

from inspector.analyses.contrast.figures import figure
from inspector.analyses.contrast.request import ContrastRequest
from inspector.analyses.contrast.result import Contrast
from inspector.analyses.masked_lm.request import PredictRequest
from inspector.analyses.masked_lm.result import Prediction
from inspector.results.checkpoint import Opened
from inspector.view.blocks import Figure
from pages._ui import options, parts, session
from pages._ui.answer.rendering import PageView

KEPT = "masked second"  # the field's text, for coming back
SUGGESTED = "masked suggested"  # what was put into it last
# For the demo's examples: the same sentence with another word or two.
SECONDS = {
    "the capital and largest city of [MASK].": "the capital of the ancient kingdom of [MASK].",
    "the [MASK] of england.": "the [MASK] of germany.",
    "he drank a glass of [MASK].": "he ate a piece of [MASK].",
    "the second month of the [MASK].": "the second day of the [MASK].",
    "a chemical [MASK] that is found in water.": "a small [MASK] that is found in water.",
    "a member of the [MASK] party.": "a member of the [MASK] family.",
}


def draw(checkpoint: Opened, prediction: Prediction | None, asked: PredictRequest) -> ContrastRequest | None:
    """Compare the text with a second one; return the request where there is an answer."""
    first = prediction.text if prediction else ""
    if first:
        _suggest(first)
    second = options.ask(ContrastRequest, "second", type="search", live=True)
    st.session_state[KEPT] = second
    if prediction is None or len(prediction.masks) != 1:
        count = len(prediction.masks) if prediction else 0
        st.info(
            f"The sentence above has {count or 'no'} masks. Leave exactly one to compare it with the mask of the "
            "second sentence.",
            icon=":material/ads_click:",
        )
        return None
    if second.strip() in {"", first.strip()}:
        st.info("Both sentences are the same: change a word or two in the second one.", icon=":material/edit:")
        return None
    request = ContrastRequest(first=first, second=second, device=asked.device, dtype=asked.dtype)
    result: Contrast | None = session.ask(request)
    if result is None:
        return None
    parts.warnings(result.warnings)
    pins = result.tokens["token_id"][result.tokens["token"].isin(asked.targets)].tolist()

    def draw_pinned(drawn: Figure) -> None:
        pinned = parts.drawn(lambda theme: figure(result, name=checkpoint.name, pins=pins, theme=theme))
        parts.picture(pinned, alt=drawn.alt, key=drawn.name)

    PageView.of(result, request, name=checkpoint.name, instead={(Figure, "contrast"): draw_pinned}).show()
    return request


def _suggest(first: str) -> None:
    """Begin with an example's counterpart, or the first sentence; a person's own words stay."""
    state = st.session_state
    suggested = SECONDS.get(first, first)
    current = state.get("second", state.get(KEPT))
    if current is None and not st.query_params.get("second"):
        state["second"] = suggested
    elif current is not None:
        state["second"] = suggested if current == state.get(SUGGESTED) else current
    state[SUGGESTED] = suggested
