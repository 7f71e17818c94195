"""What does each layer's hidden state say in tokens?"""

from __future__ import annotations

import streamlit as st

from inspector.analyses.lens import words
from inspector.analyses.lens.figures_lines import MEASURES, rung_lines
from inspector.analyses.lens.result import Lens
from inspector.text import literal
from pages._lens import cells as lens_cells
from pages._lens import climb as lens_climb
from pages._lens import grid as lens_grid
from pages._lens import inputs as lens_inputs
from pages._lens import rows as lens_rows
from pages._ui import beside, inputs, parts, session, table_files
from pages._ui.words import listed

checkpoint = session.opened()
parts.heading("lens", checkpoint)

request, view_place = lens_inputs.choose(checkpoint)
lens: Lens = session.run(request, meanwhile=lens_rows.draw)
parts.warnings(warning for warning in lens.warnings if warning not in lens.left_out)
for reason in lens.left_out:
    st.info(literal(reason), icon=":material/info:")

with view_place:
    view = lens_grid.choose(lens)
lens_grid.say(lens, view.rung)
lens_cells.start(lens, inputs.mask_token())
map_place, cell_place = parts.main_row()
with cell_place:
    layer, position = lens_cells.choose(lens)
    lens_climb.draw_cell(lens, layer=layer, position=position)
ladder = lens_inputs.ladder(request, layer=layer, position=position)
ranks, geometry, early, texts, why = parts.in_tabs(
    "Ranks by step", "Geometry", "Early answer", "Two texts", "Why",
    opened_by={"second": "Two texts", "other": "Two texts"},
)  # fmt: skip
other = None
if texts.open:
    with texts:
        other = beside.choose(checkpoint, request)
        if other:
            lens_grid.draw_other(lens, view, other)
with map_place:
    lens_grid.draw(checkpoint, lens, view, (layer, position), other)
if ranks.open:
    with ranks:
        lens_climb.trajectories(checkpoint, lens, rung=view.rung, position=position)
        lens_climb.draw_ranks(checkpoint, ladder)
if geometry.open:
    with geometry:
        lens_climb.draw_geometry(checkpoint, lens, ladder)
if early.open:
    with early:
        if "agrees" not in lens.states:
            st.info(literal(words.agreement(lens)), icon=":material/info:")
        else:
            st.caption(words.MEANS)
            for measure, place in zip(MEASURES, parts.grid(len(MEASURES), wide=3), strict=False):
                with place:
                    lines = rung_lines(
                        lens.states,
                        measure=measure,
                        rungs=lens.rungs,
                        layers=lens.layers,
                        name=checkpoint.name,
                        theme=session.theme(),
                    )
                    title = MEASURES[measure]
                    parts.chart(lines, key=measure, alt=f"{title}, over layers", file=f"{title}, {checkpoint.name}")
if why.open:
    with why:
        for question, answer in {
            "How does the head map a hidden state back to a token?": listed(
                (*words.steps(lens), words.agreement(lens))
            ),
            "Is the best token the one with the highest cosine?": literal(words.best_by_cosine(lens)),
            "Why do the steps disagree?": literal(words.WHY),
            "Why does tying make sense?": literal(words.TYING),
        }.items():
            st.markdown(f"**{question}**\n\n{answer}")
with st.container(horizontal=True):
    table_files.offer(lens.cells, name=f"{checkpoint.name}-lens", label="Cells")
    table_files.offer(lens.states, name=f"{checkpoint.name}-lens-states", label="States")
    if len(lens.pinned):
        table_files.offer(lens.pinned, name=f"{checkpoint.name}-lens-pinned", label="Pinned tokens")
parts.elsewhere(checkpoint, request, ladder)
