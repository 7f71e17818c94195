"""Which classes is this model made of, and what does it return?"""

from __future__ import annotations

from functools import partial

import streamlit as st

from inspector.analyses.classes import words
from inspector.analyses.classes.figures import class_tree
from inspector.analyses.classes.frames import used_classes
from inspector.analyses.classes.request import ClassesRequest
from inspector.analyses.classes.result import ModelClasses
from inspector.text import literal
from pages._classes import parts as class_parts
from pages._classes import tables
from pages._ui import parts, session

checkpoint = session.opened()
parts.heading("classes", checkpoint)
request = ClassesRequest()
classes: ModelClasses = session.run(request)
parts.warnings(classes.warnings)
st.markdown(literal(words.headline(classes)))

family, tree = parts.main_row((1, 1))
tree_of = partial(class_tree, classes.hierarchy, classes.siblings, name=checkpoint.name)
drawn = parts.drawn(lambda theme: tree_of(theme=theme), narrow=lambda theme: tree_of(narrow=True, theme=theme))
with family, parts.place("family_tree", drawn):
    parts.chart(drawn, alt="Model classes from torch.nn.Module down; the tabs Loads as and Adds list the same")
with tree, st.container(key="module_tree", gap="xxsmall"):
    st.caption("Its modules; identical blocks share a line with the contents of the first.")
    st.code(classes.tree_text, language=None, height=class_parts.TREE_HEIGHT)

loads, one, every, by_class, adds, output = parts.in_tabs(
    "Loads as",
    "One module",
    "Every module",
    "By class",
    "Adds",
    "Output",
    opened_by={"module": "One module", "find": "Every module", "text": "Output"},
)
if loads.open:
    with loads, st.container(key="siblings"):
        st.markdown(tables.sibling_rows(classes.siblings))
        st.caption(words.SIBLINGS)
if one.open:
    with one:
        class_parts.draw_module(classes)
if every.open:
    with every:
        class_parts.draw_modules(classes, name=checkpoint.name)
if by_class.open:
    with by_class:
        parts.table(used_classes(classes), alt="Classes of the modules, most parameters first", height=420)
if adds.open:
    with adds:
        class_parts.draw_hierarchy(classes)
if output.open:
    with output:
        request = class_parts.draw_output(checkpoint, classes)
parts.elsewhere(checkpoint, request)
