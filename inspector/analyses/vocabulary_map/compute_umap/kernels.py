"""Compiled inner loops of the map; imported through `compiled.kernels` alone.

Each thread writes what no other thread reads, and random numbers belong to a row and an epoch, so
results do not depend on how many threads there are. Compiled code is kept on disk (`cache=True`):
only the first process on a machine pays for it.
"""

# Types are those of the arrays that come in; numba calls these, and no one else does.
# ruff: noqa: ANN001, ANN201, PLR0917

from __future__ import annotations

import numpy as np
from numba import njit, prange

COLUMNS = 128  # of a block that one thread goes through at a time
LIMIT = np.float32(4.0)  # of one step along an axis, as in umap-learn


@njit(cache=True)
def start_random(seed, number, row):
    """State of a generator of its own for a row and an epoch, never 0."""
    state = (seed + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    state ^= np.uint64(number + 1) * np.uint64(0xBF58476D1CE4E5B9)
    state ^= np.uint64(row + 1) * np.uint64(0x94D049BB133111EB)
    state ^= state >> np.uint64(31)
    state *= np.uint64(0xD6E8FEB86659FD93)
    state ^= state >> np.uint64(29)
    return state | np.uint64(1)


@njit(cache=True)
def next_random(state):
    """One step of xorshift64 (Marsaglia 2003)."""
    state ^= state << np.uint64(13)
    state ^= state >> np.uint64(7)
    state ^= state << np.uint64(17)
    return state


@njit(cache=True, fastmath=True, inline="always")
def strength(force, x, y, z):
    """The force along a line, by the upper 16 bits of its squared length."""
    return force[np.float32(x * x + y * y + z * z).view(np.int32) >> 16]


@njit(cache=True, fastmath=True, inline="always")
def capped(step):
    """A step that is not too long."""
    return min(max(step, -LIMIT), LIMIT)


@njit(cache=True, fastmath=True, parallel=True)
def epoch(now, after, ends, others, every, due, pull, push, seed, number, rate, negatives):
    """Move every point once: toward neighbors that are due, away from random others.

    The random others of one edge push all at once, from where the point is then: steps that need
    not wait for each other take a third of the time, and the map keeps as many neighbors.

    Args:
        now: Places before this epoch, (rows, 2 or 3).
        after: Places after it; written.
        ends: Where each row's edges end in `others`, behind a leading 0, (rows + 1,).
        others: The other end of each edge.
        every: Epochs between two uses of an edge.
        due: Epoch at which an edge is used next; written.
        pull: Attraction by the upper 16 bits of the squared distance (float32).
        push: Repulsion, likewise.
        negatives: Random rows for each edge.
    """
    rows = np.uint64(len(now))
    solid = now.shape[1] == 3
    none = np.float32(0.0)
    for i in prange(len(now)):
        state = start_random(seed, number, i)
        x, y, z = now[i, 0], now[i, 1], now[i, 2] if solid else none
        for edge in range(ends[i], ends[i + 1]):
            if due[edge] > number:
                continue
            due[edge] += every[edge]
            j = np.int64(others[edge])
            dx, dy, dz = x - now[j, 0], y - now[j, 1], z - now[j, 2] if solid else none
            force = strength(pull, dx, dy, dz)
            x += capped(force * dx) * rate
            y += capped(force * dy) * rate
            z += capped(force * dz) * rate
            away_x, away_y, away_z = none, none, none
            for _ in range(negatives):
                state = next_random(state)
                j = np.int64(((state >> np.uint64(32)) * rows) >> np.uint64(32))
                if j == i:
                    continue
                dx, dy, dz = x - now[j, 0], y - now[j, 1], z - now[j, 2] if solid else none
                force = strength(push, dx, dy, dz)
                away_x += capped(force * dx)
                away_y += capped(force * dy)
                away_z += capped(force * dz)
            x += away_x * rate
            y += away_y * rate
            z += away_z * rate
        after[i, 0], after[i, 1] = x, y
        if solid:
            after[i, 2] = z


@njit(cache=True)
def insert(best, found, row, value, candidate):
    """Put a candidate among the best of a row; of equal ones the first that came stays first."""
    place = best.shape[1] - 1
    while place > 0 and best[row, place - 1] < value:
        best[row, place] = best[row, place - 1]
        found[row, place] = found[row, place - 1]
        place -= 1
    best[row, place] = value
    found[row, place] = candidate


@njit(cache=True, parallel=True)
def merge_rows(block, first, offset, best, found):
    """Merge a block of similarities into the best of the rows that its rows are.

    Args:
        block: Similarities, (queries, candidates).
        first: Row that the first query is.
        offset: Row that the first candidate is; a query that meets itself is left out.
        best: Largest similarities so far, falling, (rows, k); written.
        found: Their rows; written.
    """
    queries, candidates = block.shape
    last = best.shape[1] - 1
    for query in prange(queries):
        row = first + query
        worst = best[row, last]
        for candidate in range(candidates):
            value = block[query, candidate]
            if value > worst and offset + candidate != row:
                insert(best, found, row, value, offset + candidate)
                worst = best[row, last]


@njit(cache=True, parallel=True)
def merge_columns(block, first, offset, best, found):
    """Merge a block into the best of the rows that its columns are; no row meets itself in it.

    Args:
        block: Similarities, (candidates, queries).
        first: Row that the first query is.
        offset: Row that the first candidate is.
        best: As of `merge_rows`.
        found: Likewise.
    """
    candidates, queries = block.shape
    last = best.shape[1] - 1
    for part in prange((queries + COLUMNS - 1) // COLUMNS):
        begin = part * COLUMNS
        end = min(begin + COLUMNS, queries)
        worst = best[first + begin : first + end, last].copy()
        for candidate in range(candidates):
            for query in range(begin, end):
                value = block[candidate, query]
                if value > worst[query - begin]:
                    insert(best, found, first + query, value, offset + candidate)
                    worst[query - begin] = best[first + query, last]


@njit(cache=True, parallel=True)
def merge_cell(block, queries, members, best, found):
    """Merge the similarities of some rows with the members of a cell.

    Args:
        block: Similarities, (queries, members).
        queries: Row numbers.
        members: Row numbers, none of which a query has met before, but for itself.
        best: As of `merge_rows`.
        found: Likewise.
    """
    last = best.shape[1] - 1
    for query in prange(len(queries)):
        row = queries[query]
        for member in range(len(members)):
            value = block[query, member]
            if value > best[row, last] and members[member] != row:
                insert(best, found, row, value, members[member])
