"""What a page reports by itself loses nothing of what a person does at that moment."""

from __future__ import annotations

from streamlit.proto.BackMsg_pb2 import BackMsg

from serving.reports import TICK, Reports

CLICK = object()
TICKED = f"$$INTERNAL_1-{TICK}__events"


def changed(fragment: str = "", *, page: str = "", alone: bool = False, **values: object) -> BackMsg:
    """A browser's message: what its widgets hold, the fragment that is to run, and whether a clock asks for it."""
    message = BackMsg()
    rerun = message.rerun_script
    rerun.fragment_id, rerun.page_script_hash, rerun.is_auto_rerun = fragment, page, alone
    for name, value in values.items():
        widget = rerun.widget_states.widgets.add()
        widget.id = TICKED if name == "tick" else name
        if value is CLICK:
            widget.trigger_value = True
        elif name == "tick":
            widget.json_trigger_value = str(value)
        else:
            widget.string_value = str(value)
    return message


def heard(reports: Reports, message: BackMsg) -> BackMsg | None:
    passed = reports.heard({"type": "websocket.receive", "bytes": message.SerializeToString()})
    return None if passed is None else BackMsg.FromString(passed["bytes"])


def test_what_is_sent_along_with_a_report_runs_everything() -> None:
    reports = Reports()
    for message, fragment in [
        (changed(text="a"), ""),
        (changed("ours", tick=1, text="a"), "ours"),  # nothing but the report
        (changed("ours", tick=1, text="b"), ""),
        (changed("ours", tick=1, text="b"), "ours"),
        (changed("ours", tick=1, text="b", button=CLICK), ""),
        (changed("ours", tick=1, text="b", button=CLICK), ""),  # clicked again
        (changed("ours", tick=1, text="b", new="c"), ""),
        (changed("ours", tick=1), "ours"),  # gone with its page
        (changed("another", text="d"), "another"),  # a fragment's own field
    ]:
        passed = heard(reports, message)
        assert passed
        assert passed.rerun_script.fragment_id == fragment
        assert passed.rerun_script.widget_states == message.rerun_script.widget_states


def test_a_report_of_a_page_that_was_left_is_dropped() -> None:
    reports = Reports()
    report, clock = changed("ours", page="first", tick=1), changed("ours", page="first", alone=True)
    assert heard(reports, changed())  # a session begins
    assert heard(reports, report)
    assert heard(reports, clock)
    assert heard(reports, changed(page="second"))  # a person goes there
    assert heard(reports, report) is None
    assert heard(reports, clock) is None
    assert heard(reports, changed("ours", page="second", tick=1))
    assert heard(reports, changed("ours", page="third", tick=1))  # the script went there
    assert heard(reports, changed(page="first"))
    assert heard(reports, changed("ours", page="third", tick=1)) is None
    assert heard(reports, report)
    assert heard(reports, changed(page="second"))
    assert heard(reports, changed(page="first"))  # and back, before the browser reported
    assert heard(reports, report)


def test_everything_else_passes_as_it_is() -> None:
    reports, other = Reports(), BackMsg(stop_script=True)
    assert heard(reports, other) == other
    message = {"type": "websocket.disconnect", "code": 1001}
    assert reports.heard(message) is message
