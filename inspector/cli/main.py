"""The command line whole: the verbs written here, and those of the rooms."""

from inspector.cli import cluster, reporting, server
from inspector.cli.answering import app
from inspector.cli.verbs import register

__all__ = ["app", "cluster", "main", "reporting", "server"]


register()


def main() -> None:
    """Run the command line."""
    app()
