"""The ways to run a model under Options, and the time of a streamed pass before it begins."""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd
import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from pages._ui import ways

Open = Callable[..., AppTest]


def captions(app: AppTest) -> list[str]:
    return [each.value for each in app.caption]


def test_a_streamed_pass_is_timed_before_it_begins(open_app: Open) -> None:
    app = open_app("lens", device="stream")
    assert not app.exception
    (said,) = [each for each in captions(app) if each.startswith("A streamed pass takes")]
    assert "and multiplying 16 tokens by it took" in said
    assert said not in [each.value for box in app.get("popover") for each in box.caption]  # which may be closed
    assert not [each for each in app.dataframe if "time per pass" in each.value.columns]
    app.toggle(key="ways").set_value(True).run()
    assert [each == "not estimated" for each in listed(app)["time per pass"]] == [True, True, False]


def listed(app: AppTest) -> pd.DataFrame:
    (found,) = [
        each.value for box in app.get("popover") for each in box.dataframe if "time per pass" in each.value.columns
    ]
    return found


def test_every_way_is_listed_and_none_is_timed_that_nobody_chose(open_app: Open) -> None:
    app = open_app("lens", ways="true")
    assert not app.exception
    assert not [each for each in captions(app) if "streamed pass" in each]
    assert listed(app)["device"].tolist() == ["cpu", "spread", "stream"]
    assert set(listed(app)["time per pass"]) == {"not estimated"}


def test_a_report_can_be_had_while_a_pass_is_timed(open_app: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ways, "say", lambda found: st.stop())  # nothing that follows is drawn
    app = open_app("report", device="stream")
    assert not [each for each in captions(app) if each.startswith("A streamed pass takes")]
    assert "Create report" in [each.label for each in app.button]
    assert [each for each in app.code if each.value.startswith("python -m inspector report")]
    monkeypatch.undo()
    assert [each for each in captions(app.run()) if each.startswith("A streamed pass takes")]
