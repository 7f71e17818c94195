"""The other checkpoints that a report's sections ask about."""

from __future__ import annotations

from collections.abc import Sequence

from streamlit.delta_generator import DeltaGenerator

from inspector.report.sections import BY_SLUG
from inspector.results.checkpoint import Opened
from pages._compare import inputs as compare_inputs
from pages._merge import inputs as merge_inputs


def choose(checkpoint: Opened, sections: Sequence[str], line: DeltaGenerator) -> dict[str, Opened] | None:
    """Ask for what the sections need.

    Args:
        checkpoint: The open one.
        sections: Of the report.
        line: Where the fields are drawn.

    Returns:
        Option -> checkpoint; None as long as one is missing, and the page says which.
    """
    needed = {name for slug in sections for name in BY_SLUG[slug].needs}
    found: dict[str, Opened | None] = {}
    if "other" in needed:
        second = compare_inputs.choose(checkpoint, line)
        found["other"] = second.opened if second else None
    if "merged" in needed:
        adapter, merged = merge_inputs.both(checkpoint, line) or (None, None)
        found |= {"adapter": adapter, "merged": merged}
    opened = {name: each for name, each in found.items() if each}
    return opened if len(opened) == len(found) else None
