"""Is anything wrong with this checkpoint?"""

from __future__ import annotations

import streamlit as st

from inspector.analyses.checks import words
from inspector.analyses.checks.request import CheckRequest
from inspector.analyses.checks.result import Checks
from inspector.text import literal
from pages._checks import cards as check_cards
from pages._ui import options, parts, session, table_files
from pages._ui.words import command

checkpoint = session.opened()
parts.heading("checks", checkpoint)
values = options.ask(CheckRequest, "values", segmented=True)
request = CheckRequest(values=values)
first = st.empty()
if values != "none":
    headers: Checks | None = session.ask_optional(CheckRequest(values="none"))
    if headers:
        with first.container():
            check_cards.draw_early(headers)
checks: Checks = session.run(request)
first.empty()
check_cards.sum_up(checks)

ordered = checks.worst_first()
alarms = [check for check in ordered if check.status != "ok"]
if alarms:
    st.subheader("Findings", anchor=False)
    for check in alarms:
        check_cards.draw(check)
if len(alarms) < len(ordered):
    st.subheader("Passed checks", anchor=False)
    for check in ordered[len(alarms) :]:
        check_cards.draw(check)

check_cards.draw_norms(checks, name=checkpoint.name)

st.subheader("Export", anchor=False)
with st.container(horizontal=True, vertical_alignment="center"):
    table_files.offer(check_cards.evidence_frame(checks), name=f"{checkpoint.name}-checks", label="All evidence")
    st.download_button(
        "All checks: JSON",
        data=lambda: check_cards.as_json(checks),
        file_name=f"{checkpoint.name}-checks.json",
        mime="application/json",
        icon=":material/download:",
        on_click="ignore",
    )
st.markdown(literal(words.PIPELINE))
st.code(
    "\n".join(
        [
            f"{command('check', checkpoint, '--json')} > baseline.json",
            command("check", checkpoint, "--baseline", "baseline.json", "--format", "github"),
            f"{command('check', checkpoint, '--format', 'junit')} > checks.xml",
        ]
    ),
    language=None,
    wrap_lines=True,
)
parts.elsewhere(checkpoint, request)
