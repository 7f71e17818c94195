"""What the server changes of Streamlit when it starts."""

from __future__ import annotations

import pytest
from streamlit.runtime.state.session_state import Value, WStates

from inspector.serving.start import let_runs_overlap


def test_a_widget_may_come_and_go_while_a_run_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(WStates, "__iter__", WStates.__iter__)  # put back afterwards
    states = WStates()
    for name in ("a", "b", "c"):
        states[name] = Value(1)

    def pass_over() -> list[str]:
        passed = []
        for name in states:
            passed.append(name)
            states.states.pop("c", None)
            states[f"new {name}"] = Value(2)
        return passed

    with pytest.raises(RuntimeError, match="changed size"):  # as Streamlit does it: this test tells when it is mended
        pass_over()
    states["c"] = Value(1)
    let_runs_overlap()
    assert {"a", "b", "c"} <= {*pass_over()}
