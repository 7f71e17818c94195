"""Is anything wrong with this checkpoint?"""

from __future__ import annotations

from functools import partial

import streamlit as st

from inspector.analyses.checks.request import CheckRequest
from inspector.analyses.checks.result import Checks
from inspector.view.blocks import Bullets, Sentence
from pages._checks import cards as check_cards
from pages._ui import inputs, options, parts, session
from pages._ui.answer.rendering import PageView

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
page = PageView.of(
    checks,
    request,
    name=checkpoint.name,
    instead={
        (Bullets, "problems"): lambda _: check_cards.draw_problems(checks),
        (Sentence, "passed"): lambda _: check_cards.draw_passed(checks),
    },
    columns=check_cards.RMS,
)
with verdict:
    page.headline()
with st.container(key="picture"):
    page.beside()
page.below({"All checks": None, "Export": partial(check_cards.export, checks, checkpoint)})
parts.elsewhere(checkpoint, request)
