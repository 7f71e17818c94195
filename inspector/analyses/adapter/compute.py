"""Measure the change that an adapter makes, and what of it a merge into its base will keep."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd
import torch

from inspector.analyses.adapter import words
from inspector.analyses.adapter.request import AdapterRequest
from inspector.analyses.adapter.result import Adapter, Survival
from inspector.models.adapters.deltas import Delta
from inspector.models.adapters.names import Names, place_of, tied_to, ties
from inspector.models.adapters.parts import AdapterChanges, WeightChange, read_parts
from inspector.models.adapters.rounding import rounded
from inspector.models.adapters.sizes import UNKNOWN, measure
from inspector.models.checkpoint import StagedCheckpoint
from inspector.models.placing.threads import single_threaded
from inspector.progress import Pace, Progress
from inspector.request import answers
from inspector.store.manifests.columns import count_numbers
from inspector.text import shape_text

SAMPLED = 64  # rows of a matrix
COLUMNS = (
    *("module", "method", "shape", "rank", "scale", "norm", "effective_rank", "dead", "finite"),
    *("parameters", "share", "layer", "kind"),
)
MEASURES = ("effective_alpha", "noise", "share_kept")


@answers(AdapterRequest)
def adapter(checkpoint: StagedCheckpoint, request: AdapterRequest, *, progress: Progress) -> Adapter:
    """Say what an adapter changes, and how much.

    Args:
        checkpoint: The adapter.
        request: The fingerprint of its base, to measure what a merge keeps.

    Raises:
        NotInCheckpointError: If it is no adapter, of a type that is not known, incomplete, or does not fit the base.
        RequestError: If the base is no longer in the store.
    """
    parts = read_parts(checkpoint)
    base = checkpoint.beside(request.base, 1, "base") if request.base else None
    if base:
        base.refuse_adapter()
    with single_threaded():
        rows = list(_targets(checkpoint, parts, base, progress))
    kept = [row.pop("kept") for row in rows]
    return Adapter(
        name=checkpoint.name,
        fingerprint=checkpoint.manifest.fingerprint,
        type=_type(parts),
        base=parts.settings.get("base_model_name_or_path"),
        base_name=base.name if base else None,
        base_fingerprint=base.manifest.fingerprint if base else None,
        targets=pd.DataFrame(rows, columns=pd.Index([*COLUMNS, *(MEASURES if base else ())])),
        replaced=tuple(parts.replaced),
        biases=tuple(parts.biases),
        unreadable=parts.unreadable,
        parameters=count_numbers(checkpoint.manifest.tensors.stored),
        base_parameters=count_numbers(base.tensors.stored) if base else None,
        survival=_together([each for each in kept if each]),
        warnings=tuple(_warnings(checkpoint, parts, base, kept)),
    )


def _type(parts: AdapterChanges) -> str:
    said = str(parts.settings["peft_type"]).upper()
    decomposed = any("lora_magnitude_vector" in change.parts for change in parts.changes)
    return "DORA" if said == "LORA" and (decomposed or parts.settings.get("use_dora")) else said


@dataclass(slots=True)
class _Kept:
    """Sums over numbers of one weight."""

    dtype: str
    dot: float = 0.0  # ⟨Ŵ − W, Δ⟩
    square: float = 0.0  # |Δ|²
    lost: float = 0.0  # |Ŵ − W − Δ|²
    meant: int = 0  # numbers with Δ ≠ 0
    changed: int = 0  # of these, Ŵ ≠ W
    rows: int = 0

    @property
    def known(self) -> bool:
        """Whether there is a change to measure against."""
        return self.square > 0 and math.isfinite(self.square + self.dot + self.lost)


def _targets(
    checkpoint: StagedCheckpoint, parts: AdapterChanges, base: StagedCheckpoint | None, progress: Progress
) -> Iterator[dict[str, Any]]:
    pace = Pace(progress, "Measuring the adapter", sum(_nbytes(change) for change in parts.changes))
    names = Names(base.tensors.names) if base else None
    for change in parts.changes:
        read = checkpoint.read([part.name for part in change.parts.values()])
        size = measure(change, {role: read[part.name] for role, part in change.parts.items()})
        own = sum(math.prod(part.shape) for part in change.parts.values())
        layer, kind = place_of(change.weight)
        row = {
            "module": change.module,
            "method": change.kind,
            "shape": shape_text(size.shape) if size.shape else "",
            "rank": change.rank,
            "scale": change.scale,
            "norm": size.norm,
            "effective_rank": size.effective_rank,
            "dead": size.dead,
            "finite": size.finite,
            "parameters": own,
            "share": own / math.prod(size.shape) if math.prod(size.shape) and size.shape else UNKNOWN,
            "layer": layer,
            "kind": kind.removesuffix(".weight"),
            "kept": None,
        }
        if base and names:
            found = _keep(checkpoint, change, parts, base, names)
            row["kept"] = found
            row |= dict(zip(MEASURES, _measured(found) if found and found.known else (UNKNOWN,) * 3, strict=True))
        yield row
        pace.add(_nbytes(change))


def _nbytes(change: WeightChange) -> int:
    return sum(part.nbytes for part in change.parts.values())


def _keep(
    checkpoint: StagedCheckpoint, change: WeightChange, parts: AdapterChanges, base: StagedCheckpoint, names: Names
) -> _Kept | None:
    """Merge some rows; None: the base has no such weight, or has it as codes."""
    tied = tied_to(base, change.weight)
    name = names.find(change.weight) or (names.find(tied) if tied else None)
    if name is None or name in base.quantized or name in base.unread.codes:
        return None
    given = parts.replaced.get(change.weight)
    weight = checkpoint.read([given.name])[given.name] if given else base.read([name])[name]
    if not weight.dtype.is_floating_point or weight.dim() < 2 or not weight.numel():
        return None
    delta = Delta(checkpoint, change, base, tuple(weight.shape), lambda at: weight[at].flatten(1).double())
    if delta.nonfinite:
        return None
    count = len(weight)
    at = torch.linspace(0, count - 1, SAMPLED).round().long() if count > SAMPLED else torch.arange(count)
    before = weight[at].flatten(1).double()
    _, _, meant = delta.bounds(at, before)
    kept = rounded(before + meant, weight.dtype) - before
    return _Kept(
        str(weight.dtype).removeprefix("torch."),
        dot=float((kept * meant).sum()),
        square=float(meant.square().sum()),
        lost=float((kept - meant).square().sum()),
        meant=int((meant != 0).sum()),
        changed=int(((kept != 0) & (meant != 0)).sum()),
        rows=len(at),
    )


def _measured(kept: _Kept) -> tuple[float, float, float]:
    """Effective alpha, noise and share."""
    return kept.dot / kept.square, math.sqrt(kept.lost / kept.square), kept.changed / max(1, kept.meant)


def _together(kept: list[_Kept]) -> Survival | None:
    """All weights as one vector; None where none is known."""
    known = [each for each in kept if each.known]
    if not known:
        return None
    counted = Counter[str]()
    for each in known:
        counted[each.dtype] += each.meant
    (dtype, _), *_ = counted.most_common()
    sums: Mapping[str, Any] = {
        name: sum(getattr(each, name) for each in known) for name in ("dot", "square", "lost", "meant", "changed")
    }
    alpha, noise, share = _measured(_Kept(dtype, **sums))
    return Survival(dtype, alpha, noise, share, max(each.rows for each in known))


def _warnings(
    checkpoint: StagedCheckpoint, parts: AdapterChanges, base: StagedCheckpoint | None, kept: list[_Kept | None]
) -> Iterator[str]:
    if never := parts.never_merged(checkpoint.name):
        yield never
    if parts.unreadable:
        yield words.unreadable(checkpoint.name, parts.unreadable)
    if base is None:
        yield from words.if_tied(sorted({*parts.replaced, *(change.weight for change in parts.changes)}))
        return
    yield from _ties(parts, base)
    if unknown := [change.module for change, each in zip(parts.changes, kept, strict=True) if each is None]:
        yield words.not_measured(base.name, unknown)


def _ties(parts: AdapterChanges, base: StagedCheckpoint) -> Iterator[str]:
    """What merging does to matrices that loading the base ties."""
    if not ties(base) or base.family is None:
        return
    changed = {change.weight for change in parts.changes}
    whole, added = Names(name for name in parts.replaced if name not in changed), Names(changed)
    for one, other in base.family.ties.items():
        if bool(whole.find(one)) != bool(whole.find(other)):
            replaced, left = (one, other) if whole.find(one) else (other, one)
            yield words.TIE_BREAKS.format(base=base.name, replaced=replaced, left=left)
        elif bool(added.find(one)) != bool(added.find(other)):
            first, left = (one, other) if added.find(one) else (other, one)
            yield words.TIE_CARRIES.format(base=base.name, changed=first, left=left)
