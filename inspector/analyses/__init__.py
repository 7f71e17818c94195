"""The analyses: pure functions from a checkpoint and parameters to a frozen result.

Each takes `(checkpoint, *, progress, ...)`; `progress(fraction, text)` may be called at any time,
with a fraction in 0..1 or None while nobody can tell.
"""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[float | None, str], None]
