"""What only the page about classes shows: the tree of modules, one module, and the output for a text."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from inspector.analyses.classes.frames import ROOT, module_frame
from inspector.analyses.classes.request import ClassesRequest
from inspector.analyses.classes.result import ModelClasses
from inspector.analyses.classes.words import module_facts
from inspector.analyses.experts.request import ExpertsRequest
from inspector.analyses.experts.result import MixtureExperts
from inspector.names import group_names
from inspector.results.checkpoint import Opened
from pages._ui import inputs, options, parts, session
from pages._ui.answer.rendering import PageView

TREE_HEIGHT = 420  # pixels
OFFERED = 2_000  # modules by name


def draw_tree(classes: ModelClasses) -> None:
    """Draw the modules as text."""
    with st.container(key="module_tree", gap="xxsmall"):
        st.caption("Its modules; identical blocks share a line with the contents of the first.")
        st.code(classes.tree_text, language=None, height=TREE_HEIGHT)


def draw_module(classes: ModelClasses) -> None:
    """Ask for a module, and list what it holds."""
    named = {module.name or ROOT: module for module in classes.modules}
    name = st.selectbox(
        "Open a module",
        offered(tuple(named), st.session_state.get("module") or st.query_params.get("module", "")),
        key="module",
        bind="query-params",
        accept_new_options=len(named) > OFFERED,
        help="Type part of its name."
        + (
            " Of the modules in a list, only the first is suggested; for any other, type its full name."
            * (len(named) > OFFERED)
        ),
    )
    module = named.get(name or ROOT, classes.modules[0])
    left, right = st.columns([2, 3], gap="large")
    with left:
        parts.facts(module_facts(classes, module))
    with right:
        inner = [m for m in classes.modules if not module.name or f"{m.name}.".startswith(f"{module.name}.")]
        parts.table(module_frame(inner, inside=module.name), height=420, alt="The module and the modules inside it")


def draw_output(checkpoint: Opened, known: ModelClasses) -> ClassesRequest:
    """Ask for a text, and list what the model returns for it.

    Args:
        known: Its warnings are on the page already.

    Returns:
        What was asked.
    """
    request = ClassesRequest(text=inputs.text(checkpoint, slug="classes"))
    classes: ModelClasses = session.run(request)
    parts.warnings(text for text in classes.warnings if text not in known.warnings)
    if classes.output:
        PageView.of(classes, request, name=checkpoint.name).tab("Output")
    return request


def draw_experts(checkpoint: Opened) -> ExpertsRequest:
    """Measure the experts, and count how often a text uses each, where one is typed.

    Returns:
        What was asked.
    """
    text = options.ask(ExpertsRequest, "text", key="routed", placeholder="a text, to count how often it uses each")
    request = ExpertsRequest(text=text)
    found: MixtureExperts | None = session.ask(request)
    if found is not None:
        parts.warnings(found.warnings)
        PageView.of(found, request, name=checkpoint.name).flat()
    return request


def offered(names: Sequence[str], chosen: str) -> list[str]:
    """Modules to choose from: all, or of very many the first of each pattern and the one that is chosen."""
    if len(names) <= OFFERED:
        return list(names)
    first = [names[group.places[0]] for group in group_names(names)]
    return [*first, chosen] if chosen in names and chosen not in first else first
