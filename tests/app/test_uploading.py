"""Files that are uploaded: what memory and disk hold of them afterwards, whatever happens."""

from __future__ import annotations

import gc
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager
from streamlit.runtime.scriptrunner_utils.exceptions import RerunException
from streamlit.runtime.scriptrunner_utils.script_requests import RerunData
from streamlit.runtime.uploaded_file_manager import UploadedFile
from streamlit.testing.v1 import AppTest

from inspector.errors import InspectorError
from inspector.serving.engine.protocol import Job
from inspector.settings import settings
from pages._ui import session
from pages._ui.opening import arrivals
from tests.app.looking import metrics
from tests.app.test_opening import tiny_zip, upload

Open = Callable[..., AppTest]


@pytest.fixture
def managers(monkeypatch: pytest.MonkeyPatch) -> list[MemoryUploadedFileManager]:
    """Every manager of files that the app gets."""
    made: list[MemoryUploadedFileManager] = []
    start = MemoryUploadedFileManager.__init__

    def started(self: MemoryUploadedFileManager, upload_endpoint: str) -> None:
        start(self, upload_endpoint)
        made.append(self)

    monkeypatch.setattr(MemoryUploadedFileManager, "__init__", started)
    return made


def held_nbytes() -> int:
    """Bytes of files that are held anywhere in this process."""
    gc.collect()
    files = [each for each in gc.get_objects() if type(each) is UploadedFile]
    return sum(file.getbuffer().nbytes for file in files if not file.closed)


@pytest.mark.parametrize("good", [True, False])
def test_nothing_is_held_of_an_upload_that_was_opened_or_refused(
    good: bool, open_app: Open, managers: list[MemoryUploadedFileManager]
) -> None:
    app = upload(open_app(), "given.zip", tiny_zip(3) if good else b"PK\x03\x04 no archive")
    assert bool(app.error) is not good
    assert any(manager.file_storage for manager in managers)  # it came through one of them
    assert [manager.get_stats() for manager in managers if manager.get_stats()] == []
    assert held_nbytes() == 0
    assert list((settings().home / "incoming").glob("[!.]*")) == []


def test_uploads_in_a_row_and_a_good_one_after_a_refusal(open_app: Open) -> None:
    app = open_app()
    for number in (4, 5):
        app = upload(app, f"row{number}.zip", tiny_zip(number))
        assert app.session_state["opened"].name == f"row{number}"
    app = upload(app, "bad.zip", b"PK\x03\x04 no archive")
    assert "bad" in app.error[0].value
    app = upload(app, "good.zip", tiny_zip(6))
    assert not app.error
    assert app.session_state["opened"].name == "good"
    assert metrics(app)["Vocabulary rows"] == "30"


def test_a_page_clicked_before_the_browser_has_heard_of_an_upload_shows_the_upload(open_app: Open) -> None:
    """The browser sends with the click what its list of checkpoints said before: nobody chose that."""
    app = upload(open_app(checkpoint="demo-gpt2"), "late.zip", tiny_zip(8))
    app.switch_page("pages/padding.py")
    app.selectbox(key="picked").set_value("demo-gpt2").run()
    assert app.session_state["opened"].name == "late"
    app.selectbox(key="picked").set_value("demo-gpt2").run()
    assert app.session_state["opened"].name == "demo-gpt2"


def test_a_run_that_ends_anywhere_while_it_opens_is_taken_up_by_the_next(
    open_app: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = open_app()
    wait, ended = session.wait, []

    def end_first(job: Job[Any], *, stopped_key: tuple[str, ...], **more: Any) -> Any:
        if stopped_key[0] == "open" and stopped_key not in ended:
            ended.append(stopped_key)
            with suppress(InspectorError):
                wait(job, stopped_key=stopped_key)
            raise RerunException(RerunData())
        return wait(job, stopped_key=stopped_key, **more)

    monkeypatch.setattr(arrivals.session, "wait", end_first)
    app = upload(app, "again.zip", tiny_zip(7))
    for _ in range(3):
        app.run()
    assert app.session_state["opened"].name == "again"
    app = upload(app, "bad.zip", b"PK\x03\x04 no archive")
    for _ in range(3):
        app.run()
    assert "bad" in app.error[0].value  # and not that it is gone
    opened = [reference.partition(":")[0] for _, reference in ended if "incoming" in reference]
    assert opened == ["incoming", "incoming"]
    assert list((settings().home / "incoming").glob("[!.]*")) == []


def test_an_upload_that_nobody_opens_any_more_is_discarded() -> None:
    arrival = arrivals.Arrival([], "incoming")
    kind, _, upload_id = arrival.store().partition(":")
    folder = settings().home / kind / upload_id
    assert folder.is_dir()
    del arrival  # as a session does that ends
    gc.collect()
    assert not folder.exists()
