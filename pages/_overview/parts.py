"""What the overview shows beside its picture, and in its tabs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import streamlit as st

from inspector.analyses.histogram.request import HistogramRequest
from inspector.analyses.histogram.result import Histogram
from inspector.analyses.overview.figures_colors import COLORINGS, told_by
from inspector.analyses.overview.figures_parts import DrawnTensors, Portrait, measure
from inspector.analyses.overview.frames import file_table
from inspector.analyses.overview.request import OverviewRequest
from inspector.analyses.overview.result import Overview
from inspector.analyses.overview.words import (
    COLORED_BY,
    HEADS,
    HEADS_BY_WEIGHTS,
    IN_MEMORY,
    PARAMETERS,
    details,
    part_facts,
)
from inspector.names import find_rows
from inspector.request import Request
from inspector.results.checkpoint import Opened
from inspector.serving.place import open_roots
from inspector.settings import EVERYWHERE
from inspector.text import bytes_text
from pages._overview import identity
from pages._ui import finding, options, parts, session
from pages._ui.answer.rendering import PageView

OFFERED = 200  # tensors of a rectangle, by name
SOUGHT = ("name", "dtype", "shape", "file", "name_in_file")


def choose_color(portrait: Portrait, *, numbers: bool) -> str:
    """Ask what the colors of the portrait tell, where there is a choice.

    Args:
        numbers: Whether stored numbers can be read.
    """
    first, *others, rms = COLORINGS
    offered = [first, *(color for color in others if len(told_by(portrait, color)) > 1), *([rms] if numbers else [])]
    if len(offered) == 1:
        return offered[0]
    return st.segmented_control(
        "Color by", offered, default=offered[0], required=True, key="colored", bind="query-params",
        format_func=COLORED_BY.__getitem__, label_visibility="collapsed",
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Picked:
    """The rectangle that was clicked."""

    part: DrawnTensors
    rms: Sequence[float]  # as `measure` takes it


def draw_selected(checkpoint: Opened, overview: Overview, asked: list[Request], picked: Picked | None) -> None:
    """Describe the rectangle that was clicked, its numbers, and which heads there are.

    Args:
        asked: What else is asked for it is added here.
    """
    if not overview.stored.names:
        st.info("The files hold no tensors, so there is nothing to draw.")
    if picked:
        with st.container(border=True):
            st.code(picked.part.pattern or picked.part.label, language=None, wrap_lines=True)
            parts.facts(part_facts(picked.part, measure(picked.part, picked.rms)))
            if picked.part.places and not session.is_preview(checkpoint):
                asked.append(_draw_values(checkpoint, [overview.stored.names[place] for place in picked.part.places]))
    _draw_heads(overview)


def _draw_values(checkpoint: Opened, names: Sequence[str]) -> HistogramRequest:
    """Draw the numbers of one of the tensors that a rectangle stands for."""
    name = names[0]
    if len(names) > 1:
        first = names[:OFFERED]
        more = f"The first {OFFERED} of {len(names):,}" if len(names) > OFFERED else None
        name = st.selectbox("Tensor", first, key="inspected", bind="query-params", help=more)
    request = HistogramRequest(tensor=name)
    found: Histogram | None = session.ask(request)
    if found:
        page = PageView.of(found, request, name=checkpoint.name)
        if page.view.headline.verdict:  # else the facts say it
            page.headline()
        page.picture()
        page.beside()
    return request


def draw_facts(checkpoint: Opened, overview: Overview) -> None:
    """Sizes as numbers, what configuration and tokenizer say, the fingerprint, and where to go on."""
    with st.container(horizontal=True, key="facts"):
        parts.count("Parameters", overview.unique_parameters, explanation=PARAMETERS)
        parts.count("Layers", overview.layers)
        parts.count("Hidden size", overview.d_model)
        parts.count("Vocabulary rows", overview.vocab_rows)
        st.metric("On disk", bytes_text(overview.nbytes_on_disk), help="All files together.")
        st.metric("In memory", bytes_text(overview.nbytes_in_memory), help=IN_MEMORY)
    parts.facts(details(overview))
    identity.draw(checkpoint, overview)
    parts.page_link("sharing", "do ties hold?")
    st.page_link("pages/tour.py", label="New to this? Start with the questions", icon=":material/help:")


def _draw_heads(overview: Overview) -> None:
    """The heads that the files have weights for, and those that they lack."""
    badges = [
        f":green-badge[:material/check: {HEADS[head][0]}]"
        if there == "present"
        else f":gray-badge[{HEADS[head][0]}: absent]"
        for head, there in overview.all_heads.items()
    ]
    st.markdown(" ".join(badges), help=HEADS_BY_WEIGHTS)


def draw_tensors(overview: Overview, *, name: str) -> str:
    """List the tensors that are sought.

    Returns:
        What is sought.
    """
    find = options.ask(
        OverviewRequest,
        "find",
        type="search",
        live=True,
        placeholder="such as layer.0 or bias",
        icon=":material/search:",
    )
    finding.listed(
        find_rows(overview.tensors, find, tuple(column for column in SOUGHT if column in overview.tensors)),
        "tensor",
        of=f"{len(overview.tensors):,} stored tensors. Click a column header to sort.",
        name=f"{name}-tensors",
        alt="Names, shapes, dtypes and sizes of the stored tensors",
    )
    return find


def draw_files(overview: Overview) -> None:
    """List the files."""
    shown = file_table(overview)
    if open_roots() != EVERYWHERE:  # then nobody learns where folders lie
        shown = shown.drop(columns="linked_from", errors="ignore")
    parts.table(shown.fillna("—"), alt="Files of the checkpoint")
