"""Which checkpoints a browser's user has agreed to open: a link alone opens none of a stranger's choice.

As long as the server runs. Streamlit's cookie connects a session with the next one after a reload.
"""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock

MOST = 10_000  # entries kept, of all browsers together


class Agreements:
    """References by browser; bounded, the least recently used go first.

    Args:
        most: Entries kept.
    """

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._kept: OrderedDict[tuple[str, str], None] = OrderedDict()
        self._lock = Lock()

    def add(self, browser: str, reference: str) -> None:
        """Note that a browser's user opened this."""
        with self._lock:
            self._kept[browser, reference] = None
            self._kept.move_to_end((browser, reference))
            while len(self._kept) > self._most:
                self._kept.popitem(last=False)

    def has(self, browser: str, reference: str) -> bool:
        """Whether a browser's user opened this before."""
        with self._lock:
            if (browser, reference) not in self._kept:
                return False
            self._kept.move_to_end((browser, reference))
            return True


AGREEMENTS = Agreements()
