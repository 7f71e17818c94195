"""What changed between two checkpoints?"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import streamlit as st

from inspector.analyses.base.request import BaseRequest
from inspector.analyses.base.result import Relation
from inspector.analyses.compare.figures import change_heatmap
from inspector.analyses.compare.request import CompareRequest
from inspector.analyses.compare.result import Comparison
from inspector.results.checkpoint import Opened
from inspector.view.blocks import Figure, Table
from pages._compare import inputs, tables
from pages._ui import inputs as page_inputs
from pages._ui import options, parts, session
from pages._ui.answer.rendering import PageView
from pages._ui.tables import PRECISE
from pages._ui.words import source

MEASURES = ("relative change", "cosine")

checkpoint = session.opened()
parts.heading("compare", checkpoint)

line = st.container(key="controls", horizontal=True, vertical_alignment="bottom", gap="small")
inputs.propose(checkpoint)
second = inputs.choose(checkpoint, line)
if second is None:
    inputs.teach(checkpoint)
    st.stop()
with line, page_inputs.folded_options():
    measure = st.segmented_control(
        "Color by", MEASURES, default=MEASURES[0], required=True, key="heat", bind="query-params"
    )
    values = options.ask(CompareRequest, "values", label="Values read", segmented=True)
request = options.make(CompareRequest, other=second.opened.fingerprint, values=values)
first = st.empty()
if values != "none":
    headers: Comparison | None = session.ask_optional(replace(request, values="none"), beside=second.opened)
    if headers:
        with first.container():
            tables.draw_early(headers)
result: Comparison = session.run(request, beside=second.opened)
first.empty()
parts.warnings(result.warnings)


def draw_layers(figure: Figure) -> None:
    """Draw the heat map by the chosen measure."""
    both = f"{result.name} and {result.other_name}"
    heatmap = parts.drawn(
        lambda theme: change_heatmap(
            result.layers, names=both, values=result.values, measure=measure or MEASURES[0], theme=theme
        )
    )
    with st.container(height=parts.frame_height(heatmap), border=False):
        parts.chart(heatmap, alt=figure.alt, key=figure.name)


def draw_counts(_: None) -> None:
    """Count tensors by status."""
    st.markdown(tables.counts(result))


page = PageView.of(
    result,
    request,
    name=f"{result.name}-{result.other_name}",
    instead={
        (Figure, "layers"): draw_layers,
        (Table, "tensors"): partial(tables.draw_tensors, result),
        (Table, "tokens"): partial(tables.draw_tokens, result),
    },
    columns=PRECISE,
)


def draw_base(other: Opened) -> None:
    """Say whether the second checkpoint is the base."""
    asked = options.make(BaseRequest, other=other.fingerprint)
    related: Relation = session.run(asked, beside=other)
    parts.warnings(related.warnings)
    PageView.of(related, asked, name=f"{related.name}-{related.other_name}").flat()


page.answer(draw_counts)
page.below(
    {"Base": partial(draw_base, second.opened), "Same sentence": partial(inputs.side_by_side, checkpoint, second)},
    opened_by={"find": "Tensors", "status": "Tensors"},
)
parts.elsewhere(checkpoint, replace(request, other=source(second.opened)))
