"""A server that takes no new work before it is restarted, and what it tells everybody."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from inspector.errors import WorkerError
from inspector.serving import notice
from inspector.serving.engine.local import LocalEngine
from inspector.serving.notice import DRAINING, MOST_CHARACTERS, drain, show
from inspector.serving.readiness import faults
from inspector.settings import read_settings
from inspector.store.reference import CheckpointRef


@pytest.fixture(autouse=True)
def nothing_told_afterwards() -> Iterator[None]:
    yield
    notice._shown[:] = [notice.Notice()]


def test_what_is_known_is_answered_and_what_runs_goes_on_but_nothing_new_begins(tmp_path):
    settings = read_settings({"INSPECTOR_HOME": str(tmp_path)})
    engine = LocalEngine(settings, spare=False)
    try:
        opened = engine.open(CheckpointRef.parse("demo-bert")).result(120)
        known = engine.run(opened.fingerprint, "overview").result(120)
        runs = engine.run(opened.fingerprint, "tokenize", texts=["a cat"])
        drain(True, "ada")
        assert faults(settings) == (DRAINING,)
        runs.result(120)
        assert runs.status == "done"
        assert engine.run(opened.fingerprint, "overview").result(120) is known
        for ask in (
            lambda: engine.run(opened.fingerprint, "tokenize", texts=["a dog"]),
            lambda: engine.open(CheckpointRef.parse("demo-gpt2")),
        ):
            with pytest.raises(WorkerError, match="takes no new work"):
                ask()
        drain(False, "ada")
        assert faults(settings) == ()
        engine.run(opened.fingerprint, "tokenize", texts=["a dog"]).result(120)
    finally:
        engine.close()


def test_a_message_is_bounded_and_an_empty_one_ends_it():
    show("  " + "x" * 9_999, "ada")
    assert notice.notice().message == "x" * MOST_CHARACTERS
    show(" ", "ada")
    assert notice.notice() == notice.Notice()
