"""How work tells how far it has come."""

from __future__ import annotations

from collections.abc import Callable

# Called with a fraction in 0..1, or None while nobody can tell, and what is being done.
Progress = Callable[[float | None, str], None]


def untold(fraction: float | None, text: str) -> None:
    """Take progress and tell nobody."""
