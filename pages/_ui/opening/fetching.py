"""Models of the hub of which headers alone are here: how much is not, and the click that fetches it."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import streamlit as st

from inspector.results.checkpoint import Opened
from inspector.text import bytes_text, literal

WHOLE = "fetched whole"  # references that this session has asked for with their numbers
KEPT = "They go into the hub's cache on this machine, where transformers finds them."
HERE = "Headers only: {size} not fetched."


def is_wanted(checkpoint: Opened) -> bool:
    """Whether somebody has asked for the weights that are still on the hub."""
    return bool(checkpoint.on_hub_nbytes) and checkpoint.reference in st.session_state.get(WHOLE, ())


def forget() -> None:
    """Ask again before anything is fetched: it was stopped."""
    st.session_state.pop(WHOLE, None)


def draw(checkpoint: Opened, then: Callable[[str], None]) -> None:
    """Say in the sidebar what is here of a checkpoint, and offer the rest."""
    st.caption(HERE.format(size=bytes_text(checkpoint.on_hub_nbytes)))
    _offer(checkpoint, "sidebar", "", then)


def ask(sentence: str, asked: Iterable[Opened], verb: str, then: Callable[[str], None]) -> None:
    """Say why a question is not answered, and offer what it needs of each checkpoint that it is about."""
    st.info(literal(sentence), icon=":material/cloud_download:")
    needed = {each.reference: each for each in asked if each.on_hub_nbytes}
    for checkpoint in needed.values():
        _offer(checkpoint, verb, f" of {literal(checkpoint.name)}" if len(needed) > 1 else "", then)


def _offer(checkpoint: Opened, place: str, of: str, then: Callable[[str], None]) -> None:
    st.button(
        f"Fetch {bytes_text(checkpoint.on_hub_nbytes)}{of}",
        key=f"fetch {place} {checkpoint.reference}",
        icon=":material/download:",
        help=KEPT,
        on_click=_want,
        args=(checkpoint.reference, then),
    )


def _want(reference: str, then: Callable[[str], None]) -> None:
    st.session_state.setdefault(WHOLE, set()).add(reference)
    then(reference)
