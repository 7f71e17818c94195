"""What a page reports by itself loses nothing of what a person does at that moment."""

from __future__ import annotations

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

from inspector.serving.fragment_reruns import TICK, FragmentRerunFilter

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
        elif isinstance(value, tuple):
            widget.file_uploader_state_value.SetInParent()
            for file in value:
                widget.file_uploader_state_value.uploaded_file_info.add().name = file
        else:
            widget.string_value = str(value)
    return message


def heard(reports: FragmentRerunFilter, message: BackMsg) -> BackMsg | None:
    passed = reports.heard({"type": "websocket.receive", "bytes": message.SerializeToString()})
    return None if passed is None else BackMsg.FromString(passed["bytes"])


def run(reports: FragmentRerunFilter, fragment: str = "", *, end: bool = True) -> None:
    """The server says that a run begins, and ends."""
    for kind in ("new_session", "script_finished")[: 1 + end]:
        message = ForwardMsg()
        message.metadata.run.script_run_id = "run"
        message.metadata.run.fragment_ids.extend([fragment] if fragment else [])
        if kind == "new_session":
            message.new_session.name = "app"
        else:
            message.script_finished = ForwardMsg.FINISHED_SUCCESSFULLY
        reports.told(message)


def fields(message: BackMsg | None) -> list[str]:
    assert message
    return [widget.id for widget in message.rerun_script.widget_states.widgets]


def test_what_is_sent_along_with_a_report_runs_everything() -> None:
    now = [0.0]
    reports = FragmentRerunFilter(lambda: now[0])
    for seconds, message, fragment in [
        (0, changed(text="a"), ""),
        (0, changed("ours", tick=1, text="a"), "ours"),  # nothing but the report
        (0, changed("ours", tick=1, text="a", button=CLICK), ""),
        (0, changed("ours", tick=1, text="a", button=CLICK), ""),  # clicked again
        (0, changed("ours", tick=1, text="a", new="c"), "ours"),  # a field that has just been drawn
        (0, changed("ours", tick=1, files=()), "ours"),
        (0, changed("ours", tick=1, files=("a.zip",)), ""),
        (0, changed("ours", tick=1, files=("a.zip",)), "ours"),
        (0, changed("ours", tick=1, other=("b.zip",)), ""),
        (0, changed("another", text="a"), "another"),  # a fragment's own field
        (0, changed("ours", tick=1, text="b"), "ours"),  # a person, or the run before
        (0.4, changed("ours", tick=1, text="b"), "ours"),
        (0.2, changed("ours", tick=1, text="b"), ""),  # it stays
        (9, changed("ours", tick=1, text="b"), "ours"),
    ]:
        now[0] += seconds
        passed = heard(reports, message)
        assert passed
        assert passed.rerun_script.fragment_id == fragment
        pure = fragment == "ours"
        assert fields(passed) == ([TICKED] if pure else fields(message)), "a report says nothing of other fields"
        run(reports, fragment)


def test_a_report_waits_for_nothing_and_undoes_nothing() -> None:
    reports = FragmentRerunFilter()
    report, clock = changed("ours", tick=1, text="a"), changed("clocked", alone=True, text="a")
    assert heard(reports, changed(text="a"))
    assert heard(reports, report) is None  # the run that was asked for has not begun
    run(reports, end=False)
    assert heard(reports, report) is None
    assert heard(reports, clock) is None
    assert heard(reports, changed(text="b"))  # ends that run
    reports.told(ForwardMsg(script_finished=ForwardMsg.FINISHED_EARLY_FOR_RERUN))
    assert heard(reports, changed("ours", tick=1, text="b")) is None
    run(reports)
    assert fields(heard(reports, changed("ours", tick=1, text="b"))) == [TICKED]
    assert heard(reports, changed("another", text="c"))  # somebody does something in a fragment
    run(reports, "ours")  # the report's, which was asked for before
    assert heard(reports, changed("ours", tick=1, text="c")) is None
    run(reports, "another", end=False)
    assert heard(reports, changed("ours", tick=1, text="c")) is None
    run(reports, "another")
    assert fields(heard(reports, changed("clocked", alone=True, text="c"))) == []
    assert heard(reports, changed("clocked", text="d"))  # somebody does something in a fragment that reports
    assert heard(reports, changed("clocked", alone=True, text="d")) is None
    run(reports, "clocked")
    assert heard(reports, changed("clocked", alone=True, text="d"))


def test_a_report_waits_for_the_run_of_what_came_along_with_a_report() -> None:
    reports = FragmentRerunFilter()
    assert heard(reports, changed("ours", tick=1, files=()))
    passed = heard(reports, changed("ours", tick=1, files=("a.zip",)))
    assert passed
    assert passed.rerun_script.fragment_id == ""
    run(reports, "ours")  # the first report's; Streamlit makes one of what waits, without the file if a report joins it
    assert heard(reports, changed("ours", tick=1, files=("a.zip",))) is None
    run(reports)
    assert fields(heard(reports, changed("ours", tick=1, files=("a.zip",)))) == [TICKED]


def test_a_report_of_a_page_that_was_left_is_dropped() -> None:
    reports = FragmentRerunFilter()

    def goes_to(page: str) -> bool:
        passed = heard(reports, changed(page=page))
        run(reports)
        return passed is not None

    report, clock = changed("ours", page="first", tick=1), changed("ours", page="first", alone=True)
    assert goes_to("")  # a session begins
    assert heard(reports, report)
    assert heard(reports, clock)
    assert goes_to("second")
    assert heard(reports, report) is None
    assert heard(reports, clock) is None
    clicked = heard(reports, changed("ours", page="first", tick=1, button=CLICK))
    assert clicked  # what is done at that moment is done, on the page that was chosen
    assert (clicked.rerun_script.page_script_hash, clicked.rerun_script.fragment_id) == ("second", "")
    run(reports)
    assert heard(reports, changed("ours", page="second", tick=1))
    assert heard(reports, changed("ours", page="third", tick=1))  # the script went there
    assert goes_to("first")
    assert heard(reports, changed("ours", page="third", tick=1)) is None
    assert heard(reports, report)
    assert goes_to("second")
    assert goes_to("first")  # and back, before the browser reported
    assert heard(reports, report)


def test_everything_else_passes_as_it_is() -> None:
    reports, other = FragmentRerunFilter(), BackMsg(stop_script=True)
    assert heard(reports, other) == other
    message = {"type": "websocket.disconnect", "code": 1001}
    assert reports.heard(message) is message
