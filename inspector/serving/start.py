"""What happens once when the server starts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import streamlit as st
from streamlit.cli_util import open_browser
from streamlit.runtime.pages_manager import PagesManager
from streamlit.runtime.state.session_state import WStates
from streamlit.web.server.server_util import get_display_address, get_url


@asynccontextmanager
async def starting(app: Any) -> AsyncIterator[dict[str, Any]]:
    """Open a browser, as `streamlit run` does for apps that bring no server of their own."""
    if not st.get_option("server.headless"):
        address = get_display_address(st.get_option("server.address") or "localhost")
        asyncio.get_running_loop().call_soon(open_browser, get_url(address))
    yield {}


def name_pages_in_the_frame() -> None:
    """Have every page run inside the frame, on a server's first visit as well.

    Streamlit takes the files of a folder called pages for an app's pages, until an app names its
    own: a link to one would run that file alone, without navigation or checkpoint.
    """
    PagesManager.uses_pages_directory = False


def let_runs_overlap() -> None:
    """Have a run that ends go through a copy of its session's widgets.

    When a run is stopped, the next one may begin in another thread before the first has ended, each with a lock of its
    own. In Streamlit 1.67 a widget that comes or goes then ends the first one's thread with an error.
    """

    def over_a_copy(self: WStates) -> Iterator[str]:
        return iter(list(self.states))

    WStates.__iter__ = over_a_copy
