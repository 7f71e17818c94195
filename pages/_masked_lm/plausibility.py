"""How plausible is each token of the text?"""

from __future__ import annotations

import streamlit as st

from inspector.analyses.masked_lm.request import PredictRequest
from inspector.analyses.plausibility.figures import figure
from inspector.analyses.plausibility.request import PlausibilityRequest
from inspector.analyses.plausibility.result import Plausibility
from inspector.analyses.plausibility.words import alternatives, totals
from inspector.results.checkpoint import Opened
from inspector.text import literal
from pages._ui import inputs, options, parts, session, table_files

CAUSAL = (
    "This model is causal: it predicts the next token and cannot fill masks. The page therefore shows how plausible "
    "each token of a text is, given the tokens before it."
)
LISTED = 3  # alternatives of a token in the table

COLUMNS = {
    "position": st.column_config.NumberColumn("position"),
    "token": st.column_config.TextColumn("token"),
    "probability": st.column_config.NumberColumn("probability", format="percent"),
    "rank": st.column_config.NumberColumn(
        "rank", format="localized", help="1 is the most likely token of the vocabulary at this position."
    ),
    "bits": st.column_config.NumberColumn(
        "surprisal, bits", format="%.2f", help="-log2 of the probability; 0 is certain."
    ),
    "log_probability": st.column_config.NumberColumn("log probability", format="%.3f", help="Natural logarithm."),
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
        _totals(result)
        st.metric("Judged tokens", result.judged)
        st.metric("Forward pass" if result.method == "causal" else "All passes", f"{result.milliseconds:.0f} ms")
    parts.chart(
        figure(result, name=checkpoint.name, theme=session.theme()),
        alt="The text, each token colored by its surprisal; the table below lists the numbers",
        key="plausibility",
    )
    st.markdown(literal(totals(result)))
    shown = result.tokens[result.tokens["judged"]]
    instead = alternatives(result, count=LISTED)
    shown = shown.assign(alternatives=[instead.get(position, "") for position in shown["position"]])
    parts.table(shown, columns=COLUMNS, order=tuple(COLUMNS), alt="Probability, rank and surprisal of every token")
    with st.container(horizontal=True):
        table_files.offer(result.tokens, name=f"{checkpoint.name}-plausibility", label="Tokens")
        table_files.offer(result.alternatives, name=f"{checkpoint.name}-alternatives", label="Most likely tokens")
    return result


def _totals(result: Plausibility) -> None:
    if result.log_likelihood is not None and result.perplexity is not None:
        st.metric(
            "Log-likelihood",
            f"{result.log_likelihood:.2f}",
            help="Sum of the judged tokens' log probabilities (natural logarithm), each predicted from the tokens "
            "before it. Closer to zero is more plausible; longer texts have lower values.",
        )
        st.metric(
            "Perplexity",
            f"{result.perplexity:.2f}",
            help="exp of the mean loss: the model is as uncertain as if it chose each token from this many equally "
            "likely ones. Comparable between texts of different lengths, and between models with the same tokenizer.",
        )
        return
    st.metric(
        "Pseudo-log-likelihood",
        f"{result.pseudo_log_likelihood:.2f}",
        help="Sum of the tokens' log probabilities, each judged with all others visible (Salazar et al. 2020). Closer "
        "to zero is more plausible; longer texts have lower values.",
    )
    st.metric(
        "Pseudo-perplexity",
        f"{result.pseudo_perplexity:.2f}",
        help="exp of the negative mean of these log probabilities: the model is as uncertain as if it chose each "
        "token from this many equally likely ones. Comparable between texts of different lengths.",
    )


def draw_causal(checkpoint: Opened) -> None:
    """Draw the whole page for a causal model, which has no masks to fill."""
    st.info(CAUSAL, icon=":material/info:")
    text = inputs.text(checkpoint, slug="masked_lm")
    more, below = st.popover("Options", icon=":material/tune:"), st.container()
    with more:
        k = options.ask(PlausibilityRequest, "k")
        device, dtype = inputs.placement(below)
    request = options.make(PlausibilityRequest, text=text, k=k, device=device, dtype=dtype)
    if draw(checkpoint, request) is not None:
        parts.elsewhere(checkpoint, request)
