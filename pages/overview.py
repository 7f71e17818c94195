"""What is in this checkpoint?"""

from __future__ import annotations

from functools import partial

import streamlit as st

from inspector.analyses.overview.request import OverviewRequest
from inspector.analyses.overview.result import Overview
from pages._overview import adapter, identity, portrait
from pages._overview import parts as overview_parts
from pages._ui import parts, session
from pages._ui.answer.rendering import Draw, PageView, draw_tabs

checkpoint = session.opened()
parts.heading("overview", checkpoint)
overview: Overview = session.run(OverviewRequest())
parts.warnings(overview.warnings)
changes = adapter.draw(checkpoint) if overview.adapter else None
if changes is None:
    portrait.draw(checkpoint, overview)


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
if overview.gguf:
    whole = PageView.of(overview, OverviewRequest(), name=checkpoint.name)
    tabs |= {
        tab.name: lambda tab=tab: whole.blocks(tab.blocks) for tab in whole.view.tabs if tab.name == "Quantization"
    }
if changes:
    changes.view.below(tabs, opened_by={"find": "Tensors"})
else:
    draw_tabs(tabs, opened_by={"find": "Tensors"})
parts.elsewhere(checkpoint, OverviewRequest(find="".join(sought)), *([changes.request] if changes else []))
