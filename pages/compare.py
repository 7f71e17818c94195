"""What changed between two checkpoints?"""

from __future__ import annotations

from dataclasses import replace

import streamlit as st

from inspector.analyses.compare import words
from inspector.analyses.compare.figures import change_bars, change_heatmap, changed_outside
from inspector.analyses.compare.request import CompareRequest
from inspector.analyses.compare.result import STATUSES, Comparison
from inspector.text import literal
from pages._compare import inputs, tables
from pages._ui import finding, options, parts, session, table_files
from pages._ui.words import paragraphs, source

OUTSIDE = 15  # bars
MEASURES = ("relative change", "cosine")

checkpoint = session.opened()
parts.heading("compare", checkpoint)

second = inputs.choose(checkpoint)
values = options.ask(CompareRequest, "values", segmented=True)
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
with st.container(border=True):
    for sentence in result.summary:
        st.markdown(literal(sentence))
st.markdown(tables.counts(result))

st.subheader("Layers", anchor=False)
if reason := words.no_layers(result.layers):
    st.info(reason, icon=":material/info:")
else:
    measure = st.segmented_control(
        "Color by", MEASURES, default=MEASURES[0], required=True, key="heat", bind="query-params"
    )
    parts.chart(
        change_heatmap(
            result.layers, names=both, values=result.values, measure=measure or MEASURES[0], theme=session.theme()
        ),
        alt="Change by layer and kind of tensor; the downloads below have the same numbers",
        key="layers",
    )
    table_files.offer(result.layers, name=f"{result.name}-{result.other_name}-layers", label="Layers")
rest = changed_outside(result.tensors, most=OUTSIDE)
if len(rest):
    parts.chart(
        change_bars(rest, names=both, theme=session.theme()),
        alt="Relative change of tensors outside the layers; the table below lists them",
        key="outside",
    )
with st.expander("What the numbers mean"):
    st.markdown(paragraphs(words.MEASURED))

st.subheader("Tensors", anchor=False)
with st.container(horizontal=True, vertical_alignment="bottom"):
    find = finding.field("Find tensors by name, status, layer or dtype", placeholder="such as layer 3 or LayerNorm")
    statuses = st.multiselect("Status", STATUSES, key="status", bind="query-params", placeholder="all")
finding.listed(
    tables.shown_tensors(result.tensors, find=find, statuses=statuses),
    "tensor",
    of=f"{len(result.tensors):,}, most changed first.",
    name=f"{result.name}-{result.other_name}-tensors",
    alt="Every tensor of both with its status and distance",
    precise=True,
)

st.subheader("Ties", anchor=False)
if result.ties_compared:
    st.markdown(literal(words.describe_ties(result.ties_changed, names)))
else:
    st.info("Ties could not be compared: see the warning above.", icon=":material/info:")
if result.ties_changed:
    parts.table(tables.tie_rows(result), alt="Names that are tied in only one of the two")

st.subheader("Tokens that moved most", anchor=False)
match = result.vocabulary
if match is None:
    st.info("Tokens could not be compared: see the warning above.", icon=":material/info:")
else:
    matched, *_ = words.describe_rows(match, names, result.tokens_moved)  # the rest is in the summary above
    st.markdown(literal(matched))
    if len(result.tokens_moved):
        parts.table(result.tokens_moved, precise=True, height=360, alt="Tokens whose embedding moved furthest")
        table_files.offer(result.tokens, name=f"{result.name}-{result.other_name}-tokens", label="Every matched row")

st.subheader("One sentence in both models", anchor=False)
inputs.side_by_side(checkpoint, second)
parts.elsewhere(checkpoint, replace(request, other=source(second.opened)))
