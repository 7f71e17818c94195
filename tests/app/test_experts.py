"""The tab of experts on the page about classes, with the real engine."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from streamlit.testing.v1 import AppTest

from tests.app.looking import said
from tests.merges import write_mixture

Open = Callable[..., AppTest]


def test_a_mixture_has_a_tab_of_its_experts(open_app: Open, tmp_path: Path) -> None:
    folder = str(write_mixture(tmp_path))
    app = open_app("classes", checkpoint=f"path:{folder}", agreed=f"path:{folder}", tab="Experts")
    assert not app.exception
    assert "2 routers of MixtralForCausalLM choose among 4 experts each." in said(app)
    assert "This is not routing" in said(app)
    app.text_input(key="routed").set_value("w1 w2 w3").run()
    assert not app.exception
    assert "The text has 5 tokens, each routed to at most 2 experts in a layer" in said(app)


def test_a_dense_model_has_no_such_tab(open_app: Open) -> None:
    app = open_app("classes")
    assert "Experts" not in [tab.label for tab in app.tabs]
