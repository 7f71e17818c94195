"""Find layers that predict several tokens ahead (MTP): trained with a model, stored beside it, and not part of it."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

# How configurations say how many there are: num_nextn_predict_layers, num_mtp_layers, mtp_num_hidden_layers, …
COUNT = re.compile(r"(?:num|n)_(?:nextn|mtp)(?:_\w+)?|(?:nextn|mtp)_(?:num|n)(?:_\w+)?")
APART = re.compile(
    r"(?:^|\.)(?:mtp|nextn)(?:_\w+)?(?=\.)"
)  # in names of those that are no layers of the model's own list
BLOCK = re.compile(r"(?:^|\.)(?:[a-z_]*layers?|h|blocks?|block)\.(\d{1,9})(?=\.)")


def declared_layers(config: Mapping[str, Any]) -> tuple[str, int] | None:
    """Where a configuration, at any level, says how many such layers there are, and how many."""
    return next(_counts(config), None)


def _counts(config: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    for key, value in config.items():
        if isinstance(value, dict):
            yield from _counts(value)
        elif type(value) is int and value > 0 and COUNT.fullmatch(key):
            yield key, value


def layers_past(names: Iterable[str], own: int, count: int) -> frozenset[int]:
    """Numbers of the first layers past a model's own that hold parts which none of its own has.

    Such a layer joins a state and an embedding (DeepSeek's eh_proj, enorm and hnorm). One without is a layer like the
    others, which config.json leaves out.

    Args:
        own: Layers of the model.
        count: Layers that may follow.
    """
    parts: defaultdict[int, set[str]] = defaultdict(set)
    for name in names:
        if match := BLOCK.search(name):
            parts[int(match[1])].add(name[match.end() + 1 :].partition(".")[0])
    usual = {part for number, held in parts.items() if number < own for part in held}
    return frozenset(number for number, held in parts.items() if own <= number < own + count and held - usual)
