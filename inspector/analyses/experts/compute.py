"""Measure the experts of a mixture, and count how often a text uses each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pandas as pd
import torch
from torch import nn

from inspector.analyses.experts import words
from inspector.analyses.experts.compute_uses import ExpertUses, count_uses
from inspector.analyses.experts.compute_weights import ExpertWeights, MeasuredExpert, find_duplicates
from inspector.analyses.experts.request import ExpertsRequest
from inspector.analyses.experts.result import ExpertPlace, MixtureExperts
from inspector.errors import NotInCheckpointError
from inspector.models.checkpoint import StagedCheckpoint
from inspector.models.weightless.mixtures import Mixture, find_mixtures
from inspector.progress import Progress
from inspector.request import answers

COLUMNS = [
    "module", "expert", "norm", "zero", "finite", "router_norm", "router_bias", "selection_bias", "used",
]  # fmt: skip
FLOATS = ("norm", "router_norm", "router_bias", "selection_bias")
SHARED = ["module", "block", "parameters", "norm"]


@answers(ExpertsRequest)
def experts(checkpoint: StagedCheckpoint, request: ExpertsRequest, *, progress: Progress) -> MixtureExperts:
    """Measure every expert and its row of the router; with a text, count the tokens that chose it.

    Args:
        checkpoint: With config.json and weights; a tokenizer is needed for a text alone.
        request: The text.

    Raises:
        NotInCheckpointError: If the class has no experts, or there is no config.json.
        CheckpointError: If the model cannot be built.
    """
    progress(None, "Building the model")
    model = checkpoint.meta_model(checkpoint.own_class)
    mixtures = find_mixtures(model)
    if not mixtures:
        raise NotInCheckpointError(
            f"No experts are known in {checkpoint.name}: its class, {type(model).__name__}, has none, or keeps them or "
            "their router in a way that is not read here."
        )
    weights = ExpertWeights(checkpoint, model, checkpoint.places(model))
    measured: list[MeasuredExpert] = []
    places: list[ExpertPlace] = []
    rows: list[dict[str, Any]] = []
    shared: list[dict[str, Any]] = []
    uses = count_uses(checkpoint, mixtures, request, progress=progress) if request.text else None
    for number, mixture in enumerate(mixtures):
        progress(number / len(mixtures), f"Measuring {mixture.path}")
        found = weights.measure(mixture)
        measured += found
        places += [ExpertPlace(mixture.path, expert) for expert in range(mixture.count)]
        rows += _rows(mixture, found, weights, uses)
        listed = {each["module"] for each in shared}  # blocks of one layer may have one beside them
        shared += (each for each in _shared(mixture, model, weights) if each["module"] not in listed)
    progress(None, "Comparing experts")
    duplicates = find_duplicates(weights, measured)
    table = pd.DataFrame(rows, columns=COLUMNS).astype(dict.fromkeys(FLOATS, float))
    table["used"] = pd.Series([row["used"] for row in rows], dtype=object)  # None, and no NaN, where nothing is counted
    return MixtureExperts(
        model_class=type(model).__name__,
        experts=table,
        shared=pd.DataFrame(shared, columns=SHARED),
        duplicates=tuple(tuple(places[place] for place in group) for group in duplicates),
        tokens=uses.tokens if uses else None,
        per_token=uses.per_token if uses else None,
        warnings=(
            *words.unread([place for place, each in zip(places, measured, strict=True) if each.unknown]),
            *words.unreadable(weights.unreadable),
            *(uses.warnings if uses else ()),
        ),
    )


def _rows(
    mixture: Mixture, found: Sequence[MeasuredExpert], weights: ExpertWeights, uses: ExpertUses | None
) -> Iterator[dict[str, Any]]:
    """A row for each expert that a router can choose."""
    router, own, chosen = (
        weights.rows(name, mixture.rows) for name in (mixture.router, mixture.router_bias, mixture.selection_bias)
    )
    used = uses.counts.get(mixture.path) if uses else None
    for expert in range(mixture.rows):
        each = found[expert] if expert < mixture.count else MeasuredExpert(())
        yield {
            "module": mixture.path,
            "expert": expert,
            "norm": each.norm,
            "zero": each.norm == 0,
            "finite": each.finite,
            "router_norm": None if router is None else float(torch.linalg.vector_norm(router[expert])),
            "router_bias": None if own is None else float(own[expert, 0]),
            "selection_bias": None if chosen is None else float(chosen[expert, 0]),
            "used": None if used is None else int(used[expert]),
        }


def _shared(mixture: Mixture, model: nn.Module, weights: ExpertWeights) -> Iterator[dict[str, Any]]:
    """A row for each module that every token runs through."""
    for path in mixture.shared:
        named = {f"{path}.{name}": each.numel() for name, each in model.get_submodule(path).named_parameters()}
        norm = weights.norm(list(named))
        yield {"module": path, "block": mixture.path, "parameters": sum(named.values()), "norm": norm}
