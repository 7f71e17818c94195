"""How plausible is each token of the text?"""

from __future__ import annotations

import streamlit as st

from inspector.analyses.masked_lm.request import PredictRequest
from inspector.analyses.plausibility.figures import plausibility_strip
from inspector.analyses.plausibility.request import PlausibilityRequest
from inspector.analyses.plausibility.result import Plausibility
from inspector.results.checkpoint import Opened
from pages._ui import options, parts, session

MASKED = {"token": "alone", "word": "with the rest of its word"}
COLUMNS = {
    "position": st.column_config.NumberColumn("position"),
    "token": st.column_config.TextColumn("token"),
    "probability": st.column_config.NumberColumn("probability", format="percent"),
    "rank": st.column_config.NumberColumn(
        "rank", format="localized", help="1: the most likely token of the vocabulary here."
    ),
    "bits": st.column_config.NumberColumn(
        "surprisal, bits", format="%.2f", help="-log2 of the probability: 0 is certain."
    ),
    "best_token": st.column_config.TextColumn("most likely here", help="What the model predicts here."),
    "best_probability": st.column_config.NumberColumn("its probability", format="percent"),
}


def choose(asked: PredictRequest) -> PlausibilityRequest:
    """Ask what is masked at a time; text and placement are those of the predictions."""
    return PlausibilityRequest(
        text=asked.text, by=options.ask(PlausibilityRequest, "by", width=180), device=asked.device, dtype=asked.dtype
    )


def draw(checkpoint: Opened, request: PlausibilityRequest) -> Plausibility | None:
    """Mask each token in turn, and show what the model thinks of it."""
    result: Plausibility | None = session.ask(request)
    if result is None:
        return None
    parts.warnings(result.warnings)
    with st.container(horizontal=True):
        st.metric(
            "Pseudo-log-likelihood",
            f"{result.pseudo_log_likelihood:.2f}",
            help="Sum of the tokens' log probabilities, each judged with all others in "
            "sight (Salazar et al. 2020). Nearer to zero: more plausible; longer texts have lower ones.",
        )
        st.metric(
            "Pseudo-perplexity",
            f"{result.pseudo_perplexity:.2f}",
            help="exp of the negative mean of these: as if the model chose each token among "
            "so many equally likely ones. Comparable between lengths.",
        )
        st.metric("Judged tokens", result.judged)
        st.metric("All passes", f"{result.milliseconds:.0f} ms")
    parts.chart(
        plausibility_strip(
            result.tokens,
            title=f"{checkpoint.name}: how surprising is each token?",
            subtitle=f"each token masked {MASKED[request.by]}; below it, its surprisal in bits",
            theme=session.theme(),
        ),
        alt="The text, each token colored by its surprisal; the table below holds the numbers",
        key="plausibility",
    )
    judged = result.tokens[~result.tokens["special"]]
    st.dataframe(
        judged,
        hide_index=True,
        lazy=False,
        column_config=COLUMNS,
        column_order=tuple(COLUMNS),
        alt="Probability, rank and surprisal of every token",
    )
    parts.download(result.tokens, name=f"{checkpoint.name}-plausibility")
    return result
