"""The server's log: what stands in its lines, and what never does."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator

import pytest

from inspector.serving import log
from inspector.serving.access_control import AccessControl
from inspector.serving.log import LOG, OURS, digest, record, start_log
from inspector.serving.settings import read_serving
from inspector.serving.start import facts, too_much_memory
from inspector.settings import read_settings
from tests.serving.test_serving_door import HOST, _app, ask

SECRET = "0123456789abcdef-secret"
PROXY = {"INSPECTOR_SIGN_IN": "proxy", "INSPECTOR_PROXY_SECRET": SECRET, "INSPECTOR_PEOPLE": "ada"}


@pytest.fixture
def written(capsys) -> Iterator[Callable[[], str]]:
    """Tells what was written since it was asked last; this process has its own log again afterwards."""
    ours = logging.getLogger(OURS)
    before = ours.handlers, ours.propagate, ours.level
    yield lambda: capsys.readouterr().err
    ours.handlers, ours.propagate = before[:2]
    ours.setLevel(before[2])


def test_a_line_of_text_has_a_time_and_facts_that_forge_no_other_line(written):
    start_log("text")
    record("session", person="ada\n2026-01-01 stop", session="", nbytes=3)
    LOG.warning("as libraries write: %s", "x")
    first, second = written().splitlines()
    assert first.split(" ", 1)[1] == 'session person="ada\\n2026-01-01 stop" nbytes=3'
    assert first.startswith("20")
    assert second.endswith(" as libraries write: x")


def test_a_line_of_json_is_one_object(written):
    start_log("json")
    record("delete", checkpoint=digest("f" * 64), owner="e\u202e")
    text = written()
    line = json.loads(text)
    assert (line["what"], line["checkpoint"], line["owner"]) == ("delete", digest("f" * 64), "e\u202e")
    assert text.isascii()
    assert "f" * 12 not in text  # whoever reads the log opens no upload


def test_lines_without_end_fill_no_disk(written, monkeypatch):
    monkeypatch.setattr(log, "MOST_LINES", 5)
    monkeypatch.setattr(log, "A_SECOND", 0)
    start_log("text")
    for _ in range(50):
        record("session")
    assert len(written().splitlines()) == 5


def test_lines_of_one_kind_hide_no_other_and_are_counted(written, monkeypatch):
    monkeypatch.setattr(log, "MOST_LINES", 5)
    now = [0.0]
    monkeypatch.setattr(log.time, "monotonic", lambda: now[0])
    start_log("json")
    for _ in range(20):
        record("refused", why="x")
    record("delete")
    now[0] = 1.0
    record("refused", why="x")
    lines = [json.loads(line) for line in written().splitlines()]
    assert [line["what"] for line in lines] == ["refused"] * 5 + ["delete", "refused"]
    assert lines[-1]["left_out_before"] == 15


def test_a_refusal_names_who_and_why_and_neither_secret_nor_address(written):
    start_log("text")
    guarded = AccessControl(_app, settings=read_serving(PROXY))
    known = [HOST, (b"x-inspector-secret", SECRET.encode())]
    ask(guarded, "/typed-by-somebody", headers=[*known, (b"x-forwarded-user", b"eve")])
    ask(guarded, "/typed-by-somebody", "PUT", headers=[HOST, (b"x-forwarded-user", b"mallory")])
    ask(guarded, "/lens", headers=[*known, (b"x-forwarded-user", b"ada")])
    text = written()
    first, second = text.splitlines()
    assert 'person="eve"' in first
    assert "ask the administrator" in first
    assert "person" not in second  # who says so without the proxy's secret is nobody
    assert SECRET not in text
    assert "typed" not in text


def test_the_first_line_tells_what_kind_of_server_it_is_without_its_secrets(tmp_path):
    found = read_settings({"INSPECTOR_HOME": str(tmp_path), "INSPECTOR_STORE": f"s3://{SECRET}/x"})
    told = facts(found, read_serving(PROXY | {"INSPECTOR_TOKEN": SECRET}))
    assert (told["shared_store"], told["sign_in"], told["workers"]) == ("s3", "proxy", found.workers)
    assert SECRET not in json.dumps(told)


def test_workers_that_may_take_more_than_the_machine_has_are_told_of(tmp_path):
    found = read_settings({"INSPECTOR_HOME": str(tmp_path), "INSPECTOR_WORKERS": "3", "INSPECTOR_WORKER_MB": "2000"})
    assert too_much_memory(found, 6_000_000_000) == ""
    assert too_much_memory(found, 5_999_000_000) == (
        "3 workers of 2,000 MB may take 6,000 MB, but this machine has 5,999 MB: set INSPECTOR_WORKERS or "
        "INSPECTOR_WORKER_MB lower."
    )
