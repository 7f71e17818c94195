"""What the loader of the installed transformers makes of each tensor of a file, by pattern of names.

Nothing is named here: the class is asked where it puts a tensor, its conversions what they make of it, and its own
lists what it leaves out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from types import SimpleNamespace
from typing import Any, NamedTuple

import torch
from transformers import PreTrainedModel

from inspector.analyses.checks.result import OUTCOMES, LoadingRow, Outcome
from inspector.models.checkpoint import StagedCheckpoint
from inspector.models.names import SPARE_MODULES
from inspector.models.naming import Places, TensorRecipe
from inspector.names import fill_pattern, group_names, list_pattern
from inspector.store.manifests.findings import COPIES, COPIES_APART

MOST_ROWS = 300  # of the folded table: the largest models have some sixty


class NameOutcome(NamedTuple):
    """What becomes of one name."""

    stored: str  # in the file; "": it has none
    places: tuple[str, ...]  # in the class; (): it has none
    outcome: Outcome


def loading_rows(checkpoint: StagedCheckpoint) -> tuple[LoadingRow, ...]:
    """The contract between the names in the files and those in the class, the worst first.

    Returns:
        At most MOST_ROWS. None where no class can be built, or where codes are in the place of weights that nobody
        here can read.
    """
    if checkpoint.structure is None or checkpoint.unread.codes:
        return ()
    model, places = checkpoint.structure
    entries = [*_stored(checkpoint, model, places), *_new(model, places)]
    if not any(each.outcome != "new" for each in entries):
        return ()
    rows = _fold(entries)
    return tuple(sorted(rows, key=lambda row: OUTCOMES.index(row.outcome))[:MOST_ROWS])


def _stored(checkpoint: StagedCheckpoint, model: PreTrainedModel, places: Places) -> Iterator[NameOutcome]:
    """What becomes of each tensor of the files, in their order."""
    outcomes = _outcomes(checkpoint, model, places)
    weights = {part.name: name for name, each in checkpoint.quantized.items() for part in each.parts.values()}
    codes = {each.parts["codes"].name for each in checkpoint.quantized.values()}
    for stored in checkpoint.manifest.tensors.names:
        name = weights.get(stored, stored)
        theirs = checkpoint.manifest.translated.names.get(stored, stored)
        outcome = outcomes.get(name, "dropped")
        if name != stored and stored not in codes and outcome in ("loaded", "renamed"):
            outcome = "fused"  # a scale becomes a part of the weight
        elif outcome == "loaded" and theirs != name:
            outcome = "renamed"
        yield NameOutcome(theirs, places.filled.get(name, ()), outcome)


def _outcomes(checkpoint: StagedCheckpoint, model: PreTrainedModel, places: Places) -> dict[str, Outcome]:
    """Name in the file, of a weight rather than of its codes -> what becomes of it."""
    shapes = {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}
    held = {tensor.name: tensor.shape for tensor in checkpoint.tensors}
    made = None
    with suppress(Exception):  # tensors that do not go together: which ones, is asked of each conversion below
        made = checkpoint.merged(type(model)) if len(places.recipes) < len(places.filled) else None
    found: dict[str, Outcome] = {}
    for recipe in places.recipes:
        fits = _fits(recipe, model, shapes, held, made)
        for name, _ in recipe.sources:
            found[name] = _taken(recipe, name) if fits else "wrong shape"
        for name in recipe.repeated if recipe.parts else ():
            found[name] = "doubled"
    beside = {*checkpoint.unread.beside, *checkpoint.tensors.tables}  # which change no weight
    left = _asked(model, unexpected=places.unused) - beside
    found |= {name: "dropped" if name in left else "ignored" for name in places.unused}
    for each in checkpoint.manifest.found(COPIES, COPIES_APART):
        found |= dict.fromkeys(each.names, "doubled")
    return found


def _taken(recipe: TensorRecipe, name: str) -> Outcome:
    """How a stored tensor becomes a part of the model."""
    if len(recipe.parts) > 1:
        return "fused" if recipe.converter else "doubled"
    if len(recipe.names) > 1:
        return "split"
    return "loaded" if recipe.place == name else "renamed"


def _fits(
    recipe: TensorRecipe,
    model: PreTrainedModel,
    shapes: Mapping[str, tuple[int, ...]],
    held: Mapping[str, tuple[int, ...]],
    merged: Mapping[str, torch.Tensor] | None,
) -> bool:
    """Whether what is made of stored tensors has the shape that the class asks for."""
    if recipe.converter is None:
        return all(tuple(held[name]) == shapes[recipe.place] for name, _ in recipe.sources)
    if merged is not None and all(name in merged for name in recipe.names):
        return all(tuple(merged[name].shape) == shapes[name] for name in recipe.names)
    if recipe.repeated and recipe.parts:  # which of the two counts, nothing says
        return True
    try:
        made = recipe.make(model, lambda name: torch.empty(held[name], device="meta"), torch.float32)
    except Exception:  # transformers' own operations, given what they were not made for
        return False
    return all(name not in made or tuple(made[name].shape) == shapes[name] for name in recipe.names)


def _new(model: PreTrainedModel, places: Places) -> Iterator[NameOutcome]:
    """What the class fills with numbers of its own, a tied parameter by one name."""
    named: dict[str, Any] = dict(model.named_parameters(remove_duplicate=False))
    named |= dict(model.named_buffers(remove_duplicate=False))
    covered = {id(named[name]) for name in places.covered if name in named}
    missing = {id(named.get(n, n)): n for n in sorted(model.state_dict(), reverse=True) if n not in places.covered}
    names = {name for key, name in missing.items() if key not in covered and not name.endswith(SPARE_MODULES)}
    for name in sorted(_asked(model, missing=names)):
        yield NameOutcome("", (name,), "new")


def _asked(model: PreTrainedModel, *, missing: Any = (), unexpected: Any = ()) -> set[str]:
    """What of these names the class does not list as usual."""
    info: Any = SimpleNamespace(missing_keys=set(missing), unexpected_keys=set(unexpected))
    model._adjust_missing_and_unexpected_keys(info)
    return info.missing_keys | info.unexpected_keys


def _fold(entries: list[NameOutcome]) -> Iterator[LoadingRow]:
    """One row for all whose names, on both sides, differ only in their places in lists."""
    patterns: dict[str, tuple[str, tuple[int, ...]]] = {}

    def patterned(name: str) -> tuple[str, tuple[int, ...]]:
        if name not in patterns:
            patterns[name] = list_pattern(name)
        return patterns[name]

    alike = [(tuple(patterned(place)[0] for place in each.places), each.outcome) for each in entries]
    for group in group_names([each.stored or "".join(each.places[:1]) for each in entries], alike):
        first = entries[group.places[0]]
        yield LoadingRow(
            pattern=group.pattern if len(group.places) > 1 else group.label,
            count=len(group.places),
            file_name=group.label if first.stored else "",
            class_name=", ".join(
                fill_pattern(pattern, [patterned(entries[n].places[number])[1] for n in group.places])
                for number, pattern in enumerate(alike[group.places[0]][0])
            )
            if len(group.places) > 1
            else ", ".join(first.places),
            outcome=first.outcome,
        )
