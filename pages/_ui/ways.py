"""The ways to run a model, side by side."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from inspector.results.placement import Placement, Way
from inspector.text import bytes_text, literal
from pages._ui import parts

HOW = {"spread": "offloaded to memory and disk", "stream": "streamed one block at a time"}


def say(plan: Placement | None) -> None:
    """Say how long a streamed pass takes."""
    for way in plan.ways if plan else ():
        if way.seconds is not None:
            st.caption(literal(f"A streamed pass takes about {_time(way.seconds)}, not counting the head. {way.note}"))
        elif way.note:
            st.caption(literal(f"{_how(way).capitalize()}: {way.note}"))


def draw(plan: Placement | None) -> None:
    """List every way."""
    if plan:
        parts.table(pd.DataFrame([_row(way) for way in plan.ways]), alt="Ways to run the model")


def _row(way: Way) -> dict[str, str]:
    return {
        "way": _how(way),
        "device": way.device,
        "dtype": way.dtype or "–",
        "weights in memory": bytes_text(way.memory_nbytes),
        "read per pass": bytes_text(way.disk_nbytes),
        "fits": "yes" if way.fits else "no",
        "time per pass": "not estimated" if way.seconds is None else _time(way.seconds),
    }


def _how(way: Way) -> str:
    return HOW.get(way.device, f"entirely on {way.device}")


def _time(seconds: float) -> str:
    return f"{seconds:,.0f} s" if seconds >= 1 else "less than a second"
