"""What pages report by themselves, kept apart from what a person does.

A fragment that reports each second how far a file has come, or that draws itself again, asks for a run
of that fragment alone. In Streamlit 1.67 that can undo what a person or a script does at the same moment:

- What changes within a millisecond is one message, and runs a fragment alone if one change is a
  fragment's: an upload, or a click, is gone.
- Until the browser hears that another page runs, a report asks for the page that was left. If both
  wait, the last one counts: the choice of a page is gone.
- A report says what all fields held when it was sent, and takes its turn after the run that goes on:
  what that run sets is taken back.

So a report is passed on when nothing else runs or waits, and says nothing of other fields.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from starlette.types import Message
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.proto.WidgetStates_pb2 import WidgetState

TICK = "under way"  # in the id of what reports
TRIGGERS = {"trigger_value", "string_trigger_value", "json_trigger_value", "chat_input_value"}  # hold for one message
CALM_SECONDS = 0.5


class FragmentRerunFilter:
    """One connection of a browser; `clock` tells the seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._held: dict[str, bytes] = {}  # id of a field -> what it holds, as far as the server was told
        self._changed: frozenset[tuple[str, bytes]] = frozenset()  # what reports show of fields beyond that
        self._since = 0.0  # when it was first seen while nothing ran
        self._page = ""  # hash of the page that the last message was about
        self._left: str | None = None  # the page that a person left, until the browser reports from another
        self._asked: str | None = None  # the fragment whose run waits for a person ("": all of them), if one does
        self._runs = False  # whether a run that is no report's goes on
        self._fragments: set[str] = set()  # that report

    def heard(self, message: Message) -> Message | None:
        """A message of the browser as it is to be taken; None: not at all."""
        if message["type"] != "websocket.receive":
            return message
        request = BackMsg.FromString(message["bytes"])
        if request.WhichOneof("type") != "rerun_script":
            return message
        rerun = request.rerun_script
        others = {widget.id: widget for widget in rerun.widget_states.widgets if TICK not in widget.id}
        ticks = len(others) < len(rerun.widget_states.widgets)
        if rerun.is_auto_rerun or (ticks and not self._does_more(others)):
            return self._report(request, message)
        if ticks:
            rerun.ClearField("fragment_id")  # it tells of more than its fragment
        self._asked, self._changed = rerun.fragment_id, frozenset()
        self._fragments.discard(rerun.fragment_id)  # its next run is a person's
        self._held = {name: widget.SerializeToString() for name, widget in others.items() if not _is_trigger(widget)}
        if not ticks:
            self._left = self._page if rerun.page_script_hash != self._page else None
            self._page = rerun.page_script_hash
            return message
        if rerun.page_script_hash == self._left:
            rerun.page_script_hash = self._page
        return {**message, "bytes": request.SerializeToString()}

    def told(self, message: ForwardMsg) -> None:
        """Note what the server says of its runs."""
        kind, fragments = message.WhichOneof("type"), message.metadata.run.fragment_ids
        if fragments and self._fragments.issuperset(fragments):
            return
        if kind == "new_session":
            self._runs = True
            if not fragments or self._asked in fragments:
                self._asked = None
        elif kind == "script_finished":
            self._runs = False

    def _does_more(self, others: Mapping[str, WidgetState]) -> bool:
        """Whether a report came along with what a person has done.

        Clicks and files are a person's. Other values may be what a run has set, in a browser that has not drawn all of
        it: those count when they stay while nothing runs.
        """
        told = {name: widget.SerializeToString() for name, widget in others.items()}
        if any(
            _is_trigger(widget) or (_has_files(widget) and self._held.get(name) != told[name])
            for name, widget in others.items()
        ):
            return True
        changed = frozenset((name, data) for name, data in told.items() if self._held.get(name, data) != data)
        now = self._clock()
        if changed != self._changed or self._asked is not None or self._runs:
            self._changed, self._since = changed, now
        return bool(changed) and now - self._since >= CALM_SECONDS

    def _report(self, request: BackMsg, message: Message) -> Message | None:
        rerun = request.rerun_script
        if self._asked is not None or self._runs or rerun.page_script_hash == self._left:
            return None
        self._fragments.add(rerun.fragment_id)
        self._page, self._left = rerun.page_script_hash, None
        own = [widget for widget in rerun.widget_states.widgets if TICK in widget.id]
        del rerun.widget_states.widgets[:]
        rerun.widget_states.widgets.extend(own)
        return {**message, "bytes": request.SerializeToString()}


def _is_trigger(widget: WidgetState) -> bool:
    return widget.WhichOneof("value") in TRIGGERS


def _has_files(widget: WidgetState) -> bool:
    return bool(widget.file_uploader_state_value.uploaded_file_info)
