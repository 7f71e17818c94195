"""The engine of this server. Imports little, so that its first worker can start before the rest."""

from __future__ import annotations

from contextlib import suppress

import streamlit as st

from inspector.errors import CheckpointError
from inspector.serving.engine.choice import start_engine
from inspector.serving.engine.protocol import Engine
from inspector.serving.place import served_settings
from inspector.serving.settings import serving
from inspector.settings import settings
from inspector.store import registry
from inspector.store.reference import CheckpointRef

FIRST = "demo-bert"  # open at first paint, unless the server was started with another


def first() -> str:
    """The reference of what is open at first paint."""
    return serving().opened or FIRST


@st.cache_resource(show_spinner=False)
def engine() -> Engine:
    """The engine of this server, already opening what is shown first.

    Raises:
        SettingsError: If a setting cannot be used.
    """
    started = start_engine(served_settings())
    registry.sweep(settings())  # what servers that were killed left half-written
    if "checkpoint" not in st.query_params:
        with suppress(CheckpointError):  # the first page says what is wrong with it
            started.open(CheckpointRef.parse(first()))
    return started
