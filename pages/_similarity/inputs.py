"""Inputs of the similarity page, all of them in the address bar."""

from __future__ import annotations

import streamlit as st

from inspector.analyses.overview.request import OverviewRequest
from inspector.analyses.overview.result import Overview
from inspector.analyses.similarity.request import DECLARED, SimilarityRequest
from inspector.analyses.similarity.words import EXAMPLES, NO_POOLING
from inspector.results.checkpoint import Opened
from inspector.text import literal
from pages._ui import inputs, options, session


def choose(checkpoint: Opened) -> SimilarityRequest:
    """Ask for the texts, and how they become vectors; the page ends here while nothing says that."""
    line, below = inputs.controls()
    with line:
        texts = options.ask(
            SimilarityRequest,
            "texts",
            default=EXAMPLES[:2],
            height=68,
            placeholder="One text a line",
            label_visibility="collapsed",
        )
        pooling = options.ask(SimilarityRequest, "pooling", width=190)
        with inputs.folded_options():
            prompt = options.ask(SimilarityRequest, "prompt")
            device, dtype = inputs.placement(below)
    overview: Overview = session.run(OverviewRequest())
    if pooling == DECLARED and not overview.pipeline:
        st.info(literal(NO_POOLING.format(name=checkpoint.name)), icon=":material/join_inner:")
        st.stop()
    return options.make(SimilarityRequest, texts=texts, pooling=pooling, prompt=prompt, device=device, dtype=dtype)
