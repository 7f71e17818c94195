"""What the server changes of Streamlit when it starts."""

from __future__ import annotations

import threading

import pytest
from streamlit.runtime.scriptrunner.script_runner import ScriptRunner

from inspector.serving.start import take_turns


def _runner(session: str) -> ScriptRunner:
    """A runner that has what starting one takes."""
    made = ScriptRunner.__new__(ScriptRunner)
    made._session_id, made._script_thread = session, None
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
