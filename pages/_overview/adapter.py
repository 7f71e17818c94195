"""What an adapter changes, in the place of a model's portrait."""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st

from inspector.analyses.adapter.request import AdapterRequest
from inspector.analyses.adapter.result import Adapter
from inspector.results.checkpoint import Opened
from pages._ui import beside, parts, session
from pages._ui.answer.rendering import PageView
from pages._ui.opening import adapting
from pages._ui.words import source


@dataclass(frozen=True, slots=True)
class Changes:
    """What was drawn of an adapter, and what is left to draw."""

    view: PageView
    request: AdapterRequest  # as a command line asks it


def draw(checkpoint: Opened) -> Changes | None:
    """Ask for the base, and show the change; None where there is no answer, and the page says why."""
    if session.is_preview(checkpoint):
        return None
    names = beside.references(checkpoint)
    line = st.container(key="controls", horizontal=True, vertical_alignment="bottom")
    with line:
        name = beside.pick(names, "base", "Base model")
    base = session.open_beside(names.get(name, name)) if name else None
    request = AdapterRequest(base=base.fingerprint if base else "")
    found: Adapter | None = session.ask(request, beside=base)
    if found is None:
        return None
    with line:
        if base:
            adapting.offer(checkpoint, base.name, base.reference)
        elif found.base and (reference := adapting.find(found.base)):
            adapting.offer(checkpoint, found.base, reference)
    parts.warnings(found.warnings)
    view = PageView.of(found, request, name=checkpoint.name)
    view.answer()
    return Changes(view, AdapterRequest(base=source(base) if base else ""))
