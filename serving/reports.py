"""What pages report by themselves, kept apart from what a person does.

A fragment that reports each second how far a file has come, or that draws itself again, asks for a run
of that fragment alone. Streamlit 1.67 loses what a person does at the same moment:

- What changes within a millisecond is one message, and runs a fragment alone if one change is a
  fragment's: an upload, or a click, is gone.
- Until the browser hears that another page runs, a report asks for the page that was left. If both
  wait, the last one counts: the choice of a page is gone.
"""

from __future__ import annotations

from starlette.types import Message
from streamlit.proto.BackMsg_pb2 import BackMsg

TICK = "under way"  # in the id of what reports
TRIGGERS = {"trigger_value", "string_trigger_value", "json_trigger_value", "chat_input_value"}  # hold for one message


class Reports:
    """One connection of a browser."""

    def __init__(self) -> None:
        self._page = ""  # hash of the page that the last message was about
        self._left: str | None = None  # the page that a person left, until the browser reports from another
        self._held: dict[str, bytes] = {}  # id of a widget -> what it holds

    def heard(self, message: Message) -> Message | None:
        """A message of the browser as it is to be taken.

        Returns:
            None for a report of a page that was left; one that carries more than a report runs everything.
        """
        if message["type"] != "websocket.receive":
            return message
        request = BackMsg.FromString(message["bytes"])
        if request.WhichOneof("type") != "rerun_script":
            return message
        rerun = request.rerun_script
        others = {widget.id: widget for widget in rerun.widget_states.widgets if TICK not in widget.id}
        told = {name: widget.SerializeToString() for name, widget in others.items()}
        ticks = len(others) < len(rerun.widget_states.widgets)
        page = rerun.page_script_hash
        if ticks or rerun.is_auto_rerun:
            if page == self._left:
                return None
            self._left = None
        elif page != self._page:
            self._left = self._page
        self._page = page
        more = told.items() - self._held.items()
        self._held = {name: told[name] for name, widget in others.items() if widget.WhichOneof("value") not in TRIGGERS}
        if not (more and ticks and rerun.fragment_id):
            return message
        rerun.ClearField("fragment_id")
        return {**message, "bytes": request.SerializeToString()}
