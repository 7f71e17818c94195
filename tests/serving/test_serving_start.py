"""What the server changes of Streamlit when it starts."""

from __future__ import annotations

import threading

import pytest
from streamlit.proto.WidgetStates_pb2 import WidgetStates
from streamlit.runtime.scriptrunner.script_runner import ScriptRunner
from streamlit.runtime.scriptrunner_utils.script_requests import RerunData, ScriptRequests

from inspector.serving.start import take_turns


def _runner(session: str, **clicked: bool) -> ScriptRunner:
    """A runner that has what starting one takes, asked to run after clicks."""
    made = ScriptRunner.__new__(ScriptRunner)
    made._session_id, made._script_thread, made._requests = session, None, ScriptRequests()
    states = WidgetStates()
    for name, value in clicked.items():
        states.widgets.add(id=name, trigger_value=value)
    made._requests.request_rerun(RerunData(widget_states=states))
    return made


def test_a_sessions_run_begins_when_the_one_before_it_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[ScriptRunner] = []
    first, second, other = _runner("a"), _runner("a"), _runner("b")
    may_end, other_begun = threading.Event(), threading.Event()

    def run(self: ScriptRunner) -> None:
        begun.append(self)
        if self is first:
            may_end.wait()
        if self is other:
            other_begun.set()

    monkeypatch.setattr(ScriptRunner, "_run_script_thread", run)
    monkeypatch.setattr(ScriptRunner, "start", ScriptRunner.start)  # both are put back afterwards
    take_turns()
    first.start()
    second.start()
    other.start()
    other_begun.wait()  # another session waits for nobody
    assert second not in begun
    may_end.set()
    assert second._script_thread is not None
    second._script_thread.join()
    assert begun[-1] is second
    assert {*begun} == {first, second, other}


def test_what_was_clicked_is_left_to_the_next_run_by_one_that_never_began(monkeypatch: pytest.MonkeyPatch) -> None:
    heard: dict[ScriptRunner, list[str]] = {}
    first, second, third = _runner("a"), _runner("a", early=True), _runner("a", late=True)
    first_begun, may_end = threading.Event(), threading.Event()

    def run(self: ScriptRunner) -> None:
        request = self._requests.on_scriptrunner_ready()
        if request.type.value == "RERUN":
            states = request.rerun_data.widget_states
            heard[self] = [widget.id for widget in states.widgets] if states else []
        if self is first:
            first_begun.set()
            may_end.wait()

    monkeypatch.setattr(ScriptRunner, "_run_script_thread", run)
    monkeypatch.setattr(ScriptRunner, "start", ScriptRunner.start)
    take_turns()
    first.start()
    first_begun.wait()
    second.start()
    second._requests.request_stop()
    third.start()
    may_end.set()
    assert third._script_thread is not None
    third._script_thread.join()
    assert second not in heard
    assert sorted(heard[third]) == ["early", "late"]
