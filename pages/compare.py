"""What changed between two checkpoints?"""

from __future__ import annotations

from dataclasses import replace

import streamlit as st

from inspector.analyses.compare import words
from inspector.analyses.compare.figures import change_bars, change_heatmap, changed_outside
from inspector.analyses.compare.request import CompareRequest
from inspector.analyses.compare.result import Comparison
from inspector.text import literal
from pages._compare import inputs, tables
from pages._ui import options, parts, session, table_files
from pages._ui.words import paragraphs, source

OUTSIDE = 15  # bars
MEASURES = ("relative change", "cosine")

checkpoint = session.opened()
parts.heading("compare", checkpoint)

second = inputs.choose(checkpoint)
with st.container(key="controls", horizontal=True, vertical_alignment="bottom"):
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
names = (result.name, result.other_name)
both = " and ".join(names)
parts.warnings(result.warnings)
picture, side = parts.main_row()
with picture:
    if reason := words.no_layers(result.layers):
        st.info(reason, icon=":material/info:")
    else:
        heatmap = change_heatmap(
            result.layers, names=both, values=result.values, measure=measure or MEASURES[0], theme=session.theme()
        )
        with st.container(height=parts.frame_height(heatmap), border=False):
            parts.chart(
                heatmap,
                alt="Change by layer and kind of tensor; the downloads below have the same numbers",
                key="layers",
            )
        table_files.offer(result.layers, name=f"{result.name}-{result.other_name}-layers", label="Layers")
with side:
    st.markdown(tables.counts(result))
    for sentence in result.summary:
        st.markdown(literal(sentence))

tensors, ties, tokens, outside, sentence = parts.in_tabs(
    "Tensors", "Ties", "Tokens", "Outside the layers", "Same sentence",
    opened_by={"find": "Tensors", "status": "Tensors"},
)  # fmt: skip
if tensors.open:
    with tensors:
        tables.draw_tensors(result)
if ties.open:
    with ties:
        tables.draw_ties(result)
if tokens.open:
    with tokens:
        tables.draw_tokens(result)
if outside.open:
    with outside:
        rest = changed_outside(result.tensors, most=OUTSIDE)
        if len(rest):
            parts.chart(
                change_bars(rest, names=both, theme=session.theme()),
                alt="Relative change of tensors outside the layers; the tab Tensors lists them",
                key="outside",
            )
        else:
            st.info("No tensor outside the layers has changed.", icon=":material/info:")
if sentence.open:
    with sentence:
        inputs.side_by_side(checkpoint, second)
with st.expander("What the numbers mean"):
    st.markdown(paragraphs(words.MEASURED))
parts.elsewhere(checkpoint, replace(request, other=source(second.opened)))
