"""How plausible is each token of the text?"""

from __future__ import annotations

import streamlit as st

from inspector.analyses.masked_lm.request import PredictRequest
from inspector.analyses.plausibility import words
from inspector.analyses.plausibility.figures import figure
from inspector.analyses.plausibility.request import PlausibilityRequest
from inspector.analyses.plausibility.result import Plausibility
from inspector.results.checkpoint import Opened
from inspector.text import literal
from pages._ui import inputs, options, parts, session, table_files

LISTED = 3  # alternatives of a token in the table

COLUMNS = {
    "position": st.column_config.NumberColumn("position"),
    "token": st.column_config.TextColumn("token"),
    "probability": st.column_config.NumberColumn("probability", format="percent"),
    "rank": st.column_config.NumberColumn("rank", format="localized", help=words.COLUMNS["rank"]),
    "bits": st.column_config.NumberColumn("surprisal, bits", format="%.2f", help=words.COLUMNS["bits"]),
    "log_probability": st.column_config.NumberColumn(
        "log probability", format="%.3f", help=words.COLUMNS["log_probability"]
    ),
    "alternatives": st.column_config.TextColumn(
        "most likely here", width="large", help="The model's most likely tokens here; the downloaded file has more."
    ),
}


def choose(asked: PredictRequest) -> PlausibilityRequest:
    """Ask what is masked at a time; text and placement are those of the predictions."""
    return PlausibilityRequest(
        text=asked.text, by=options.ask(PlausibilityRequest, "by", width=180), device=asked.device, dtype=asked.dtype
    )


def draw(checkpoint: Opened, request: PlausibilityRequest) -> Plausibility | None:
    """Judge each token of the text, and show the sentence, the totals and the numbers."""
    result: Plausibility | None = session.ask(request)
    if result is None:
        return None
    parts.warnings(result.warnings)
    with st.container(horizontal=True):
        for measure, (value, meaning) in words.measures(result).items():
            st.metric(measure, f"{value:.2f}", help=meaning)
        st.metric("Judged tokens", result.judged)
        st.metric("Forward pass" if result.method == "causal" else "All passes", f"{result.milliseconds:.0f} ms")
    parts.chart(
        figure(result, name=checkpoint.name, theme=session.theme()),
        alt="The text, each token colored by its surprisal; the table below lists the numbers",
        key="plausibility",
    )
    st.markdown(literal(words.totals(result)))
    shown = result.tokens[result.tokens["judged"]]
    instead = words.alternatives(result, count=LISTED)
    shown = shown.assign(alternatives=[instead.get(position, "") for position in shown["position"]])
    parts.table(shown, columns=COLUMNS, order=tuple(COLUMNS), alt="Probability, rank and surprisal of every token")
    with st.container(horizontal=True):
        table_files.offer(result.tokens, name=f"{checkpoint.name}-plausibility", label="Tokens")
        table_files.offer(result.alternatives, name=f"{checkpoint.name}-alternatives", label="Most likely tokens")
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
