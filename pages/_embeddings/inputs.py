"""What a person chooses on the embeddings page; all of it is in the address bar."""

from __future__ import annotations

from collections.abc import Container, Sequence

import streamlit as st

from inspector.analyses.embeddings.request import EmbeddingsRequest
from inspector.analyses.vocabulary_map.component import COLORS
from inspector.analyses.vocabulary_map.request import UMAP_LEARN, ProjectRequest
from pages._ui import address, inputs, options, session

LAST_MAP = "map asked for last"
LET_GO = "none"  # in the address bar: nothing is selected, though something was found

# The address holds what the buttons are labeled, and `method=umap` is what the command line takes.
ABBREVIATIONS = "<style>.st-key-method button {text-transform: uppercase}</style>"


def choose() -> tuple[ProjectRequest, str, str, EmbeddingsRequest]:
    """Draw all choices in one line.

    Returns:
        The map, the column that its colors show, the search, and how neighbors are measured, of no token yet.
    """
    st.html(ABBREVIATIONS)
    line, _ = inputs.controls()
    with line:
        method = options.ask(ProjectRequest, "method", segmented=True)
        dimensions = options.ask(ProjectRequest, "dimensions", width=90)
        color_place = st.container(width=170)
        text = options.ask(
            EmbeddingsRequest,
            "token",
            type="search",
            icon=":material/search:",
            max_chars=400,
            on_change=unpin,
            placeholder="one or several: king, queen, un*, id 37",
            help="Separate words by commas or spaces. `*` matches any letters, `id 37` selects a row, and quotes keep "
            "a phrase together.",
        )
        with inputs.folded_options():
            metric = options.ask(EmbeddingsRequest, "metric", label="Nearest by", segmented=True)
            k = options.ask(EmbeddingsRequest, "k")
            given = _choose_umap() if method == "umap" else {}
    with color_place:
        color = _choose_color(stability=bool(given.get("stability", False)))
    asked = options.make(ProjectRequest, method=method, dimensions=dimensions, trust=color == "trust", **given)
    if st.session_state.setdefault(LAST_MAP, asked) != asked:
        st.session_state[LAST_MAP] = asked
        session.resume()  # another map can begin with the one that was stopped
    return asked, color, text, options.make(EmbeddingsRequest, k=k, metric=metric)


def _choose_umap() -> dict[str, object]:
    return {
        "neighbors": options.ask(ProjectRequest, "neighbors"),
        "metric": options.ask(ProjectRequest, "metric", key="map_metric", label="Map metric", segmented=True),
        "seed": options.ask(ProjectRequest, "seed"),
        "stability": options.ask(ProjectRequest, "stability"),
        **_choose_implementation(),
    }


def _choose_implementation() -> dict[str, object]:
    chosen = options.ask(ProjectRequest, "implementation", segmented=True)
    names = ("min_dist", "spread") if chosen == UMAP_LEARN else ()
    given = {name: options.ask(ProjectRequest, name, format="%g") for name in names}
    if chosen == UMAP_LEARN:
        given["densmap"] = options.ask(ProjectRequest, "densmap")
    return {"implementation": chosen, **given}


def _choose_color(*, stability: bool) -> str:
    names = [name for name in COLORS if name != "stability" or stability]
    return st.selectbox("Color by", names, format_func=COLORS.__getitem__, key="color", bind="query-params")


def selected(found: Sequence[int], there: Container[int], *, fingerprint: str) -> int | None:
    """The token whose neighbors are shown: what was clicked, or else the first that was found."""
    if st.session_state.get("row of", fingerprint) != fingerprint:
        unpin()  # it was a row of another checkpoint
    st.session_state["row of"] = fingerprint
    text = st.query_params.get("row", "")
    if text.isdecimal() and int(text) in there:
        return int(text)
    if text not in ("", LET_GO):
        address.say_lost("row", address.LostValue(text, ""))
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
