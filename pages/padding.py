"""Why is the padding vector not zero?"""

from __future__ import annotations

import streamlit as st

from inspector.analyses.padding import words
from inspector.analyses.padding.request import PaddingRequest
from inspector.analyses.padding.result import Padding
from inspector.text import literal
from pages._embeddings import map as embedding_map
from pages._padding import averages as padding_averages
from pages._padding import gradient as padding_gradient
from pages._padding import vector as padding_vector
from pages._ui import inputs, options, parts, session

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
st.markdown(f"**{literal(result.verdict)}**")
row = result.row
if row is None:
    padding_vector.draw(result)
    st.stop()
bars_place, vector_place = parts.main_row()
with bars_place:
    padding_gradient.draw(checkpoint, result, row)
with vector_place:
    padding_vector.draw(result, name=f"{checkpoint.name}-padding-neighbors")

history = embedding_map.padding_history(checkpoint)
tabs = ("Why", "Experiments", *(["Growth"] if history is not None else []), "Averages")
places = dict(zip(tabs, parts.in_tabs(*tabs), strict=True))
for name, place in places.items():
    if not place.open:
        continue
    with place:
        match name:
            case "Why":
                padding_gradient.explain(row)
            case "Experiments":
                padding_gradient.list_experiments(checkpoint, result, row)
            case "Growth" if history is not None:
                parts.chart(history, alt="Norms of the padding row and of the median row, by training step")
            case _:
                padding_averages.draw(checkpoint, result)
parts.elsewhere(checkpoint, request)
