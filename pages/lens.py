"""What does each layer's hidden state say in tokens?"""

from __future__ import annotations

import pandas as pd
import streamlit as st

from inspector import figures
from inspector.results import Lens
from pages._shared import inputs, lens_cells, parts, session
from pages._shared.words import literal

session.guard()
checkpoint = session.opened()
parts.heading("lens", checkpoint)

text = inputs.text(checkpoint, slug="lens")
with st.expander("Options", icon=":material/tune:"), st.container(horizontal=True):
    k = int(st.number_input("Tokens a cell", 1, 100, 5, key="k", bind="query-params"))
    device, dtype = inputs.placement()
lens: Lens = session.run("lens", text=text, k=k, layers=None, device=device, dtype=dtype)
parts.warnings(lens.warnings)

with st.container(horizontal=True, vertical_alignment="bottom"):
    rung = st.segmented_control("Rung of the ladder", lens.rungs, default=lens.rungs[-1],
                                required=True, key="rung", bind="query-params")  # fmt: skip
    parts.agreement(lens)
    st.caption(f"{lens.device}, {lens.dtype}, {lens.milliseconds:.0f} ms")
if rung not in lens.rungs:  # kept from another checkpoint, which has more rungs
    rung = lens.rungs[-1]
st.markdown(literal(lens.rung_notes[rung]))

of_rung = pd.DataFrame(lens.cells[lens.cells["rung"] == rung])
heatmap = figures.token_heatmap(
    of_rung,
    value="score" if rung == "cosine" else "probability",
    tokens=lens.tokens,
    layers=lens.layers,
    title=f"Top token of {checkpoint.name} at every layer and position",
    subtitle=f"by {rung}",
    theme=session.theme(),
)
st.caption(":material/ads_click: Click a cell to compare all rungs there.")
clicked = parts.clickable(heatmap, key=f"heatmap {rung}",
                          alt=f"Top token by {rung}, layers by positions; the table below holds "
                          "the chosen cell, the CSV file all cells")  # fmt: skip
layer, position = lens_cells.choose(
    lens, clicked, start=lens_cells.interesting(lens, inputs.mask_token())
)

st.subheader(f"Layer {lens.layers[layer]}, position {position}", anchor=False)
st.caption(f"The ladder where the text has **{literal(lens.tokens[position])}**: "
           f"{', then '.join(lens.rungs)}.")  # fmt: skip
parts.table(lens_cells.ladder(lens, layer, position), alt="Best tokens of the cell by every rung")

with st.expander("What the rungs are, and why they disagree", expanded=True):
    for name in lens.rungs:
        st.markdown(f"**{name}**: {literal(lens.rung_notes[name])}")
    st.markdown(lens_cells.WHY)
parts.download(lens.cells, name=f"{checkpoint.name}-lens")
parts.elsewhere(
    checkpoint,
    ("lens", f"--text={text}", "-k", str(k), *inputs.placement_options(device, dtype)),
)
