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
         "rung to nonsense, which does not exist: logits is shown instead. Choose from: dot, cosine"),
        ("lens", {"layer": "99"}, "layer to 99, which does not exist: 4 is shown instead."),
        ("lens", {"layer": "1e400"}, "layer to 1e400, which does not exist: 4 is shown instead."),
        ("lens", {"layer": "two"}, "layer to two, which does not exist: 4 is shown instead."),
        ("lens", {"other": "upload:gone"}, "other to upload:gone, which does not exist: the same"),
        ("embeddings", {"color": "mood"}, "color to mood, which does not exist: kind is shown"),
        ("embeddings", {"row": "99999999"}, "row to 99999999, which does not exist: the setting is ignored."),
        ("masked_lm", {"view": "Nope"}, "view to Nope, which does not exist: Answers is shown"),
        ("masked_lm", {"masks": "2,99"}, "masks to 99, which does not exist: the setting is ignored."),
        ("masked_lm", {"masks": "2,x"}, "masks to 2,x, which does not exist: the setting is ignored."),
        ("classes", {"module": "foo"}, "module to foo, which does not exist: "),
        ("heads", {"head": "Nope"}, "head to Nope, which does not exist: "),
        ("training", {"at": "x"}, None),  # a text: the page itself judges it
        ("lens", {"rung": "cosine", "layer": "2", "k": "7"}, None),
        ("embeddings", {"color": "norm", "row": "5", "method": "pca"}, None),
    ],
)  # fmt: skip
def test_a_link_that_leads_nowhere_says_so(
    slug: str, query: dict[str, str], sentence: str | None, open_app: Open
) -> None:
    app = open_app(slug, checkpoint="demo-bert", **query)
    assert not app.exception
    lost = [warning.value.replace("\\", "") for warning in app.warning]
    lost = [text for text in lost if text.startswith("The link sets ")]
    if sentence is None:
        assert not lost
    else:
        (text,) = lost
        assert sentence in text


def test_what_was_lost_is_said_until_something_else_is_chosen(open_app: Open) -> None:
    app = open_app("lens", layer="99", checkpoint="demo-bert")
    assert app.warning
    app.run()
    assert app.warning
    app.number_input(key="layer").set_value(3).run()
    assert not app.warning


@pytest.mark.parametrize(("slug", "k"), [("lens", "100000"), ("masked_lm", "0")])
def test_what_is_out_of_bounds_is_refused_until_something_else_is_chosen(open_app: Open, slug: str, k: str) -> None:
    app = open_app(slug, k=k, checkpoint="demo-bert")
    for _ in range(2):
        assert f"not {int(k):,}." in app.error[0].value.replace("\\", "")
        app.query_params.pop("k", None)  # as the field has the browser do, which cannot hold it
        app.run()
    assert f"not {int(k):,}." in app.error[0].value.replace("\\", "")
    app.number_input(key="k").set_value(3).run()
    assert not app.error
    app.number_input(key="k").set_value(5).run()  # what was shown in its place can be chosen
    assert not app.error


def test_a_number_beyond_all_numbers_is_refused(open_app: Open) -> None:
    app = open_app("lens", k="1e400", checkpoint="demo-bert")
    assert not app.exception
    assert "k" in app.error[0].value
    assert "1e400" in app.error[0].value


def test_what_another_page_takes_and_this_one_does_not_is_left_behind(open_app: Open) -> None:
    app = open_app("masked_lm", k="500", checkpoint="demo-bert")
    assert app.number_input(key="k").value == 500
    app.switch_page("pages/lens.py").run()
    assert not app.error
    assert not app.warning
    app.run()
    assert not app.error
    assert app.number_input(key="k").value == 5


@pytest.mark.parametrize(
    ("slug", "query", "sentence"),
    [
        ("lens", {"k": "500"}, "Tokens per cell must be between 1 and 100, not 500."),
        ("lens", {"pins": ",".join("abcdefghi")}, "Pinned tokens: give at most 8, not 9."),
        ("masked_lm", {"k": "0"}, "Tokens per mask must be between 1 and 1,000, not 0."),
        ("masked_lm", {"order": "right"}, "Filling order must be left or sure, not 'right'."),
        ("masked_lm", {"view": "Plausibility", "by": "x"},
         "Masked unit must be token or word, not 'x'."),
    ],
)  # fmt: skip
def test_an_option_that_no_checkpoint_could_take_is_refused(
    slug: str, query: dict[str, str], sentence: str, open_app: Open
) -> None:
    app = open_app(slug, checkpoint="demo-bert", **query)
    assert not app.exception
    (error,) = app.error
    assert error.value.replace("\\", "") == sentence


def test_a_link_to_a_checkpoint_that_is_gone_offers_the_others(open_app: Open) -> None:
    app = open_app("lens", checkpoint="upload:0123456789abcdef")
    assert "is no longer in the store" in app.error[0].value
    picker = app.selectbox(key="picked")
    assert picker.value is None
    picker.set_value("demo-gpt2").run()
    assert not app.error
    assert "demo-gpt2" in said(app)
