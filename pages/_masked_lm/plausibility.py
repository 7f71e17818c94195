"""How plausible is each token of the text?"""

from __future__ import annotations

from typing import Any

import streamlit as st

from inspector.analyses.plausibility.figures import plausibility_strip
from inspector.analyses.plausibility.result import Plausibility
from inspector.results.checkpoint import Opened
from pages._masked_lm.inputs import Asked, Sentence
from pages._ui import parts, session

BY = {"alone": "token", "with the rest of its word": "word"}


COLUMNS = {
    "position": st.column_config.NumberColumn("position"),
    "token": st.column_config.TextColumn("token"),
    "probability": st.column_config.NumberColumn("probability", format="percent"),
    "rank": st.column_config.NumberColumn(
        "rank", format="localized", help="1: the likeliest token of the vocabulary here."
    ),
    "bits": st.column_config.NumberColumn(
        "surprisal, bits", format="%.2f", help="-log2 of the probability: 0 is certain."
    ),
    "best_token": st.column_config.TextColumn(
        "likeliest here", help="What the model would say in this place."
    ),
    "best_probability": st.column_config.NumberColumn("its probability", format="percent"),
}  # fmt: skip


def parameters(sentence: Sentence, asked: Asked) -> dict[str, Any]:
    """What the analysis "plausibility" is asked."""
    return {"text": sentence.text, "by": _chosen(), **asked.placement()}


def draw(checkpoint: Opened, sentence: Sentence, asked: Asked) -> Plausibility | None:
    """Mask each token in turn, and show what the model thinks of it."""
    by = st.segmented_control(
        "Mask each token", list(BY), default="alone", required=True, key="by",
        bind="query-params",
        help="Alone: the pieces of a word give each other away, so long words look more plausible "
        "than they are. With the rest of its word: a piece sees only what stands before it in its "
        "word (Kauf and Ivanova 2023).",
    )  # fmt: skip
    result: Plausibility | None = session.ask(
        "plausibility", text=sentence.text, by=BY[by], device=asked.device, dtype=asked.dtype
    )
    if result is None:
        return None
    parts.warnings(result.warnings)
    with st.container(horizontal=True):
        st.metric("Pseudo-log-likelihood", f"{result.pseudo_log_likelihood:.2f}",
                  help="Sum of the tokens' log probabilities, each judged with all others in "
                  "sight (Salazar et al. 2020). Nearer to zero: more plausible; longer texts "
                  "have lower ones.")  # fmt: skip
        st.metric("Pseudo-perplexity", f"{result.pseudo_perplexity:.2f}",
                  help="exp of the negative mean of these: as if the model chose each token among "
                  "so many equally likely ones. Comparable between lengths.")  # fmt: skip
        st.metric("Judged tokens", result.judged)
        st.metric("All passes", f"{result.milliseconds:.0f} ms")
    parts.chart(
        plausibility_strip(
            result.tokens,
            title=f"{checkpoint.name}: how surprising is each token?",
            subtitle=f"masked {by}; below each token its surprisal in bits",
            theme=session.theme(),
        ),
        alt="The text, each token coloured by its surprisal; the table below holds the numbers",
        key="plausibility",
    )
    judged = result.tokens[~result.tokens["special"]]
    st.dataframe(judged, hide_index=True, lazy=False, column_config=COLUMNS,
                 column_order=tuple(COLUMNS), alt="Probability, rank and surprisal of every token"
                 )  # fmt: skip
    parts.download(result.tokens, name=f"{checkpoint.name}-plausibility")
    return result


def command(sentence: Sentence, asked: Asked) -> tuple[str, ...]:
    """The same for the command line."""
    chosen = ["--by", _chosen()] if _chosen() != "token" else []
    return ("plausibility", f"--text={sentence.text}", *chosen, *asked.placement_options())


def _chosen() -> str:
    """The choice, also before its field is drawn."""
    by = st.session_state.get("by") or st.query_params.get("by", "")
    return BY.get(by, "token")
