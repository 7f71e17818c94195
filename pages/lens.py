"""What does each layer's hidden state say in tokens?"""

from __future__ import annotations

from functools import partial

import streamlit as st

from inspector.analyses.lens.frames import typed_marks
from inspector.analyses.lens.result import Lens
from inspector.text import literal
from pages._lens import cells as lens_cells
from pages._lens import climb as lens_climb
from pages._lens import grid as lens_grid
from pages._lens import inputs as lens_inputs
from pages._lens import rows as lens_rows
from pages._ui import beside, inputs, parts, session
from pages._ui.answer.rendering import PageView
from pages._ui.beside import Other

checkpoint = session.opened()
parts.heading("lens", checkpoint)

request, view_place = lens_inputs.choose(checkpoint)
lens: Lens = session.run(request, meanwhile=lens_rows.draw)
parts.warnings(warning for warning in lens.warnings if warning not in lens.left_out)
for reason in lens.left_out:
    st.info(literal(reason), icon=":material/info:")

with view_place:
    view = lens_grid.choose(lens, typed_marks(lens.tokens, request.text))
page = PageView.of(lens, request, name=checkpoint.name)
page.headline()
lens_cells.start(lens, inputs.mask_token())
map_place, cell_place = parts.main_row()
with cell_place:
    layer, position = lens_cells.choose(lens)
    lens_climb.draw_cell(lens, layer=layer, position=position)
    page.beside()
    st.caption(f"{lens.device}, {lens.dtype}, {lens.milliseconds:.0f} ms")
ladder = lens_inputs.ladder(request, layer=layer, position=position)
others: list[Other] = []


def compare() -> None:
    """Ask for another text or checkpoint; its scale is also that of the first map."""
    if other := beside.choose(checkpoint, request):
        others.append(other)
        lens_grid.draw_other(lens, view, other)


page.below(
    {"Two texts": compare},
    first={
        "Ranks by step": partial(lens_climb.draw_ranks, checkpoint, lens, ladder, rung=view.rung),
        "Geometry": partial(lens_climb.draw_geometry, checkpoint, ladder),
    },
    opened_by={"second": "Two texts", "other": "Two texts"},
)
with map_place:
    lens_grid.draw(checkpoint, lens, view, (layer, position), next(iter(others), None))
parts.elsewhere(checkpoint, request, ladder)
