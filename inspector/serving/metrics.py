"""Numbers about the server for Prometheus, at an address of their own that `INSPECTOR_METRICS` opens.

They name no person, no checkpoint and no text. Without the setting, nothing is counted and the library is not
imported. What is counted here is what the server's log and its jobs tell; the rest is looked at when it is asked for.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from threading import Lock
from typing import Any, Protocol
from weakref import WeakSet

from inspector.errors import SettingsError
from inspector.program import how_to_add
from inspector.serving.log import LOG
from inspector.settings import Settings
from inspector.store.keeping.quota import used_nbytes

SECONDS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 900.0)  # a question's, upper bounds
NO_LIBRARY = (
    f"INSPECTOR_METRICS is set, but prometheus_client is not installed: run {how_to_add('metrics')}, or unset it."
)


class Counted(Protocol):
    """A job, as far as it is counted."""

    question: str
    asked: float

    @property
    def status(self) -> str:
        """As in the engine's protocol."""
        ...


class _Metrics:
    """The families that are counted as things happen, and the look at the rest."""

    def __init__(self, settings: Settings, is_ready: Callable[[], bool]) -> None:
        import prometheus_client as prometheus
        from prometheus_client.core import GaugeMetricFamily

        self._gauge = GaugeMetricFamily
        self._settings, self._is_ready = settings, is_ready
        self._jobs: WeakSet[Counted] = WeakSet()  # under way
        self._lock = Lock()
        self.server: Any = None  # that answers
        self.registry = prometheus.CollectorRegistry()
        prometheus.ProcessCollector(registry=self.registry)
        self._seconds = prometheus.Histogram(
            "inspector_question_seconds",
            "From a question to its answer, the time that it waited for a worker included.",
            ["question", "outcome"],
            buckets=SECONDS,
            registry=self.registry,
        )
        self._events = prometheus.Counter(
            "inspector_events", "Lines of the log, by what happened.", ["event"], registry=self.registry
        )
        self._ended = prometheus.Counter(
            "inspector_workers_ended",
            "Workers that were not ended on purpose, by the setting that they exceeded.",
            ["cause"],
            registry=self.registry,
        )
        self.registry.register(self)  # pyright: ignore[reportArgumentType]  # has `collect`, which is all that is asked

    def begin(self, job: Counted) -> None:
        with self._lock:
            self._jobs.add(job)

    def settle(self, job: Counted, seconds: float) -> None:
        with self._lock:
            self._jobs.discard(job)
        self._seconds.labels(job.question, job.status).observe(seconds)

    def count(self, record: logging.LogRecord) -> None:
        self._events.labels(str(record.msg)).inc()  # a constant: what differs stands in the facts
        if cause := getattr(record, "facts", {}).get("cause"):
            self._ended.labels(cause).inc()

    def collect(self) -> Iterator[Any]:
        """What is looked at when somebody asks."""
        from streamlit.runtime import Runtime

        gauge = self._gauge
        yield gauge("inspector_ready", "1: the ready address answers so; 0: it tells what is wrong.", self._is_ready())
        sessions = Runtime.instance()._session_mgr.num_active_sessions() if Runtime.exists() else 0
        yield gauge("inspector_sessions", "Browser tabs that are connected.", sessions)
        with self._lock:
            states = Counter(job.status for job in self._jobs)
        questions = gauge("inspector_questions", "Questions under way, by state.", labels=["state"])
        for state in ("waiting", "running"):
            questions.add_metric([state], states[state])
        yield questions
        yield gauge("inspector_store_bytes", "What the local home holds.", used_nbytes(self._settings))
        yield gauge("inspector_store_limit_bytes", "What it may hold.", self._settings.store_nbytes)


class _Counting(logging.Handler):
    def __init__(self, metrics: _Metrics) -> None:
        super().__init__()
        self._metrics = metrics

    def emit(self, record: logging.LogRecord) -> None:
        self._metrics.count(record)


_started: list[_Metrics] = []  # one of this process, or none


def start_metrics(address: tuple[str, int] | None, settings: Settings, is_ready: Callable[[], bool]) -> int | None:
    """Count from now on, and answer at an address of this machine.

    Args:
        address: Host and port; None: nothing is counted.
        settings: Of the store.
        is_ready: Whether the server can do its work.

    Returns:
        The port; None: there is none.

    Raises:
        SettingsError: If the library is missing, or nothing can listen there.
    """
    if address is None:
        return None
    if find_spec("prometheus_client") is None:
        raise SettingsError(NO_LIBRARY)
    import prometheus_client as prometheus

    metrics = _Metrics(settings, is_ready)
    try:
        server, _ = prometheus.start_http_server(address[1], address[0], metrics.registry)
        metrics.server = server
    except OSError as error:
        raise SettingsError(
            f"Nothing can listen at INSPECTOR_METRICS, {address[0]}:{address[1]} ({error.strerror}): set it to a "
            "free port of this machine."
        ) from None
    LOG.addHandler(_Counting(metrics))
    _started[:] = [metrics]
    return server.server_port


def begin(job: Counted) -> None:
    """Count a question as under way."""
    for metrics in _started:
        metrics.begin(job)


def settle(job: Counted, seconds: float) -> None:
    """Count a question as answered, refused or cancelled, as its status says."""
    for metrics in _started:
        metrics.settle(job, seconds)
