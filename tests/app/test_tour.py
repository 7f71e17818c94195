"""The questions of the field open the page, the demo and the inputs that they name."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import parse_qs

import pytest
from streamlit.testing.v1 import AppTest

from inspector.catalog import PAGES
from inspector.demo import DEMOS
from pages._shared.questions import QUESTIONS, Question

from .looking import said

Open = Callable[..., AppTest]
EVERY = [question for questions in QUESTIONS.values() for question in questions]


def test_the_tour_lists_every_question_with_its_link(open_app: Open) -> None:
    app = open_app("tour")
    links = [element.proto for element in app.get("page_link")]
    asked = {(link.page, link.query_string) for link in links}
    assert len(EVERY) > 12
    assert len(links) == len(EVERY)
    for question in EVERY:
        assert any(
            {name: value[0] for name, value in parse_qs(query).items()} == question.query
            for page, query in asked
            if page.endswith(question.page)
        )
        assert question.look.split(":")[0][:20] in said(app).replace("\\", "")


def test_every_page_answers_a_question() -> None:
    beside = {"overview", "checks", "compare"}  # ask about a checkpoint of one's own
    assert {question.page for question in EVERY} == PAGES.keys() - beside
    assert {question.checkpoint for question in EVERY} == DEMOS.keys()


@pytest.mark.parametrize("question", EVERY, ids=lambda question: question.asked)
def test_a_question_opens_with_its_inputs(question: Question, open_app: Open) -> None:
    app = open_app(question.page, **question.query)
    assert not app.exception
    assert not app.error
    assert not [warning.value for warning in app.warning if "The link asks" in warning.value]
    assert app.title[0].value == PAGES[question.page].title
    for name in question.inputs:
        assert app.query_params[name]  # a name that no field takes, or a default, would be gone
