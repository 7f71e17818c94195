"""Why is the padding vector not zero?"""

from __future__ import annotations

import streamlit as st

from inspector.analyses.padding import words
from inspector.analyses.padding.figures import gradient_bars
from inspector.analyses.padding.request import PaddingRequest
from inspector.analyses.padding.result import Padding
from inspector.text import literal
from pages._embeddings import map as embedding_map
from pages._padding import vector as padding_vector
from pages._ui import inputs, options, parts, session, table_files
from pages._ui.words import listed

checkpoint = session.opened()
parts.heading("padding", checkpoint)

examples = inputs.begin(checkpoint, slug="padding", examples=(words.SENTENCES,))
line, below = inputs.controls()
with line:
    text = options.ask(PaddingRequest, "text", default=words.SENTENCES, height=68, label_visibility="collapsed")
    inputs.remember(text, examples)
    with inputs.folded_options():
        device, dtype = inputs.placement(below)
request = options.make(PaddingRequest, text=text, device=device, dtype=dtype)
result: Padding = session.run(request, meanwhile=padding_vector.draw_early)
parts.warnings(result.warnings)
with st.container(border=True):
    st.markdown(f"**{literal(result.verdict)}**")
padding_vector.draw(result, name=f"{checkpoint.name}-padding-neighbors")
row = result.row
if row is None:
    st.stop()

st.subheader("Gradients", anchor=False)
if row.gradient is None or row.experiments is None:
    st.info(literal(result.gradient_note), icon=":material/info:")
else:
    st.caption(literal(result.gradient_note))
    drawn, said = st.columns([3, 2], gap="large")
    with drawn:
        bars = gradient_bars(row.experiments, row=f"{row.token} of {checkpoint.name}", theme=session.theme())
        parts.chart(bars, alt="Gradient by path, as bars; the table below lists the same numbers")
    with said:
        st.markdown(listed(words.explain_gradient(row, row.gradient)))
    shown = row.experiments.rename(columns={"input_path": "through look-up", "output_path": "through softmax"})
    for name in ("row_norm", "through look-up", "through softmax", "total"):  # no rounding turns these into zero
        shown[name] = shown[name].map(words.number)
    parts.table(shown.rename(columns={"total": "both"}), alt="Gradients in every experiment")
    table_files.offer(row.experiments, name=f"{checkpoint.name}-padding-gradient")
    with st.expander("Model input"):
        st.code("\n".join(result.masked_text), language=None, wrap_lines=True)
        st.caption(literal(words.conditions(result, row.gradient)))
with st.expander("Is it because the model may predict padding?", expanded=True):
    st.markdown(literal(words.MECHANISM))

st.subheader("Effect on averages", anchor=False)
st.markdown(literal(words.AVERAGES))
st.caption(literal(result.averaging_note))
if not result.averaging.empty:
    parts.table(
        result.averaging.rename(columns={"padding_norm": "norm of padding"}),
        alt="Mean hidden state with and without the attention mask",
    )
    st.caption(literal(words.MEASURES))
    table_files.offer(result.averaging, name=f"{checkpoint.name}-padding-averaging")
embedding_map.draw_padding_history(checkpoint)
parts.elsewhere(checkpoint, request)
