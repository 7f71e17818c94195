"""Sentences about the ways to run a model."""

from __future__ import annotations

from inspector.results.placement import PlacementOption

MANY_SECONDS = 120  # that are told as minutes
NO_BLOCKS = "The class has no list of layers that can be read one at a time."
HOW = {"spread": "offloaded to memory and disk", "stream": "streamed one block at a time"}


def how(way: PlacementOption) -> str:
    """A way in a few words."""
    return HOW.get(way.device, f"entirely on {way.device}")


def pass_time(way: PlacementOption) -> str:
    """How long a streamed pass takes, or why that is not known; "" if the way says neither."""
    if way.seconds is not None:
        about = "about " if way.seconds >= 1 else ""
        return f"A streamed pass takes {about}{duration(way.seconds)}, not counting the head. {way.note}"
    return f"{how(way).capitalize()}: {way.note}" if way.note else ""


def duration(seconds: float) -> str:
    """Seconds as a table shows them; minutes where there are many."""
    if seconds >= MANY_SECONDS:
        return f"{seconds / 60:,.0f} min"
    return f"{seconds:,.0f} s" if seconds >= 1 else "less than a second"
