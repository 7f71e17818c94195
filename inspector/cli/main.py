"""The command line whole: the verbs written here, those of the rooms, and a server's where it is there."""

from importlib import import_module
from importlib.util import find_spec

from inspector.catalog import CATALOG
from inspector.cli import reporting, server
from inspector.cli.answering import app
from inspector.cli.verbs import register

__all__ = ["app", "reporting", "server"]


if find_spec("inspector.serving"):
    import_module("inspector.serving.commands")
register(CATALOG.values())
