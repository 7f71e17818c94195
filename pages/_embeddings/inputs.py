"""What a person chooses on the embeddings page; all of it stands in the address bar."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import streamlit as st

from inspector.analyses.vocabulary_map.component import COLOURS
from inspector.analyses.vocabulary_map.result import Projection
from pages._ui import address

TOLD_BY_SEED = "stability" in {field.name for field in fields(Projection)}

LET_GO = "none"  # in the address bar: nothing is selected, though something was found


@dataclass(frozen=True, slots=True)
class MapChoice:
    """Which map; neighbours, metric, seed and stability count for UMAP alone."""

    method: str
    dimensions: int
    neighbours: int = 15
    metric: str = "cosine"
    seed: int = 0
    stability: bool = False
    trust: bool = False  # judge every row

    def parameters(self) -> dict[str, Any]:
        """Parameters of the analysis "project", those that do not count left at one value."""
        chosen: dict[str, Any] = {"method": self.method, "dimensions": self.dimensions}
        if self.method == "umap":
            chosen |= {"neighbours": self.neighbours, "metric": self.metric, "seed": self.seed}
        if self.stability:
            chosen["stability"] = True
        if self.trust:
            chosen["trust"] = True
        return chosen

    def steps(self) -> tuple[MapChoice, ...]:
        """What can be on the screen meanwhile, quickest first: PCA, the map, the map judged."""
        steps = (self.at_once(), replace(self, stability=False, trust=False), self)
        return tuple(dict.fromkeys(steps))

    def at_once(self) -> MapChoice:
        """The map that is there in a moment."""
        return MapChoice("pca", self.dimensions)

    def options(self, *, name: str) -> list[str]:
        """The same for the command line, with a file for the points."""
        pairs = [(f"--{name}", str(value)) for name, value in self.parameters().items()]
        words = [part for pair in pairs for part in pair if part != "True"]
        return [*words, "-o", f"{name}-{self.method}.csv"]


@dataclass(frozen=True, slots=True)
class TokenChoice:
    """Which tokens to find, and how to measure who is near."""

    text: str
    k: int
    metric: str

    def parameters(self, token_id: int) -> dict[str, Any]:
        """Parameters of the analysis "embeddings" for one token's neighbours."""
        return {"token": f"id {token_id}", "k": self.k, "metric": self.metric}

    def options(self, token_id: int | None) -> list[str]:
        """The same for the command line."""
        if token_id is None:
            return []
        return [f"--token=id {token_id}", "-k", str(self.k), "--metric", self.metric]


def choose_map() -> tuple[MapChoice, str]:
    """Draw the choices of the map; gives also the column that its colours show."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        method = st.segmented_control("Map", ["PCA", "UMAP"], default="PCA", required=True,
                                      key="map", bind="query-params",
                                      help="PCA: the two or three directions of largest variance, "
                                      "at once. UMAP: keeps neighbours together, takes longer."
                                      )  # fmt: skip
        shape = st.segmented_control("Dimensions", ["2-D", "3-D"], default="2-D", required=True,
                                     key="dimensions", bind="query-params")  # fmt: skip
        if method == "PCA":
            color = _choose_colour()
            return MapChoice("pca", int(shape[0]), trust=color == "trust"), color
        neighbours = st.number_input("Neighbours", 2, 200, 15, key="neighbours", width=130,
                                     bind="query-params",
                                     help="UMAP's n_neighbors: small shows detail, large the whole"
                                     )  # fmt: skip
        metric = st.segmented_control("Metric", ["cosine", "euclidean"], default="cosine",
                                      required=True, key="metric", bind="query-params")  # fmt: skip
        seed = st.number_input("Seed", 0, 2**32 - 1, 0, key="seed", bind="query-params", width=130)
        stability = TOLD_BY_SEED and st.toggle(
            "Stability", key="stability", bind="query-params",
            help="Compute the map once more under another seed, and measure how many neighbours "
            "stay together. Takes as long again.")  # fmt: skip
        color = _choose_colour(stability=bool(stability))
    return MapChoice(
        "umap", int(shape[0]), int(neighbours), metric, int(seed), bool(stability), color == "trust"
    ), color


def choose_tokens() -> TokenChoice:
    """Draw the search, and how neighbours are measured."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        text = st.text_input("Find tokens", key="token", bind="query-params", type="search",
                             icon=":material/search:", max_chars=400, on_change=unpin,
                             placeholder="one or several: king, queen, un*, id 37",
                             help="Words apart by comma or space. `*` stands for any letters, "
                             "`id 37` is a row, quotes keep a phrase together.")  # fmt: skip
        metric = st.segmented_control("Nearest by", ["cosine", "dot", "euclidean"],
                                      default="cosine", required=True, key="measure",
                                      bind="query-params",
                                      help="How neighbours in the original space are measured"
                                      )  # fmt: skip
        k = st.number_input("How many", 1, 1000, 10, key="nearest", bind="query-params", width=130)
    return TokenChoice(text, int(k), metric)


def _choose_colour(*, stability: bool = False) -> str:
    names = [name for name in COLOURS if name != "stability" or stability]
    return st.selectbox("Colour by", names, format_func=COLOURS.__getitem__, key="colour",
                        bind="query-params", width=230)  # fmt: skip


def selected(found: Sequence[int], there: Container[int], *, fingerprint: str) -> int | None:
    """The token whose neighbours are shown: what was clicked, or else the first that was found."""
    if st.session_state.get("row of", fingerprint) != fingerprint:
        unpin()  # it was a row of another checkpoint
    st.session_state["row of"] = fingerprint
    text = st.query_params.get("row", "")
    if text.isdecimal() and int(text) in there:
        return int(text)
    if text not in ("", LET_GO):
        address.say_lost("row", address.Lost(text, ""))
    return None if text == LET_GO else next(iter(found), None)


def pin(token_id: int | None) -> None:
    """Remember what was clicked, in the address bar."""
    st.query_params["row"] = LET_GO if token_id is None else str(token_id)


def unpin() -> None:
    """Forget what was clicked: a new search selects the first token that it finds."""
    st.query_params.pop("row", None)


def hidden() -> list[str]:
    """Names of the layers that are off."""
    return [name for name in st.query_params.get("hide", "").split("|") if name]


def hide(names: list[str]) -> None:
    """Remember which layers are off, in the address bar."""
    st.query_params.pop("hide", None)
    if names:
        st.query_params["hide"] = "|".join(names)
