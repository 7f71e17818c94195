"""The map of the vocabulary: which one can be shown, and how it is drawn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from inspector.analyses.embeddings.figures import pad_norm_curve
from inspector.analyses.embeddings.result import Embeddings
from inspector.analyses.vocabulary_map import component as packing
from inspector.analyses.vocabulary_map import words
from inspector.analyses.vocabulary_map.frames import side_by_side
from inspector.analyses.vocabulary_map.request import UMAP_LEARN, ProjectRequest
from inspector.analyses.vocabulary_map.result import Projection
from inspector.demo import DEMOS
from inspector.report.labeling import readable
from inspector.results.checkpoint import Opened
from pages._embeddings import inputs
from pages._embeddings.vocabulary_map import vocabulary_map
from pages._ui import parts, provenance, session

HEIGHT = 435  # pixels: with legend and tools it fits a screen
CHOSEN = "chosen tokens"  # fingerprint and what the lasso holds, as the browser sent it
SIDE_BY_SIDE = {"judged": "judged rows", "found": "true neighbors found"}


def show(
    projection: Projection,
    points: pd.DataFrame,
    result: Embeddings,
    *,
    choice: ProjectRequest,
    color: str,
    checkpoint: Opened,
    selected: int | None,
    found: Sequence[int],
    neighbors: Sequence[int],
) -> None:
    """Draw a map.

    Args:
        color: Column of the points that the colors show.
        found: Token ids that the search found.
        neighbors: Token ids of the selected token's true neighbors.
    """
    title = f"{words.made_by(projection)} of {checkpoint.name}, {projection.dimensions}-D"
    key = (checkpoint.fingerprint, "project", repr(choice.parameters()))
    packed = session.kept(key, lambda: packing.pack(points))
    axes = _axes(projection)
    state = packing.state(
        packed.digest,
        title=title,
        subtitle=f"{projection.rows:,} rows of {result.tensor}; {words.kept(projection)}",
        axes=(axes[0], axes[1]),
        color=color,
        selected=selected,
        found=found,
        neighbors=neighbors,
        chosen=chosen(checkpoint, points),
        hidden=inputs.hidden(),
        height=HEIGHT,
        theme=session.theme(),
        facts=readable(provenance.of_page()),
    )
    vocabulary_map(
        packed,
        state,
        key="vocabulary map",
        on_click=inputs.pin,
        on_choose=lambda sent: _choose(checkpoint, sent),
        on_hide=inputs.hide,
    )
    if color in ("trust", "stability") and color not in points:
        st.caption(words.NOT_COLORED)


def beside_ours(projection: Projection, ours: Projection | None) -> None:
    """Compare a map of umap-learn with ours of the same neighbors, metric and seed."""
    if projection.implementation != UMAP_LEARN or ours is None:
        return
    st.caption(words.SIDE_BY_SIDE)
    parts.table(
        side_by_side(ours, projection).rename(columns=SIDE_BY_SIDE), alt="Trust in our UMAP and in umap-learn's"
    )


def judged(points: pd.DataFrame, result: Embeddings) -> pd.DataFrame:
    """Add what the vocabulary's health says of each row: score, and flagged."""
    scores = result.health.scores.iloc[points["token_id"]]
    return points.assign(score=scores["score"].to_numpy(), flagged=scores["flagged"].to_numpy())


def chosen(checkpoint: Opened, points: pd.DataFrame) -> tuple[int, ...]:
    """Token ids inside the lasso: of this checkpoint, on whichever map they were chosen."""
    fingerprint, sent = st.session_state.get(CHOSEN, ("", None))
    return packing.unpack_ids(sent, points) if fingerprint == checkpoint.fingerprint else ()


def _choose(checkpoint: Opened, sent: Any) -> None:
    st.session_state[CHOSEN] = (checkpoint.fingerprint, sent)


def _axes(projection: Projection) -> tuple[str, str, str]:
    if not projection.explained:
        return ("UMAP 1", "UMAP 2", "UMAP 3")
    names = [f"PC {n} ({100 * share:.1f} %)" for n, share in enumerate(projection.explained, 1)]
    return (names[0], names[1], names[2] if len(names) > 2 else "")


def padding_history(checkpoint: Opened) -> go.Figure | None:
    """How padding's row grew while a demo was trained; other checkpoints keep no such log."""
    demo = DEMOS.get(checkpoint.reference)
    log = pd.read_csv(demo.training_log) if demo else pd.DataFrame()
    return (
        parts.drawn(lambda theme: pad_norm_curve(log, name=checkpoint.name, theme=theme)) if "pad_norm" in log else None
    )
