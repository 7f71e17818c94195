"""Inputs of the lens page, all of them in the address bar."""

from __future__ import annotations

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from inspector.analyses.ladder.request import LadderRequest
from inspector.analyses.lens.request import LensRequest
from inspector.analyses.overview.request import OverviewRequest
from inspector.analyses.overview.result import Overview
from inspector.results.checkpoint import Opened
from pages._ui import inputs, options, session

ENCODER_DECODERS = {"bart", "blenderbot", "m2m_100", "marian", "mbart", "mt5", "pegasus", "t5", "umt5"}
SIZES = ("automatic", "with tokens", "all in one view")


def choose(checkpoint: Opened) -> tuple[LensRequest, DeltaGenerator]:
    """Ask for the text, what the decoder has written, and the tokens to follow.

    Returns:
        The request, and a place beside the text for how its answer is shown.
    """
    line, below = inputs.controls()
    with line:
        text = inputs.text(checkpoint, slug="lens")
        decoder_text = options.ask(LensRequest, "decoder_text", width=180) if _has_decoder() else ""
        shown = st.container(horizontal=True, vertical_alignment="bottom", width="content")
        with inputs.folded_options():
            pins = options.ask(LensRequest, "pins", placeholder="paris, london, id 37")
            st.selectbox(
                "Cell text",
                SIZES,
                key="cells",
                bind="query-params",
                help="With tokens: wide cells that scroll. All in one view: point at a cell to see its tokens.",
            )
            k = options.ask(LensRequest, "k")
            device, dtype = inputs.placement(below)
    request = options.make(
        LensRequest, text=text, decoder_text=decoder_text, pins=pins, k=k, device=device, dtype=dtype
    )
    return request, shown


def ladder(request: LensRequest, *, layer: int, position: int) -> LadderRequest:
    """What the ladder is asked about one cell of the lens."""
    shared = request.parameters()
    del shared["layers"]
    return LadderRequest(**shared, layer=layer, position=position)


def _has_decoder() -> bool:
    overview: Overview = session.run(OverviewRequest())
    return bool(overview.config.get("is_encoder_decoder", overview.model_type in ENCODER_DECODERS))
