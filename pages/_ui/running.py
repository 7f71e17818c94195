"""The engine of this server. Imports little, so that its first worker can start before the rest."""

from __future__ import annotations

from contextlib import suppress
from functools import partial

import streamlit as st
from streamlit.runtime import Runtime
from streamlit.runtime.scriptrunner import get_script_run_ctx

from inspector.errors import CheckpointError
from inspector.serving.engine.choice import start_engine
from inspector.serving.engine.protocol import Engine
from inspector.serving.engine.shares import SessionTab, ask_as
from inspector.serving.place import served_settings
from inspector.serving.settings import serving
from inspector.serving.storing import registry
from inspector.settings import settings
from inspector.store.reference import CheckpointRef
from pages._ui import sign_in

FIRST = "demo-bert"  # open at first paint, unless the server was started with another


def first() -> str:
    """The reference of what is open at first paint."""
    return serving().opened or FIRST


def engine() -> Engine:
    """The engine of this server, asked from now on by the tab that this thread draws."""
    context = get_script_run_ctx()
    ask_as(sign_in.who(), SessionTab(context.session_id, partial(_is_open, context.session_id)) if context else None)
    return started()


def _is_open(session_id: str) -> bool:
    return not Runtime.exists() or Runtime.instance().is_active_session(session_id)


@st.cache_resource(show_spinner=False)
def started() -> Engine:
    """The engine of this server, already opening what is shown first.

    Raises:
        SettingsError: If a setting cannot be used.
    """
    engine = start_engine(served_settings())
    registry.close_to_others(settings())
    registry.sweep(settings())  # what servers that were killed left half-written
    if "checkpoint" not in st.query_params:
        with suppress(CheckpointError):  # the first page says what is wrong with it
            engine.open(CheckpointRef.parse(first()))
    return engine
