"""Let work that has threads of its own do torch's arithmetic in one each."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def single_threaded() -> Iterator[None]:
    """Have each operation, in threads that begin now, run in the thread that asks for it.

    Threads of operations that are as short as these would mostly wait for each other.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
