"""Why is the padding vector not zero?"""

from __future__ import annotations

from functools import partial

import streamlit as st

from inspector.analyses.padding import words
from inspector.analyses.padding.request import PaddingRequest
from inspector.analyses.padding.result import Padding
from inspector.text import literal
from inspector.view.blocks import Table
from pages._embeddings import map as embedding_map
from pages._ui import inputs, options, parts, session, table_files
from pages._ui.answer.rendering import PageView

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


def draw_early(known: Padding) -> None:
    """Draw what the rows alone tell, while the model runs."""
    if known.row is not None:
        st.caption(literal(words.SO_FAR))
        PageView.of(known, PaddingRequest(), name=checkpoint.name).beside()


def draw_gradients(table: Table) -> None:
    """List the gradients with digits enough: no rounding turns one into zero."""
    shown = table.frame.rename(columns={"input_path": "through look-up", "output_path": "through softmax"})
    for name in ("row_norm", "through look-up", "through softmax", "total"):
        shown[name] = shown[name].map(words.number)
    parts.table(shown.rename(columns={"total": "both"}), alt=table.title)
    table_files.offer(table.frame, name=f"{checkpoint.name}-padding-gradient")


result: Padding = session.run(request, meanwhile=draw_early)
parts.warnings(result.warnings)
history = embedding_map.padding_history(checkpoint)
page = PageView.of(result, request, name=checkpoint.name, instead={(Table, "gradient"): draw_gradients})
growth = "Norms of the padding row and of the median row, by training step"
page.show({"Growth": partial(parts.chart, history, alt=growth)} if history is not None else {})
parts.elsewhere(checkpoint, request)
