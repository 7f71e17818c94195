"""The command line: every analysis as a verb, as a table for people or as JSON for machines."""

from inspector.cli import (
    checks,
    cluster,
    comparing,
    reporting,
    server,
)
from inspector.cli.answering import app
from inspector.cli.verbs import register

__all__ = [
    "app",
    "checks",
    "cluster",
    "comparing",
    "main",
    "reporting",
    "server",
]


register()


def main() -> None:
    """Run the command line."""
    app()
