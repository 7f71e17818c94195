"""What the command line writes of a contrast."""

from __future__ import annotations

SAVED = "tokens"  # the whole vocabulary
