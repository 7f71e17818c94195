"""Which names of a model are one tensor or could be, and how they stand to each other."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import nn

from inspector.analyses.what_if import words
from inspector.analyses.what_if.result import Drift
from inspector.analyses.what_if.words import TIED
from inspector.models.copies import LiveCopies
from inspector.models.memory import shared_names
from inspector.models.ties import declared_ties, possible_ties


def parameters_of(model: nn.Module) -> dict[str, torch.Tensor]:
    """Every parameter under every one of its names."""
    return dict(model.named_parameters(remove_duplicate=False))


def find_pairs(model: nn.Module, missing: frozenset[str]) -> tuple[dict[str, str], tuple[str, ...]]:
    """Find the edges of a model: declared, possible by its class, or there in memory.

    Args:
        missing: Parameters that the file does not hold.

    Returns:
        Name -> the name whose tensor it is or could be, of one shape, and warnings about those
        that the file holds no number of.
    """
    tensors = parameters_of(model)
    found = {**possible_ties(model), **declared_ties(model)}
    for first, *others in shared_names(tensors.items()):
        if not {first, *others} & {*found, *found.values()}:
            found |= dict.fromkeys(others, first)
    pairs = {
        name: source
        for name, source in found.items()
        if name in tensors and source in tensors and tensors[name].shape == tensors[source].shape
    }
    lacking = sorted(name for name, source in pairs.items() if {name, source} <= missing)
    if not lacking:
        return pairs, ()
    pairs = {name: source for name, source in pairs.items() if name not in lacking}
    return pairs, (words.NOT_MEASURED.format(names=", ".join(lacking)),)


def relate(
    model: nn.Module,
    pairs: Mapping[str, str],
    missing: frozenset[str],
    *,
    same: Callable[[str, str], bool] | None = None,
) -> dict[str, str]:
    """Say how each name stands to its source.

    Args:
        pairs: Name -> source.
        missing: Parameters that no file holds: whoever loads them gets random numbers.
        same: Whether two names have equal numbers; None: the model's own are compared.

    Returns:
        Name -> one of results.what_if.RELATIONS.
    """
    tensors = parameters_of(model)
    groups = shared_names(tensors.items())
    group_of = {name: number for number, names in enumerate(groups) for name in names}
    same = same or LiveCopies(tensors, ()).same

    def relation(name: str, source: str) -> str:
        one, other = tensors[name], tensors[source]
        if name in group_of and group_of[name] == group_of.get(source):
            return TIED
        if missing & {name, source}:
            return "random"
        if one.shape != other.shape:
            return "another shape"
        if one.dtype != other.dtype:
            return "another dtype"
        return "equal copies" if same(name, source) else "different numbers"

    return {name: relation(name, source) for name, source in pairs.items()}


def drifts_of(model: nn.Module, pairs: Mapping[str, str], missing: frozenset[str]) -> dict[str, Drift | None]:
    """Measure how far each name is from its source, over the rows that both have.

    Returns:
        Name -> the distance; None where one of them holds no numbers of a file, or where their
        rows have different lengths.
    """
    tensors = parameters_of(model)

    def measure(name: str, source: str) -> Drift | None:
        if missing & {name, source}:
            return None
        rows = min(len(tensors[name]), len(tensors[source]))
        both = {key: tensors[key].detach()[:rows] for key in (source, name)}
        found = LiveCopies(both, ()).difference(source, name)
        if found is None:
            return None
        cosine = min(max(found.cosine, -1.0), 1.0)  # rounding may pass 1 by a hair
        return Drift(found.max_abs, found.relative, cosine)

    return {name: measure(name, source) for name, source in pairs.items()}
