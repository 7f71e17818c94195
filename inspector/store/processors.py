"""Count the processors that this process may use."""

from __future__ import annotations

import os


def count_processors() -> int:
    """As many as its affinity allows, where the system tells; else all of them."""
    allowed = getattr(os, "sched_getaffinity", None)
    return len(allowed(0)) if allowed else os.cpu_count() or 1
