"""Let work that has threads of its own do torch's arithmetic in one each."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def threads_kept() -> Iterator[None]:
    """Have torch use as many threads afterwards as before.

    numba's loops share OpenMP with torch: their first run gives torch as many threads as numba has,
    and with another number of threads sums differ in their last bits.
    """
    threads = torch.get_num_threads()
    try:
        yield
    finally:
        torch.set_num_threads(threads)


@contextmanager
def single_threaded() -> Iterator[None]:
    """Have each operation, in threads that begin now, run in the thread that asks for it.

    Threads of operations that are as short as these would mostly wait for each other.
    """
    with threads_kept():
        torch.set_num_threads(1)
        yield
