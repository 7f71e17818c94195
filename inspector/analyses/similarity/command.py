"""What the command line writes of texts that were compared."""

from __future__ import annotations

SAVED = "pairs"
