"""One cell of the lens: which one is looked at, and what every rung says there."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from inspector.figures.text import percent_text
from inspector.results import Lens

WHY = (
    "The dot product h·e = |h||e| cos ranks as the cosine does only if all rows e are equally "
    "long: frequent and rare tokens differ in norm. A masked-LM head does not compare the hidden "
    "state itself with the embeddings: it goes through a dense layer, an activation and a "
    "LayerNorm first, and a bias for each token is added. On inner layers the head is applied "
    "early (the *logit lens*, nostalgebraist 2020): it was trained for the last layer alone, so "
    "early answers are a reading, not a prediction."
)


def choose(lens: Lens, clicked: list[int] | None, *, start: int) -> tuple[int, int]:
    """The cell to look at: chosen by hand, or the one that was clicked last.

    Args:
        lens: What there is to choose from.
        clicked: [layer, position] of the chart's selection.
        start: Position to begin with.

    Returns:
        Layer and position; at first the last layer.
    """
    state = st.session_state
    last = len(lens.layers) - 1
    if clicked and clicked != state.get("lens clicked"):
        state["layer"], state["position"] = clicked
    state["lens clicked"] = clicked
    for key, largest in (("layer", last), ("position", len(lens.tokens) - 1)):
        if state.get(key, 0) > largest:  # from a longer text or a deeper model
            state[key] = largest
    with st.container(horizontal=True):
        layer = st.number_input("Layer", 0, last, last, key="layer", bind="query-params",
                                help="0 is the embeddings")  # fmt: skip
        position = st.number_input("Position", 0, len(lens.tokens) - 1, start, key="position",
                                   bind="query-params")  # fmt: skip
    return int(layer), int(position)


def interesting(lens: Lens, mask: str | None) -> int:
    """The position to look at first: the first mask, else the last one."""
    return lens.tokens.index(mask) if mask in lens.tokens else len(lens.tokens) - 1


def ladder(lens: Lens, layer: int, position: int) -> pd.DataFrame:
    """The best tokens of one cell, all rungs side by side.

    Returns:
        rank, and for each rung its tokens and what it gives them: a probability, or the cosine.
    """
    cells = lens.cells
    here = pd.DataFrame(cells[(cells["layer"] == layer) & (cells["position"] == position)])
    columns: dict[str, list] = {}
    for rung in lens.rungs:
        best = pd.DataFrame(here[here["rung"] == rung]).sort_values("rank")
        columns[rung] = best["token"].tolist()
        if rung == "cosine":
            columns["cosine: value"] = [f"{score:.3f}" for score in best["score"]]
        else:
            columns[f"{rung}: share"] = [percent_text(share) for share in best["probability"]]
    return pd.DataFrame({"rank": range(1, len(columns[lens.rungs[0]]) + 1), **columns})
