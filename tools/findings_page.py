"""Write docs/findings.md: each thing that a check can find, by its id.

A test compares the page with what this module writes: run `python -m tools.findings_page` after a change.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from inspector.results.findings import ANY, CHECK_IDS, TABLE, UNCHECKED

FILE = Path(__file__).parents[1] / "docs" / "findings.md"
HEAD = f"""\
# What a check can find

`checkpoint-inspector check PATH --json` gives each check and each finding its `id`, which stays when a sentence is
worded anew. `--accept ID` takes findings of this kind out of the exit status: they are listed, and count no more. The
output of `--json` keeps what was accepted, so a run with it as `--baseline` accepts the same.

| status | meaning |
|---|---|
| 0 | no check failed |
| 1 | a check failed; with `--strict`, or raised a warning |
| 2 | the input was refused, or the checkpoint could not be opened |
| 3 | no check failed, but one could not be made: its finding is the check's id and `.{UNCHECKED}`: `ties.{UNCHECKED}` |

Written by `python -m tools.findings_page`.
"""


def page() -> str:
    """The page as Markdown."""
    return "\n".join([HEAD, *(line for check, name in CHECK_IDS.items() for line in _section(check, name))])


def _section(check: str, name: str) -> Iterator[str]:
    yield f"## {check}: `{name}`\n"
    yield "| id | words | what it means | what to do |"
    yield "|---|---|---|---|"
    for each in TABLE:
        if each.check == check:
            problem = "its own words" if each.problem == ANY else each.problem
            yield f"| `{each.id}` | {problem} | {each.meaning} | {each.action or '–'} |"
    yield ""


if __name__ == "__main__":
    FILE.write_text(page(), "utf-8")
