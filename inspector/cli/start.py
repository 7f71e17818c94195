"""Start the command line, with no more of it than the verb that was typed needs."""

from __future__ import annotations

import sys
from collections.abc import Collection, Sequence
from difflib import get_close_matches
from pathlib import Path

from inspector.program import lacks_python

ITS_OWN = ("--help", "--version")  # options without a verb
SERVE = "serve"
CLOSE = 0.8  # likeness, 0..1, from which a word may be a verb mistyped


def main() -> None:
    """Run the command line."""
    if too_old := lacks_python():
        sys.stderr.write(f"{too_old}\n")
        sys.exit(2)
    from inspector.catalog import CATALOG

    asked = CATALOG.get(next(iter(sys.argv[1:]), ""))
    if asked is None:  # another verb, a checkpoint, or help: all verbs are listed
        from inspector.cli.main import app

        verbs = [each.name or each.callback.__name__ for each in app.registered_commands if each.callback]
        sys.argv[1:] = with_verb(sys.argv[1:], verbs)
    else:
        from inspector.cli.answering import app
        from inspector.cli.verbs import register

        register([asked])
    app()


def with_verb(words: Sequence[str], verbs: Collection[str]) -> list[str]:
    """What was typed, with the verb that it leaves out: a checkpoint alone, or nothing, starts the app.

    Args:
        words: Typed after the program's name.
        verbs: All that there are.
    """
    first, *others = words or ("",)
    if first in verbs or first in ITS_OWN:
        return list(words)
    if first.startswith("-") or not first:
        return [SERVE, *words]
    alone = not others or others[0].startswith("-")
    mistyped = first.isalpha() and get_close_matches(first, verbs, n=1, cutoff=CLOSE) and not Path(first).exists()
    return [SERVE, *words] if alone and not mistyped else list(words)
