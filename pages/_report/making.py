"""A report under way: made in a thread beside the page, with progress and a way to stop it."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Mapping
from contextvars import copy_context
from dataclasses import dataclass

from inspector.errors import CancelledError, InspectorError
from inspector.report.bundle import write_bundle
from inspector.report.content import AnsweredSection, ReportOptions
from inspector.report.making import make_report
from inspector.report.page import write_page
from inspector.results.checkpoint import Opened
from inspector.serving.engine.asking import asks
from inspector.serving.engine.protocol import Engine, Progress, Status
from inspector.serving.notice import part_of_begun_work, refuse_new_work

ASKING, DRAWING = 0.5, 0.45  # shares of the whole: asking the model, drawing pictures
PICTURES = threading.Lock()  # one browser at a time, however many people want pictures
FAILED = "The report could not be created. Try again; the server's log has the details."


@dataclass(frozen=True, slots=True)
class Made:
    """A report's files."""

    page: bytes
    bundle: bytes
    problem: str | None  # why the bundle has no pictures
    parts: tuple[AnsweredSection, ...]


class Making:
    """Work under way; implements the engine's Job."""

    def __init__(
        self,
        engine: Engine,
        opened: Opened,
        *,
        sections: tuple[str, ...],
        setting: ReportOptions,
        beside: Mapping[str, Opened],
    ) -> None:
        self.id = secrets.token_urlsafe(8)
        self._asked = (engine, opened, sections, setting, beside)
        self._progress = Progress(0.0, "Starting")
        self._made: Made | None = None
        self._error: InspectorError | None = None
        self._cancelled = threading.Event()
        self._settled = threading.Event()
        refuse_new_work()
        with part_of_begun_work():
            threading.Thread(target=copy_context().run, args=(self._run,), name="report", daemon=True).start()

    @property
    def status(self) -> Status:
        """Where it stands."""
        if not self._settled.is_set():
            return "running"
        return "done" if self._made else "failed"

    @property
    def progress(self) -> Progress:
        """How far it has come."""
        return self._progress

    def result(self, timeout: float | None = None) -> Made:
        """Wait for the files; see the protocol."""
        if not self._settled.wait(timeout):
            raise TimeoutError("The report is still being created.")
        if self._made is None:
            error = self._error or InspectorError(FAILED)
            raise type(error)(*error.args)
        return self._made

    def cancel(self) -> None:
        """Stop at the next step."""
        self._cancelled.set()

    def _run(self) -> None:
        try:
            self._made = self._make()
        except InspectorError as error:
            self._error = error
        finally:
            self._settled.set()

    def _make(self) -> Made:
        engine, opened, sections, setting, beside = self._asked
        report = make_report(
            asks(engine, opened, *beside.values()),
            opened,
            sections=sections,
            setting=setting,
            beside=beside,
            tell=lambda share, text: self._tell(ASKING * share, text),
        )
        self._tell(ASKING, "Writing the page")
        page = write_page(report)
        start = 1 - DRAWING
        self._tell(start, "Waiting for the browser that draws the figures")
        with PICTURES:
            bundle, problem = write_bundle(
                report, page=page, tell=lambda share, text: self._tell(start + DRAWING * share, text)
            )
        return Made(page.encode(), bundle, problem, report.parts)

    def _tell(self, share: float, text: str) -> None:
        if self._cancelled.is_set():
            raise CancelledError("The report was stopped.")
        self._progress = Progress(share, text)
