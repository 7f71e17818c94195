"""Which classes is this model made of, and what does it return?"""

from __future__ import annotations

import streamlit as st

from inspector.analyses.classes import words
from inspector.analyses.classes.figures import class_tree
from inspector.analyses.classes.frames import used_classes
from inspector.analyses.classes.request import ClassesRequest
from inspector.analyses.classes.result import ModelClasses
from inspector.names import find_rows
from inspector.text import literal, plural
from pages._classes import tables
from pages._ui import finding, inputs, parts, session

checkpoint = session.opened()
parts.heading("classes", checkpoint)

above, returned = st.container(), st.container()
with returned:
    st.header("Output", anchor=False)
    request = ClassesRequest(text=inputs.text(checkpoint, slug="classes"))
with above:
    classes: ModelClasses = session.run(request)
    parts.warnings(classes.warnings)
    with st.container(horizontal=True):
        parts.count("Parameters", classes.parameters, explanation="Each shared tensor once.")
        parts.count("Modules", len(classes.modules))
        parts.count("Different classes", len(classes.used_classes))
        parts.count(
            "Classes that can load it",
            sum(each.present for each in classes.siblings),
            explanation=f"Out of {len(classes.siblings)} in this family.",
        )

    st.header("Class hierarchy", anchor=False)
    parts.chart(
        class_tree(classes.hierarchy, classes.siblings, name=checkpoint.name, theme=session.theme()),
        alt="Model classes from torch.nn.Module down; the tables below list the same",
    )
    with st.expander("What each class adds"):
        st.markdown("**Classes**, starting with the model's own")
        st.markdown(tables.ancestor_list(classes.hierarchy, "class"))
        st.markdown("**Mixins**: methods only, no weights")
        st.markdown(tables.ancestor_list(classes.hierarchy, "mixin"))
    with st.expander("This file loaded as each class", expanded=True):
        with st.container(key="siblings"):
            st.markdown(tables.sibling_rows(classes.siblings))
        st.caption(words.SIBLINGS)

    st.header("Modules", anchor=False)
    tree, one, every, by_class = st.tabs(
        ["Tree", "One module", "Every module", "By class"], key="modules", bind="query-params"
    )
    with tree:
        st.caption(
            f"{plural(len(classes.modules), 'module')}; identical blocks share one line, which shows the contents of "
            "the first. Each shared tensor counts once."
        )
        st.code(classes.tree_text, language=None, height=520)
    with one:
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
    with every:
        find = finding.field("Find modules by name, class or shape", placeholder="such as attention or LayerNorm")
        frame = tables.module_frame(classes.modules)
        finding.listed(
            find_rows(frame, find, ("name", "class", "shapes", "note")),
            "module",
            of=f"{plural(len(frame), 'module')}.",
            name=f"{checkpoint.name}-modules",
            alt="Every module with its class and parameters",
            height=420,
        )
    with by_class:
        parts.table(used_classes(classes), alt="Classes of the modules, most parameters first", height=420)

with returned:
    output = classes.output
    if output is not None:
        st.markdown(literal(words.returned(output)))
        st.code(output.call, language="python", wrap_lines=True)
        st.markdown(tables.output_rows(output.fields))
        st.caption(words.SHAPES)
        st.code(" ".join(output.tokens), language=None, wrap_lines=True)
parts.elsewhere(checkpoint, request)
