"""What can you share about this checkpoint?"""

from __future__ import annotations

import streamlit as st

from inspector.catalog import PAGES
from inspector.report.content import ReportOptions
from inspector.report.making import DEFAULT
from inspector.report.provenance import options_of_report
from inspector.report.sections import BY_SLUG
from pages._report import files as report_files
from pages._report import others
from pages._ui import inputs, parts, session
from pages._ui.words import source

checkpoint = session.opened()
parts.title("Report", "What can you share about this checkpoint?", checkpoint)
visited = session.visited()
sections = st.multiselect(
    "Sections",
    list(BY_SLUG),
    default=[slug for slug in DEFAULT if slug in visited] or list(DEFAULT),
    format_func=lambda slug: PAGES[slug].title,
    key="sections",
    bind="query-params",
    help="Initially the pages that you have viewed, or all that need no other checkpoint if you have viewed none.",
)
line, below = inputs.controls()
with line:
    text = inputs.text(checkpoint, slug="report", masks=True)
    with inputs.folded_options():
        device, dtype, time_pass = inputs.planned(below)
if not sections:
    st.info("Choose at least one section.", icon=":material/edit:")
    st.stop()

chosen = tuple(slug for slug in BY_SLUG if slug in sections)
line = st.container(horizontal=True, vertical_alignment="bottom")
beside = others.choose(checkpoint, chosen, line)
if beside is None:
    report_files.list_contents(chosen, None)
    st.stop()
setting = ReportOptions(text=text, device=device, dtype=dtype)
contents, side = parts.main_row()
with side:
    made = report_files.make(checkpoint, chosen, setting, beside=beside)
    if made is not None:
        report_files.offer(checkpoint, made)
    st.caption(
        "One HTML file that works offline, with figures, tables, texts, and the source of every number. The .zip adds "
        "each figure as PNG and SVG, each table as CSV, a notebook that recomputes the numbers, and a PDF."
    )
with contents:
    report_files.list_contents(chosen, made)
options = options_of_report(setting, chosen, {name: source(each) for name, each in beside.items()})
parts.elsewhere(checkpoint, ("report", *options))
time_pass()
