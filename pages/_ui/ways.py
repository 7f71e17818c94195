"""The ways to run a model, side by side."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from inspector.analyses.placement import words
from inspector.results.placement import Placement, PlacementOption
from inspector.text import bytes_text, literal
from pages._ui import parts


def say(plan: Placement | None) -> None:
    """Say how long a streamed pass takes."""
    for way in plan.ways if plan else ():
        if said := words.pass_time(way):
            st.caption(literal(said))


def draw(plan: Placement | None) -> None:
    """List every way."""
    if plan:
        parts.table(pd.DataFrame([_row(way) for way in plan.ways]), alt="Ways to run the model")


def _row(way: PlacementOption) -> dict[str, str]:
    return {
        "way": words.how(way),
        "device": way.device,
        "dtype": way.dtype or "–",
        "weights in memory": bytes_text(way.memory_nbytes),
        "read per pass": bytes_text(way.disk_nbytes),
        "fits": "yes" if way.fits else "no",
        "time per pass": "not estimated" if way.seconds is None else words.duration(way.seconds),
    }
