"""What a link asks for in vain is said, with what is shown instead."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from streamlit.testing.v1 import AppTest

from tests.app.looking import said

Open = Callable[..., AppTest]


@pytest.mark.parametrize(
    ("slug", "query", "sentence"),
    [
        ("lens", {"rung": "nonsense"},
         "rung = nonsense, which is not there: logits is shown instead. There is: dot, cosine"),
        ("lens", {"top": "999"}, "top = 999, which is not there: 5 is shown instead."),
        ("lens", {"layer": "99"}, "layer = 99, which is not there: 4 is shown instead."),
        ("lens", {"layer": "two"}, "layer = two, which is not there: 4 is shown instead."),
        ("lens", {"versus": "upload:gone"}, "versus = upload:gone, which is not there: the same"),
        ("embeddings", {"color": "mood"}, "color = mood, which is not there: kind is shown"),
        ("embeddings", {"row": "99999999"}, "row = 99999999, which is not there: it is left out."),
        ("masked_lm", {"view": "Nope"}, "view = Nope, which is not there: Answers is shown"),
        ("masked_lm", {"masks": "2,99"}, "masks = 99, which is not there: it is left out."),
        ("classes", {"module": "foo"}, "module = foo, which is not there: "),
        ("heads", {"head": "Nope"}, "head = Nope, which is not there: "),
        ("training", {"at": "x"}, None),  # a text: the page itself judges it
        ("lens", {"rung": "cosine", "layer": "2", "top": "7"}, None),
        ("embeddings", {"color": "norm", "row": "5", "method": "pca"}, None),
    ],
)  # fmt: skip
def test_a_link_that_leads_nowhere_says_so(
    slug: str, query: dict[str, str], sentence: str | None, open_app: Open
) -> None:
    app = open_app(slug, checkpoint="demo-bert", **query)
    assert not app.exception
    lost = [warning.value.replace("\\", "") for warning in app.warning]
    lost = [text for text in lost if text.startswith("The link asks for ")]
    if sentence is None:
        assert not lost
    else:
        (text,) = lost
        assert sentence in text


def test_what_was_lost_is_said_until_something_else_is_chosen(open_app: Open) -> None:
    app = open_app("lens", top="999", checkpoint="demo-bert")
    assert app.warning
    app.run()
    assert app.warning
    app.number_input(key="top").set_value(6).run()
    assert not app.warning


def test_a_link_to_a_checkpoint_that_is_gone_offers_the_others(open_app: Open) -> None:
    app = open_app("lens", checkpoint="upload:0123456789abcdef")
    assert "is no longer in the store" in app.error[0].value
    picker = app.selectbox(key="picked")
    assert picker.value is None
    picker.set_value("demo-gpt2").run()
    assert not app.error
    assert "demo-gpt2" in said(app).replace("\\", "")
