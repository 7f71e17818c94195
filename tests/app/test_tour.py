"""The questions of the field open the page, the demo and the inputs that they name."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from streamlit.testing.v1 import AppTest

from inspector.catalog import PAGES
from inspector.demo import ADAPTERS, DEMOS, SNAPSHOTS
from inspector.text import literal
from pages._tour.questions import QUESTIONS, TourQuestion
from tests.app.looking import button, said

Open = Callable[..., AppTest]
EVERY = [question for questions in QUESTIONS.values() for question in questions]


def test_the_tour_lists_every_question_and_what_to_look_at(open_app: Open) -> None:
    app = open_app("tour")
    assert len(EVERY) > 12
    assert [each.label.replace("\\", "").strip("*") for each in app.main.button] == [
        question.asked for question in EVERY
    ]
    for question in EVERY:
        assert question.look in said(app)


def test_a_question_is_found_by_its_words_its_subject_or_its_page(open_app: Open) -> None:
    app = open_app("tour", find="TRAINING")
    asked = [each.label.replace("\\", "").strip("*") for each in app.main.button]
    assert {question.asked for question in QUESTIONS["Training"]} < {*asked}
    assert len(asked) < len(EVERY)
    app.text_input(key="find").set_value("no such question").run()
    assert not app.main.button
    assert "No question matches" in app.info[0].value


def test_a_question_opens_as_its_link_does_whatever_was_before(open_app: Open) -> None:
    (question,) = (each for each in EVERY if each.asked.startswith("How does GPT-2 continue a text"))
    app = open_app("lens", text="the king of [MASK].", pins="queen", k="7", dtype="float32")
    app.switch_page("pages/tour.py").run()
    button(app, f"**{literal(question.asked)}**").click().run()
    assert not app.exception
    assert app.title[0].value == PAGES[question.page].title
    assert "demo-gpt2" in app.caption[0].value.replace("\\", "")
    assert app.text_area(key="text").value == question.inputs["text"]
    assert app.selectbox(key="dtype").value == "auto"


def test_every_page_answers_a_question() -> None:
    assert {question.page for question in EVERY} == PAGES.keys()
    assert {question.checkpoint for question in EVERY} - SNAPSHOTS.keys() == {*DEMOS, *ADAPTERS}


@pytest.mark.parametrize("question", EVERY, ids=lambda question: question.asked)
def test_a_question_opens_with_its_inputs(question: TourQuestion, open_app: Open) -> None:
    app = open_app(question.page, **question.query)
    assert not app.exception
    assert not app.error
    assert not [warning.value for warning in app.warning if "The link sets" in warning.value]
    assert app.title[0].value == PAGES[question.page].title
    for name in question.inputs:
        assert app.query_params[name]  # a name that no field takes, or a default, would be gone
