"""The Report page: what it proposes, what it makes, and how it is stopped."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable

import pytest
from streamlit.testing.v1 import AppTest

from inspector.report.making import DEFAULT
from pages._report import files as report_files
from pages._report import making as report_making
from tests.app.looking import button, said

Open = Callable[..., AppTest]


@pytest.fixture(autouse=True)
def _no_browser(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pictures have tests of their own, in the browser."""
    monkeypatch.setattr("inspector.browser.driving.find_chromium", lambda: None)


def sections(app: AppTest) -> list[str]:
    return app.multiselect(key="sections").value


def test_it_proposes_all_sections_and_then_the_pages_that_were_visited(open_app: Open) -> None:
    app = open_app("report")
    assert not app.exception
    assert app.title[0].value == "Report"
    assert sections(app) == list(DEFAULT)
    visited = open_app("training")
    visited.switch_page("pages/report.py").run()
    assert sections(visited) == ["training"]


def test_the_link_holds_the_sections_and_the_terminal_line_repeats_them(open_app: Open) -> None:
    app = open_app("report", sections=["Overview", "Training"], text="a [MASK].")
    assert sections(app) == ["overview", "training"]
    assert app.code[-1].value == (
        "python -m inspector report demo-bert -o report.zip --sections overview,training '--text=a [MASK].'"
    )


def test_a_report_is_made_and_offered_with_its_size(open_app: Open) -> None:
    app = open_app("report", checkpoint="demo-gpt2", sections=["Overview", "Masked LM"], text="the")
    button(app, "Create report").click().run()
    assert not app.exception
    assert "The text has one token" in said(app)
    assert "No Chromium was found" in said(app)
    _, making = app.session_state[report_files.UNDER_WAY]
    made = making.result(timeout=0)
    labels = [getattr(each, "label", "") for each in app.get("download_button")]
    assert [label.partition(",")[0] for label in labels[:2]] == ["HTML", "Everything as .zip"]
    assert f"{len(made.page) / 1e6:.1f} MB" in labels[0]
    names = zipfile.ZipFile(io.BytesIO(made.bundle)).namelist()
    assert names[:2] == ["report.html", "report.ipynb"]
    assert made.page.startswith(b"<!DOCTYPE html>")


def test_other_inputs_ask_for_another_report(open_app: Open) -> None:
    app = open_app("report", sections=["Overview"])
    button(app, "Create report").click().run()
    assert "Your report" in said(app)
    app.text_area(key="text").set_value("another text").run()
    assert "Your report" not in said(app)


def test_a_comparison_asks_for_a_second_checkpoint_and_stands_in_the_report(open_app: Open) -> None:
    app = open_app("report", sections=["Compare"])
    assert "Choose the checkpoint to compare with" in app.info[0].value
    assert "What changed between two checkpoints?" in said(app)
    app.selectbox(key="other").set_value("demo-gpt2").run()
    assert "--other=demo-gpt2" in app.code[0].value
    button(app, "Create report").click().run()
    assert not app.exception
    assert "**Compare** | 1 figure, 3 tables |" in said(app)  # tensors, ties that differ, special tokens


def test_no_section_is_an_invitation(open_app: Open) -> None:
    app = open_app("report")
    app.multiselect(key="sections").set_value([]).run()
    assert not app.exception
    assert "Choose at least one section." in said(app)


def test_a_stopped_report_says_so(open_app: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(*_, tell, **__) -> None:
        app.session_state[report_files.UNDER_WAY][1].cancel()
        tell(0.5, "going on")

    app = open_app("report", sections=["Overview"])
    monkeypatch.setattr(report_making, "write_bundle", stopped)
    button(app, "Create report").click().run()
    assert "The report was stopped." in said(app)
    assert not app.exception


def test_the_screenshot_view_hides_and_leads_back(open_app: Open) -> None:
    app = open_app("training", screenshot="1")
    assert not app.exception
    labels = [each.label for each in app.button]
    assert "Screenshot view" not in labels
    button(app, "Back to the controls").click().run()
    assert "screenshot" not in app.query_params
    button(app, "Screenshot view").click().run()
    assert app.query_params["screenshot"] in ("1", ["1"])
