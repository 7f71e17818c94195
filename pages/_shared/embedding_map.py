"""The map of the vocabulary: what to compute, and how to draw it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pandas as pd
import streamlit as st

from inspector import figures
from inspector.demo import DEMOS
from inspector.figures.text import percent_text
from inspector.results import Embeddings, Opened, Projection
from pages._shared import parts, session
from pages._shared.words import literal
from pages._vocabulary_map import vocabulary_map

CLICKED = "clicked token"  # from the map to the search field, which is drawn before it


@dataclass(frozen=True, slots=True)
class MapChoice:
    """What the person chose; neighbours, metric and seed count for UMAP alone."""

    method: str
    dimensions: int
    neighbours: int = 15
    metric: str = "cosine"
    seed: int = 0

    def parameters(self) -> dict[str, Any]:
        """Parameters of the analysis "project", those that do not count left at one value."""
        chosen: dict[str, Any] = {"method": self.method, "dimensions": self.dimensions}
        if self.method == "umap":
            chosen |= {"neighbours": self.neighbours, "metric": self.metric, "seed": self.seed}
        return chosen

    def options(self, *, name: str) -> list[str]:
        """The same for the command line, with a file for the points."""
        pairs = [(f"--{name}", str(value)) for name, value in self.parameters().items()]
        return [part for pair in pairs for part in pair] + ["-o", f"{name}-{self.method}.csv"]


@dataclass(frozen=True, slots=True)
class TokenChoice:
    """Whose neighbours the person wants."""

    token: str
    k: int
    metric: str

    def parameters(self, *, token: str | None = "") -> dict[str, Any]:
        """Parameters of the analysis "embeddings"; None for no token's neighbours."""
        chosen = self.token if token == "" else token
        return {"token": chosen, "k": self.k, "metric": self.metric}

    def options(self) -> list[str]:
        """The same for the command line."""
        if not self.token:
            return []
        return [f"--token={self.token}", "-k", str(self.k), "--metric", self.metric]


def choose() -> MapChoice:
    """Draw the choices of the map."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        method = st.segmented_control("Map", ["PCA", "UMAP"], default="PCA", required=True,
                                      key="map", bind="query-params")  # fmt: skip
        shape = st.segmented_control("Dimensions", ["2-D", "3-D"], default="2-D", required=True,
                                     key="dimensions", bind="query-params")  # fmt: skip
        dimensions = int(shape[0])
        if method == "PCA":
            return MapChoice("pca", dimensions)
        neighbours = st.number_input("Neighbours", 2, 200, 15, key="neighbours",
                                     bind="query-params")  # fmt: skip
        metric = st.segmented_control("Metric", ["cosine", "euclidean"], default="cosine",
                                      required=True, key="metric", bind="query-params")  # fmt: skip
        seed = st.number_input("Seed", 0, 2**32 - 1, 0, key="seed", bind="query-params")
    return MapChoice("umap", dimensions, int(neighbours), metric, int(seed))


def choose_token() -> TokenChoice:
    """Draw the search; a token that was clicked on the map is written into its field first."""
    if CLICKED in st.session_state:
        st.session_state["token"] = f"id {st.session_state.pop(CLICKED)}"
    with st.container(horizontal=True, vertical_alignment="bottom"):
        token = st.text_input("Find a token", key="token", bind="query-params", type="search",
                              icon=":material/search:", max_chars=80,
                              placeholder='a word, or a row such as "id 37"')  # fmt: skip
        metric = st.segmented_control("Nearest by", ["cosine", "dot", "euclidean"],
                                      default="cosine", required=True, key="measure",
                                      bind="query-params")  # fmt: skip
        k = st.number_input("How many", 1, 1000, 10, key="k", bind="query-params")
    return TokenChoice(token, int(k), metric)


def draw(projection: Projection, result: Embeddings, *, checkpoint: Opened) -> None:
    """Draw the map; a click on a point asks for its neighbours."""
    title = f"{projection.method.upper()} of {checkpoint.name}"
    axes = _axes(projection)
    if projection.dimensions == 3:
        figure = figures.scatter3d(projection.points, title=title, axes=axes,
                                   theme=session.theme())  # fmt: skip
        parts.chart(figure, alt=f"{title} in three dimensions", key="map 3-D")
        _explain(projection, result)
        st.caption("Drag to turn, scroll to come nearer. Padding is drawn last, on top.")
        return
    st.caption(":material/ads_click: Click a point to list its neighbours, drag to move, scroll "
               "to come nearer. Padding is ringed.")  # fmt: skip
    found = [int(row) for row in result.neighbours["token_id"]]
    clicked = vocabulary_map(
        projection.points,
        title=title,
        theme=session.theme(),
        key="vocabulary map",
        selected=result.query_id,
        highlighted=found,
        axes=(axes[0], axes[1]),
    )
    _explain(projection, result)
    if clicked is not None and clicked != result.query_id:
        st.session_state[CLICKED] = clicked
        st.rerun()


def _explain(projection: Projection, result: Embeddings) -> None:
    st.caption(
        f"{projection.rows:,} rows of {literal(result.tensor)}, none sampled away; "
        f"{projection.seconds:.1f} s. Of each row's 15 nearest rows, "
        f"{percent_text(projection.kept_neighbours)} are among its 15 nearest on the map: read "
        "neighbours in the list."
    )


def _axes(projection: Projection) -> tuple[str, str, str]:
    if not projection.explained:
        return ("UMAP 1", "UMAP 2", "UMAP 3")
    names = [f"PC {n} ({100 * share:.1f} %)" for n, share in enumerate(projection.explained, 1)]
    return (names[0], names[1], names[2] if len(names) > 2 else "")


def draw_padding_history(checkpoint: Opened) -> None:
    """Draw how padding's row grew while a demo was trained; other checkpoints keep no such log."""
    demo = DEMOS.get(checkpoint.reference)
    log = pd.read_csv(demo.training_log) if demo else pd.DataFrame()
    if "pad_norm" not in log:
        return
    curve = figures.pad_norm_curve(
        log,
        title=f"How padding grew while {checkpoint.name} was trained",
        subtitle="It begins at zero; no look-up ever trains it, the tied output layer does",
        theme=session.theme(),
    )
    parts.chart(curve, alt="Norm of padding's row and of the median row, by training step")
