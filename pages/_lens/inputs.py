"""What a person chooses on the lens page; all of it stands in the address bar."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import streamlit as st

from inspector.analyses.overview.result import Overview
from inspector.results.checkpoint import Opened
from pages._ui import inputs, session

MOST_PINS = 8
ENCODER_DECODERS = {"bart", "blenderbot", "m2m_100", "marian", "mbart", "mt5", "pegasus", "t5",
                    "umt5"}  # fmt: skip


@dataclass(frozen=True, slots=True)
class LensChoice:
    """What the lens reads, and which tokens it follows."""

    text: str
    decoder_text: str
    pins: tuple[str, ...]
    k: int
    device: str
    dtype: str

    def parameters(self) -> dict[str, Any]:
        """Parameters of the analyses "lens" and "ladder"."""
        return {
            "text": self.text, "k": self.k, "pins": self.pins, "decoder_text": self.decoder_text,
            "device": self.device, "dtype": self.dtype,
        }  # fmt: skip

    def options(self) -> list[str]:
        """The same for the command line."""
        decoder = [f"--decoder-text={self.decoder_text}"] if self.decoder_text else []
        pins = [f"--pin={pin}" for pin in self.pins]
        return [f"--text={self.text}", *decoder, "-k", str(self.k), *pins,
                *inputs.placement_options(self.device, self.dtype)]  # fmt: skip


def choose(checkpoint: Opened) -> LensChoice:
    """Ask for the text, what the decoder has written, and the tokens to follow."""
    text = inputs.text(checkpoint, slug="lens")
    decoder_text = ""
    if _has_decoder():
        decoder_text = st.text_input("Decoder text", key="decoder", bind="query-params",
                                     help="What the decoder has written so far; the positions "
                                     "below are the decoder's.")  # fmt: skip
    pins = st.text_input("Pinned tokens", key="pins", bind="query-params",
                         placeholder="paris, london, id 37",
                         help=f"Up to {MOST_PINS} tokens, comma-separated, whose rank is followed "
                         "everywhere.")  # fmt: skip
    with st.expander("Options", icon=":material/tune:"), st.container(horizontal=True):
        k = int(st.number_input("Tokens a cell", 1, 100, 5, key="top", bind="query-params"))
        device, dtype = inputs.placement()
    wanted = dict.fromkeys(pin.strip() for pin in pins.split(",") if pin.strip())
    return LensChoice(text, decoder_text, tuple(wanted), k, device, dtype)


def _has_decoder() -> bool:
    overview: Overview = session.run("overview")
    return bool(overview.config.get("is_encoder_decoder", overview.model_type in ENCODER_DECODERS))
