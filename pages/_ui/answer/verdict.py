"""What checks have said of the open checkpoint, in a word beside every page's heading."""

from __future__ import annotations

import streamlit as st

from inspector.analyses.checks.request import CheckRequest
from inspector.analyses.checks.result import Checks
from inspector.analyses.checks.words import verdict
from pages._ui import session

WAYS = (CheckRequest(values="all"), CheckRequest(), CheckRequest(values="sample"), CheckRequest(values="none"))
LOOKS = {"Sound": ("check_circle", "green"), "Worth a look": ("warning", "orange"), "Broken": ("error", "red")}
UNASKED = "Not checked"
BY = {"none": ", by headers", "sample": ", by a sample"}  # of the values read


def draw() -> None:
    """Link to the checks by their verdict, the one that read most; nothing is asked for it."""
    known = (session.at_hand(request) for request in WAYS)
    checks: Checks | None = next((found for found in known if found), None)
    if checks is None:
        st.page_link("pages/checks.py", label=f":gray[{UNASKED}]", icon=":material/fact_check:", width="content")
        return
    word, said = verdict(checks)
    symbol, color = LOOKS[word]
    label = f":{color}[{word}{BY.get(checks.values, '')}]"
    st.page_link("pages/checks.py", label=label, icon=f":material/{symbol}:", help=said, width="content")
