"""What the page about classes shows in its tabs."""

from __future__ import annotations

import streamlit as st

from inspector.analyses.classes import words
from inspector.analyses.classes.request import ClassesRequest
from inspector.analyses.classes.result import ModelClasses
from inspector.names import find_rows
from inspector.results.checkpoint import Opened
from inspector.text import literal, plural
from pages._classes import tables
from pages._ui import finding, inputs, parts, session

TREE_HEIGHT = 420  # pixels


def draw_module(classes: ModelClasses) -> None:
    """Ask for a module, and list what it holds."""
    named = {module.name or tables.ROOT: module for module in classes.modules}
    name = st.selectbox(
        "Open a module",
        tables.offered(tuple(named), st.session_state.get("module") or st.query_params.get("module", "")),
        key="module",
        bind="query-params",
        accept_new_options=len(named) > tables.OFFERED,
        help="Type part of its name."
        + (
            " Of the modules in a list, only the first is suggested; for any other, type its full name."
            * (len(named) > tables.OFFERED)
        ),
    )
    module = named.get(name or tables.ROOT, classes.modules[0])
    left, right = st.columns([2, 3], gap="large")
    with left:
        parts.facts(tables.module_facts(classes, module))
    with right:
        inner = tables.below(classes.modules, module.name)
        parts.table(
            tables.module_frame(inner, inside=module.name), height=420, alt="The module and the modules inside it"
        )


def draw_modules(classes: ModelClasses, *, name: str) -> None:
    """List the modules that are sought."""
    find = finding.field("Find modules by name, class or shape", placeholder="such as attention or LayerNorm")
    frame = tables.module_frame(classes.modules)
    finding.listed(
        find_rows(frame, find, ("name", "class", "shapes", "note")),
        "module",
        of=f"{plural(len(frame), 'module')}. Each shared tensor counts once.",
        name=f"{name}-modules",
        alt="Every module with its class and parameters",
    )


def draw_hierarchy(classes: ModelClasses) -> None:
    """List what each class of the hierarchy brings."""
    own, mixins = st.columns(2, gap="large")
    with own:
        st.markdown("**Classes**, starting with the model's own")
        st.markdown(tables.ancestor_list(classes.hierarchy, "class"))
    with mixins:
        st.markdown("**Mixins**: methods only, no weights")
        st.markdown(tables.ancestor_list(classes.hierarchy, "mixin"))


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
    if (output := classes.output) is not None:
        st.markdown(literal(words.returned(output)))
        st.code(output.call, language="python", wrap_lines=True)
        st.markdown(tables.output_rows(output.fields))
        st.caption(words.SHAPES)
        st.code(" ".join(output.tokens), language=None, wrap_lines=True)
    return request
