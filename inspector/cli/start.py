"""Start the command line, with no more of it than the verb that was typed needs."""

from __future__ import annotations

import sys

from inspector.catalog import CATALOG


def main() -> None:
    """Run the command line."""
    asked = CATALOG.get(next(iter(sys.argv[1:]), ""))
    if asked is None:  # another verb, or help: all verbs are listed
        from inspector.cli.main import app
    else:
        if "--help" not in sys.argv:
            from inspector.engine.starting.ahead import start_ahead

            start_ahead(asked.verb)
        from inspector.cli.answering import app
        from inspector.cli.verbs import register

        register([asked])
    app()
