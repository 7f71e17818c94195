"""How a mask's answer is computed."""

from __future__ import annotations

import streamlit as st

from inspector.analyses.masked_lm.result import Prediction

HOW = (
    "The text goes through the encoder once. At each mask the head turns the hidden state into one "
    "logit a token (dense layer, activation, LayerNorm, product with the word embeddings, bias), "
    "and a softmax over the **whole** vocabulary makes probabilities, also where only some words "
    "are compared. The model saw these tokens:"
)


def explain(prediction: Prediction) -> None:
    """Say how, and what the model saw."""
    with st.expander("How it is computed"):
        st.markdown(HOW)
        st.code(" ".join(prediction.tokens), language=None, wrap_lines=True)
