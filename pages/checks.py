"""Is anything wrong with this checkpoint?"""

from __future__ import annotations

import streamlit as st

from inspector.analyses.checks import words
from inspector.analyses.checks.request import CheckRequest
from inspector.analyses.checks.result import Checks
from inspector.text import literal
from pages._checks import cards as check_cards
from pages._ui import inputs, options, parts, session

checkpoint = session.opened()
parts.heading("checks", checkpoint)
line, below = inputs.controls()
with line:
    verdict = st.container()
    values = options.ask(CheckRequest, "values", label="Values read", segmented=True)
request = CheckRequest(values=values)
with below:
    first = st.empty()
    if values != "none":
        headers: Checks | None = session.ask_optional(CheckRequest(values="none"))
        if headers:
            with first.container():
                check_cards.draw_early(headers)
    checks: Checks = session.run(request)
    first.empty()
with verdict:
    check_cards.sum_up(checks)
if not_read := words.reading(checks):
    st.info(literal(not_read), icon=":material/info:")
with st.container(key="picture"):
    check_cards.draw_all(checks)

magnitudes, evidence, export = parts.in_tabs("Magnitudes", "Evidence", "Export")
if magnitudes.open:
    with magnitudes:
        check_cards.draw_norms(checks, name=checkpoint.name)
if evidence.open:
    with evidence:
        check_cards.draw_passed_evidence(checks)
if export.open:
    with export:
        check_cards.export(checks, checkpoint)
parts.elsewhere(checkpoint, request)
