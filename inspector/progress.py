"""How work tells how far it has come."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import TypeVar

EVERY = 0.2  # seconds between two reports of a pace
SHORT = 100  # seconds that are told as such; longer times in minutes

Shown = TypeVar("Shown")
# Called with a fraction in 0..1, or None while nobody can tell, and what is being done.
Progress = Callable[[float | None, str], None]
# Called with what is known of an answer while the rest is computed, as in `show: Show[LensRows]`.
Show = Callable[[Shown], None]


def time_left(seconds: float) -> str:
    """How long something still takes, in words."""
    return f"{seconds:,.0f} s left" if seconds < SHORT else f"{seconds / 60:,.0f} min left"


def no_progress(fraction: float | None, text: str) -> None:
    """Ignore progress."""


def throttled(progress: Progress, *, every: float = 0.1) -> Progress:
    """Report the first of many steps, and then at most one per interval."""
    last = -math.inf

    def tell(fraction: float | None, text: str) -> None:
        nonlocal last
        if time.monotonic() - last >= every:
            last = time.monotonic()
            progress(fraction, text)

    return tell


class Pace:
    """Tells how much of a known number of bytes has been read, how fast, and how long the rest takes."""

    STEADY = 1.0  # seconds from which a pace can be told

    def __init__(
        self,
        progress: Progress,
        what: str,
        total: int,
        *,
        every: float = EVERY,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Args: who is told, what is being done, bytes in all, seconds between two reports, and a clock in seconds."""
        self._progress, self._what, self._total = progress, what, max(1, total)
        self._every = every
        self._clock, self._begin = clock, clock()
        self._told, self._done = self._begin, 0
        progress(0.0, what)

    def add(self, nbytes: int) -> None:
        """Count bytes that have been read."""
        self._done = min(self._done + nbytes, self._total)  # what is told of a sample beforehand is about right
        now = self._clock()
        if now - self._told >= self._every or self._done >= self._total:
            self._told = now
            self._progress(self._done / self._total, self._text(now - self._begin))

    def _text(self, seconds: float) -> str:
        text = f"{self._what}: {self._done / 1e9:.1f} of {self._total / 1e9:.1f} GB"
        if seconds < self.STEADY:
            return text
        rate = self._done / seconds
        return f"{text}, {rate / 1e9:.2f} GB/s, {time_left((self._total - self._done) / rate)}"
