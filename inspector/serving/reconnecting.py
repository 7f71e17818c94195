"""Whose a session is: after a lost connection, only who began it goes on with it.

Streamlit gives a session to anyone who names its id, and that stands in the addresses of uploads, which proxies log.
"""

from __future__ import annotations

from collections import OrderedDict

from starlette.datastructures import MutableHeaders
from starlette.types import Scope

PROTOCOLS = "Sec-WebSocket-Protocol"  # carries the protocol, a token, and the id of a session to go on with
WITHOUT_SESSION = 2
MOST_SESSIONS = 10_000  # that are remembered


class SessionOwners:
    """Who began which session; bounded, and for one thread."""

    def __init__(self) -> None:
        self._owners: OrderedDict[str, str] = OrderedDict()

    def note(self, session: str, person: str) -> bool:
        """Note that a session is somebody's; whether that was not known."""
        new = session not in self._owners
        self._owners[session] = person
        self._owners.move_to_end(session)
        if len(self._owners) > MOST_SESSIONS:
            self._owners.popitem(last=False)
        return new

    def keep_apart(self, scope: Scope, person: str) -> Scope:
        """A connection's scope, without the id of a session that this person did not begin: they get a new one."""
        scope = {**scope, "headers": list(scope["headers"])}
        headers = MutableHeaders(scope=scope)
        named = [each.strip() for each in ",".join(headers.getlist(PROTOCOLS)).split(",")]
        session = named[WITHOUT_SESSION:]
        if session and self._owners.get(session[0]) != person:
            headers[PROTOCOLS] = ", ".join(named[:WITHOUT_SESSION])
        return scope


SESSIONS = SessionOwners()
