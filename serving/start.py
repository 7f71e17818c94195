"""What happens once when the server starts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import streamlit as st
from streamlit.cli_util import open_browser
from streamlit.web.server.server_util import get_display_address, get_url


@asynccontextmanager
async def starting(app: Any) -> AsyncIterator[dict[str, Any]]:
    """Open a browser, as `streamlit run` does for apps that bring no server of their own."""
    if not st.get_option("server.headless"):
        address = get_display_address(st.get_option("server.address") or "localhost")
        asyncio.get_running_loop().call_soon(open_browser, get_url(address))
    yield {}
