"""Start the process that a command's workers are forked from, before the rest of the command line is imported."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import replace

from inspector.catalog import CATALOG
from inspector.engine.forking import fork_servers
from inspector.engine.wire import WorkerFunctions
from inspector.errors import SettingsError
from inspector.sandbox.environment import worker_environment
from inspector.settings import settings


def functions_for(verb: str, *, reads_all: bool = False) -> WorkerFunctions:
    """What the workers of an engine import and prepare that answers one question alone.

    Args:
        verb: Of the question.
        reads_all: True: it reads the files from end to end.
    """
    asked = CATALOG[verb]
    module = asked.function.partition(":")[0]
    if asked.light:
        return WorkerFunctions(light=(WorkerFunctions().open.partition(":")[0], module), warm_up=())
    functions = WorkerFunctions(light=(), warm_up=(module,))
    return replace(functions, prepare="inspector.store.reading_ahead:read_ahead") if reads_all else functions


def start_ahead(verb: str) -> None:
    """Start a fork server for a question; it ends if nobody asks it for a worker."""
    with suppress(SettingsError, OSError):  # the engine says what is wrong
        known = settings()
        if known.engine == "local":
            server = fork_servers.start(worker_environment(os.environ, settings=known), functions_for(verb).modules)
            if CATALOG[verb].light:
                server.warm_up()
