"""The numbers for Prometheus: what is counted, what is looked at, and where."""

from __future__ import annotations

import logging
import socket
import sys
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from inspector.errors import RequestError, SettingsError
from inspector.sandbox import limits
from inspector.serving import metrics
from inspector.serving.engine.jobs import LocalJob
from inspector.serving.engine.wire import OpenRequest, RunRequest
from inspector.serving.log import LOG, record
from inspector.serving.metrics import start_metrics
from inspector.serving.settings import read_serving
from inspector.serving.trial import free_port, start_app, wait_until_up
from inspector.settings import read_settings
from inspector.store.manifests.entries import MAPS
from inspector.store.reference import CheckpointRef
from tests.serving.engine.engine_harness import eventually

Numbers = dict[tuple[str, ...], float]  # by name and labels


def numbers_at(port: int) -> Numbers:
    """What Prometheus would read there."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60) as answer:
        text = answer.read().decode()
    samples = (sample for family in text_string_to_metric_families(text) for sample in family.samples)
    return {(sample.name, *sample.labels.values()): sample.value for sample in samples}


@pytest.fixture
def counting(tmp_path: Path) -> Iterator[Callable[[], Numbers]]:
    """Counts in this process, and tells what was counted; nothing is counted afterwards."""
    handlers, level, ready = LOG.handlers[:], LOG.level, iter([True, False, True, True])
    LOG.setLevel(logging.INFO)
    settings = read_settings({"INSPECTOR_HOME": str(tmp_path / "home"), "INSPECTOR_STORE_MB": "7"})
    settings.home.mkdir()
    (settings.home / MAPS).mkdir()
    (settings.home / MAPS / "file").write_bytes(b"x" * 20_000)
    port = start_metrics(("127.0.0.1", 0), settings, lambda: next(ready))
    assert port
    yield lambda: numbers_at(port)
    metrics._started[0].server.shutdown()
    LOG.handlers[:] = handlers
    LOG.setLevel(level)
    metrics._started.clear()


def a_job(question: str) -> LocalJob:
    request = RunRequest("f" * 64, "a.b:c", {})
    return LocalJob(question, request, keep=False, stop=lambda job: None, question=question)


def test_questions_are_counted_by_their_state_and_then_by_what_became_of_them(counting):
    waits, runs, fails = a_job("lens"), a_job("lens"), a_job("overview")
    opening = LocalJob("o", OpenRequest(CheckpointRef.parse("demo-bert")), keep=True, stop=lambda job: None)
    runs.start(1)
    found = counting()
    assert found["inspector_questions", "waiting"] == 3
    assert found["inspector_questions", "running"] == 1
    runs.succeed("result", 1)
    fails.fail(RequestError("No."))
    opening.succeed("opened", 1)
    found = counting()
    assert found["inspector_questions", "waiting"] == 1
    assert found["inspector_questions", "running"] == 0
    counts = {
        tuple(sorted(labels)): value
        for (name, *labels), value in found.items()
        if name == "inspector_question_seconds_count"
    }
    assert counts == {("done", "lens"): 1, ("failed", "overview"): 1, ("done", "open"): 1}
    assert waits.status == "waiting"


def test_readiness_store_and_events_are_told(counting):
    over = limits.limit_error(limits.MEMORY, read_settings({}))
    record("worker ended", cause=limits.cause_of(over), reason=str(over))
    record("worker ended", cause=limits.cause_of(limits.death_error(-9)), reason="…")
    record("stored", owner="ada")
    found = counting()
    assert [found["inspector_ready",], counting()["inspector_ready",]] == [1, 0]
    assert found["inspector_sessions",] == 0
    assert found["inspector_store_bytes",] >= 20_000
    assert found["inspector_store_limit_bytes",] == 7_000_000
    assert found["inspector_events_total", "worker ended"] == 2
    assert found["inspector_events_total", "stored"] == 1
    assert found["inspector_workers_ended_total", "INSPECTOR_WORKER_MB"] == 1
    assert found["inspector_workers_ended_total", "crash"] == 1
    assert not [key for key in found if "ada" in key]  # no person


@pytest.mark.parametrize("limit", [*limits.WATCHED, limits.KEPT, limits.OPENING])
def test_the_cause_of_each_limit_is_its_setting(limit):
    assert limits.cause_of(limits.limit_error(limit, read_settings({}))) == limit.setting


def test_nothing_is_counted_without_the_setting(monkeypatch):
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    assert read_serving({}).metrics is None
    assert start_metrics(None, read_settings({}), lambda: True) is None
    job = a_job("lens")
    job.succeed("result", 1)
    assert metrics._started == []


def test_a_port_that_is_taken_and_a_library_that_is_missing_stop_the_start_in_a_sentence(monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(SettingsError, match=rf"127\.0\.0\.1:{port} \(.*\): set it to a free port"):
            start_metrics(("127.0.0.1", port), read_settings({}), lambda: True)
    monkeypatch.setattr(metrics, "find_spec", lambda name: None)
    with pytest.raises(SettingsError, match="prometheus_client is not installed: run pip install"):
        start_metrics(("127.0.0.1", 0), read_settings({}), lambda: True)
    assert metrics._started == []


@pytest.mark.parametrize(
    ("text", "address"),
    [("9464", ("127.0.0.1", 9464)), ("0.0.0.0:9464", ("0.0.0.0", 9464)), ("[::1]:9464", ("::1", 9464)), ("", None)],
)
def test_an_address_is_a_port_of_this_machine_unless_it_names_a_host(text, address):
    assert read_serving({"INSPECTOR_METRICS": text}).metrics == address


@pytest.mark.parametrize("text", ["metrics", "127.0.0.1:", "0", "65536", "-1", "1e3", "9" * 5_000])
def test_no_address_is_refused(text):
    with pytest.raises(SettingsError, match="set it to a port, or to HOST:PORT"):
        read_serving({"INSPECTOR_METRICS": text})


def test_a_server_answers_there_and_not_at_its_own_address(tmp_path):
    port = free_port()
    server = start_app(tmp_path, INSPECTOR_METRICS=str(port))
    try:
        wait_until_up(server)
        eventually(lambda: numbers_at(port)["inspector_ready",] == 1)  # its first look may take a while
        found = numbers_at(port)
        with urllib.request.urlopen(f"{server.url}/metrics", timeout=60) as answer:
            assert b"inspector_ready" not in answer.read()
    finally:
        server.stop()
    assert found["inspector_ready",] == 1
    assert found["inspector_events_total", "start"] == 1
    assert found["process_resident_memory_bytes",] > 0
