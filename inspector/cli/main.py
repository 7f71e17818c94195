"""The command line whole: the verbs written here, and those of the rooms."""

from inspector.catalog import CATALOG
from inspector.cli import cluster, reporting, server
from inspector.cli.answering import app
from inspector.cli.verbs import register

__all__ = ["app", "cluster", "reporting", "server"]


register(CATALOG.values())
