"""Read a text with one sentence a line and hold blocks of it out."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np


@dataclass(frozen=True, slots=True)
class Split:
    """A text cut into lines to learn from and blocks that are kept away."""

    train: tuple[str, ...]  # in order; a line that also occurs in a block is left out
    watched: tuple[tuple[str, ...], ...]  # blocks of consecutive lines, looked at while training
    held_out: tuple[tuple[str, ...], ...]  # blocks of consecutive lines, looked at once, at the end


def read_lines(path: Path) -> list[str]:
    """Read the lines of a text that are not empty.

    Args:
        path: A UTF-8 text, one sentence a line.

    Returns:
        The stripped lines, in order.

    Raises:
        ValueError: If there are fewer than 40 lines, too few to hold any out.
    """
    lines = [line.strip() for line in path.read_text(encoding="utf-8").splitlines()]
    lines = [line for line in lines if line]
    if len(lines) < 40:
        raise ValueError(f"{path.name} has {len(lines)} lines; 40 are needed. Give a longer text.")
    return lines


def split_lines(lines: list[str], seed: int) -> Split:
    """Keep blocks of consecutive lines away from training, about 1.2 % of a long text.

    Args:
        lines: The text, in order.
        seed: Chooses the blocks.

    Returns:
        The split. Every second block, from the first, is watched; the others are held out. No
        training line equals a line of any block, whatever its case. Where a block was cut out,
        its two neighbors become successors in `train`.
    """
    block = min(100, max(4, len(lines) // 50))
    slots = len(lines) // block
    count = max(4, 2 * round(0.006 * len(lines) / block))
    chosen = np.sort(np.random.default_rng([seed, 0]).choice(slots, size=count, replace=False))
    blocks = [tuple(lines[slot * block : (slot + 1) * block]) for slot in chosen]
    hidden = {line.lower() for lines_of_block in blocks for line in lines_of_block}
    train = tuple(line for line in lines if line.lower() not in hidden)
    return Split(train, tuple(blocks[0::2]), tuple(blocks[1::2]))
