"""What is in this checkpoint?"""

from __future__ import annotations

from functools import partial

import streamlit as st

from inspector.analyses.overview.request import OverviewRequest
from inspector.analyses.overview.result import Overview
from inspector.request import Request
from inspector.view.blocks import Facts, Figure
from pages._overview import adapter, identity, portrait
from pages._overview import parts as overview_parts
from pages._ui import parts, session
from pages._ui.answer.rendering import Draw, PageView, draw_tabs

checkpoint = session.opened()
parts.heading("overview", checkpoint)
request = OverviewRequest()
overview: Overview = session.run(request)
parts.warnings(overview.warnings)
page = PageView.of(
    overview,
    request,
    name=checkpoint.name,
    instead={
        (Figure, "portrait"): partial(portrait.draw, checkpoint, overview),
        (Facts, ""): lambda _: overview_parts.draw_facts(checkpoint, overview),
    },
)
asked: list[Request] = []
changes = adapter.draw(checkpoint) if overview.adapter else None
if changes is None:
    page.answer(partial(overview_parts.draw_selected, checkpoint, overview, asked))


def list_files() -> None:
    overview_parts.draw_files(overview)
    if changes:
        identity.draw(checkpoint, overview)


sought: list[str] = []
tabs: dict[str, Draw] = {
    "Tensors": lambda: sought.append(overview_parts.draw_tensors(overview, name=checkpoint.name)),
    "Files": list_files,
    "Configuration": partial(st.json, overview.config, expanded=1),
}
tabs |= {tab.name: lambda tab=tab: page.blocks(tab.blocks) for tab in page.view.tabs if tab.name == "Quantization"}
if changes:
    changes.view.below(tabs, opened_by={"find": "Tensors"})
else:
    draw_tabs(tabs, opened_by={"find": "Tensors"})
parts.elsewhere(checkpoint, OverviewRequest(find="".join(sought)), *([changes.request] if changes else asked))
