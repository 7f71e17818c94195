"""Prove from the numbers of three checkpoints whether one is the base with the adapter's change."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import pandas as pd
import torch

from inspector.analyses.merge_proof import words
from inspector.analyses.merge_proof.compute_judging import Judged, conclude, judge
from inspector.analyses.merge_proof.compute_replay import At, Weight
from inspector.analyses.merge_proof.request import VerifyMergeRequest
from inspector.analyses.merge_proof.result import MergeProof
from inspector.errors import NotInCheckpointError
from inspector.models.adapters.deltas import Delta, Rows
from inspector.models.adapters.names import Names, place_of, tied_to, tied_with, ties
from inspector.models.adapters.parts import AdapterChanges, WeightChange, read_parts
from inspector.models.adapters.rounding import UNIT, rounded
from inspector.models.checkpoint import StagedCheckpoint
from inspector.models.placing.threads import single_threaded
from inspector.progress import Pace, Progress
from inspector.request import answers
from inspector.store.manifests.columns import is_buffer

SAMPLED = 64  # rows of a matrix
BLOCK = 1 << 19  # numbers that are replayed at once
COLUMNS = ("name", "targeted", "verdict", "procedure", "coefficient", "reason", "rows", "layer", "kind")
Numbers = tuple[torch.Tensor, torch.dtype | None]  # a matrix as it is stored, and its dtype; None: it was quantized


@answers(VerifyMergeRequest)
def verify_merge(checkpoint: StagedCheckpoint, request: VerifyMergeRequest, *, progress: Progress) -> MergeProof:
    """Replay a merge, and compare with the model that is said to be merged.

    Args:
        checkpoint: The base.
        request: The fingerprints of the adapter and of the merged model, and how many rows are read.

    Raises:
        NotInCheckpointError: If one of them is not what its place needs, or the adapter does not fit the base.
        RequestError: If one of them is no longer in the store.
    """
    checkpoint.refuse_adapter()
    adapter = checkpoint.beside(request.adapter, 1, "adapter")
    merged = checkpoint.beside(request.merged, 2, "merged")
    parts = read_parts(adapter)
    if merged.manifest.adapter:
        raise NotInCheckpointError(words.NOT_A_MODEL.format(name=merged.name, said=merged.manifest.adapter))
    merge = _Merge(checkpoint, adapter, merged, parts, every=request.rows == "all")
    with single_threaded():
        judged = list(merge.judge(progress))
    dropped = tuple(each.name for each in judged if each.verdict == "dropped")
    verdict, procedure, coefficient = conclude(judged, dropped, parts.unreadable)
    return MergeProof(
        name=checkpoint.name,
        adapter_name=adapter.name,
        merged_name=merged.name,
        fingerprint=checkpoint.manifest.fingerprint,
        adapter_fingerprint=request.adapter,
        merged_fingerprint=request.merged,
        verdict=verdict,
        procedure=procedure,
        coefficient=coefficient,
        tensors=_table(judged, procedure),
        dropped=dropped,
        counts=dict(Counter(each.verdict for each in judged)),
        identical=not dropped and all(each.same for each in judged),
        rows=request.rows,
        warnings=tuple(merge.warnings()),
    )


def _table(judged: Sequence[Judged], procedure: str | None) -> pd.DataFrame:
    rows = []
    for each in judged:
        shown = procedure if procedure in each.procedures else next(iter(each.procedures), None)
        layer, kind = place_of(each.name)
        rows.append(
            (each.name, each.targeted, each.verdict, shown, each.coefficient, each.reason, each.rows, layer, kind)
        )
    frame = pd.DataFrame(rows, columns=pd.Index(list(COLUMNS)))
    for name in ("procedure", "coefficient"):
        frame[name] = frame[name].astype(object).where(frame[name].notna(), None)
    return frame


@dataclass(frozen=True)
class _Merge:
    """The three checkpoints, and how much is read of them."""

    base: StagedCheckpoint
    adapter: StagedCheckpoint
    merged: StagedCheckpoint
    parts: AdapterChanges
    every: bool  # all rows are read

    def judge(self, progress: Progress) -> Iterator[Judged]:
        """Look at every tensor of the base, and at those that the adapter brings besides, in the base's order."""
        pace = Pace(progress, "Replaying the merge", sum(tensor.nbytes for tensor in self.base.tensors))
        found: dict[str, Judged] = {}
        for each in self._targets():
            found[each.name] = each
            pace.add(self._nbytes(each.name))
        for tensor in self.base.tensors:
            if tensor.name not in found:
                each = self._untargeted(tensor.name)
                found[tensor.name] = (self._copy(tensor.name, found) or each) if each.verdict == "changed" else each
                pace.add(tensor.nbytes)
        found |= {each.name: each for each in self._added(found)}
        yield from (found[name] for name in dict.fromkeys([*self.base.tensors.names, *found]))

    def _targets(self) -> Iterator[Judged]:
        """The tensors that the adapter changes or replaces."""
        changed = {change.weight for change in self.parts.changes}
        yield from map(self._change, self.parts.changes)
        yield from map(self._bias, (*self.parts.biases, *self._scaled_biases))
        yield from (self._replaced(name) for name in self.parts.replaced if name not in changed)

    def _added(self, found: Mapping[str, Judged]) -> Iterator[Judged]:
        """The merged model's tensors that belong to nothing else."""
        known = {self._there.find(name) for name in found} | found.keys()
        for tensor in self.merged.tensors:
            if tensor.name not in known and not is_buffer(tensor):
                yield Judged(tensor.name, False, "added")

    def warnings(self) -> Iterator[str]:
        """What the verdict leaves open."""
        if never := self.parts.never_merged(self.adapter.name):
            yield never
        if self.parts.unreadable:
            yield words.unreadable(self.adapter.name, self.parts.unreadable)
        if words.needs_residual(self.parts.settings.get("init_lora_weights")):
            yield words.RESIDUAL.format(adapter=self.adapter.name)
        head = self._there.find("lm_head.weight")
        if head and ties(self.merged) and not ties(self.base):
            yield words.TIED_AGAIN.format(merged=self.merged.name, head=head)

    @cached_property
    def _here(self) -> Names:
        return Names(self.base.tensors.names)

    @cached_property
    def _there(self) -> Names:
        return Names(self.merged.tensors.names)

    def _nbytes(self, name: str) -> int:
        stored = self.base.manifest.by_name.get(name)
        return stored.nbytes if stored else 0

    def _base_name(self, name: str) -> str | None:
        """What the base stores a tensor under, or one that is tied to it."""
        tied = tied_to(self.base, name)
        return self._here.find(name) or (self._here.find(tied) if tied else None)

    def _change(self, change: WeightChange) -> Judged:
        own = self._here.find(change.weight)
        name = own or self._base_name(change.weight)
        said = own or change.weight
        if name is None:
            return Judged(said, True, "not checkable", reason=words.NOT_IN_BASE)
        given = self.parts.replaced.get(change.weight)
        before = self._numbers(self.adapter, given.name) if given else self._numbers(self.base, name)
        delta = Delta(self.adapter, change, self.base, tuple(before[0].shape), _rows(before[0]))
        there = self._there.find(change.weight) or self._there.find(name if own else change.weight)
        if there is None:
            return Judged(said, True, "dropped")
        stored = self.merged.manifest.by_name.get(there)
        if there in self.merged.quantized or there in self.merged.unread.codes or stored is None:
            return Judged(said, True, "not checkable", reason=words.QUANTIZED)
        after, dtype = self._numbers(self.merged, there)
        if after.shape != before[0].shape:
            return Judged(said, True, "not checkable", reason=words.reshaped(before[0].shape, after.shape))
        shape = after.shape[0], math.prod(after.shape[1:])
        short = [each for each in (before[1], dtype, *(part.dtype for part in self._read(change))) if each]
        weight = Weight(
            base=_rows(before[0]),
            merged=_rows(after),
            delta=delta,
            dtype=before[1],
            stored=dtype or torch.float32,
            coarse=max(UNIT.get(each, UNIT[torch.bfloat16]) for each in short),
            blocks=self._blocks(*shape),
            columns=shape[1],
        )
        return judge(said, weight, scale=change.scale, rank=change.rank)

    def _read(self, change: WeightChange) -> list[torch.Tensor]:
        read = self.adapter.read([part.name for part in change.parts.values()])
        return list(read.values())

    def _bias(self, name: str) -> Judged:
        """A bias that is added to: small, and judged by whether it is what the sum rounds to."""
        here, there = self._here.find(name), self._there.find(name)
        if here is None or there is None:
            return Judged(here or name, True, "not checkable" if here is None else "dropped", reason=words.NOT_IN_BASE)
        (before, dtype), (after, stored) = self._numbers(self.base, here), self._numbers(self.merged, there)
        change = self._bias_change(name, before.double())
        if not before.shape == after.shape == change.shape or not dtype or not stored:
            return Judged(here, True, "not checkable", reason=words.QUANTIZED)
        whole, was = before.double() + change, rounded(before.double(), stored)
        error = UNIT[torch.float32] * 4 * (whole.abs() + change.abs())
        ends = [rounded(rounded(whole + side * error, dtype), stored) for side in (-1, 1)]
        now = after.double()
        if bool(((now >= ends[0]) & (now <= ends[1])).all()):
            return Judged(here, True, "merged", ("P1",), rows=1)
        equal = bool((now == was).all())
        return Judged(here, True, "not merged" if equal else "other base", rows=1, same=equal)

    def _bias_change(self, name: str, before: torch.Tensor) -> torch.Tensor:
        if name in self._scaled_biases:
            scales, _ = self._numbers(self.adapter, self._scaled_biases[name])
            return before * (scales.double().reshape(-1) - 1)
        tensor, scale = self.parts.biases[name]
        return scale * self._numbers(self.adapter, tensor.name)[0].double()

    @cached_property
    def _scaled_biases(self) -> dict[str, str]:
        """Biases of layers whose outputs (IA)³ scales -> the tensor with the factors."""
        scaled = [
            (f"{change.module}.bias", change.parts["ia3_l"]) for change in self.parts.changes if "ia3_l" in change.parts
        ]
        return {name: part.name for name, part in scaled if self._here.find(name) and part.shape[-1] == 1}

    def _replaced(self, name: str) -> Judged:
        """A tensor that the adapter brings whole, in place of the base's."""
        here = self._here.find(name)
        there = self._there.find(name)
        said = here or name
        if there is None:
            return Judged(said, True, "dropped")
        given, _ = self._numbers(self.adapter, self.parts.replaced[name].name)
        after, dtype = self._numbers(self.merged, there)
        if dtype is None:
            return Judged(said, True, "not checkable", reason=words.QUANTIZED)
        was = None if here is None else self._numbers(self.base, here)[0]
        rows = self._count(after)
        if self._same(given, after, dtype):
            as_before = was is not None and self._same(was, after, dtype)
            return Judged(said, True, "merged", reason=words.REPLACED, rows=rows, same=as_before)
        if was is not None and self._same(was, after, dtype):
            return Judged(said, True, "not merged", reason=words.NOT_REPLACED, rows=rows, same=True)
        return Judged(said, True, "other base", reason=words.NEITHER, rows=rows)

    def _untargeted(self, name: str) -> Judged:
        """A tensor that the adapter leaves as it is."""
        there = self._there.find(name)
        stored = self.base.manifest.by_name.get(name)
        if there is None:
            return Judged(name, False, self._lost(name))
        ours, theirs = name in self.base.quantized, there in self.merged.quantized
        if theirs != ours or (stored and not (stored.dtype.startswith(("float", "bfloat")) or ours)):
            other = self.merged.manifest.by_name.get(there)
            alike = bool(stored and other and (stored.dtype, stored.shape) == (other.dtype, other.shape))
            if theirs != ours or not alike:
                return Judged(name, False, "not checkable", reason=words.QUANTIZED)
            before, after = (each.read([what])[what] for each, what in ((self.base, name), (self.merged, there)))
            equal = torch.equal(before, after)
            return Judged(name, False, "unchanged" if equal else "changed", same=equal)
        (before, _), (after, dtype) = self._numbers(self.base, name), self._numbers(self.merged, there)
        if before.shape != after.shape:
            return Judged(name, False, "changed", reason=words.reshaped(before.shape, after.shape))
        equal = self._same(before, after, dtype or torch.float32)
        return Judged(name, False, "unchanged" if equal else "changed", rows=self._count(after), same=equal)

    def _copy(self, name: str, found: Mapping[str, Judged]) -> Judged | None:
        """What is said of the tensor that this one copies in both, by a tie of the base's; None: it copies none."""
        for other in filter(None, map(self._here.find, tied_with(self.base, name))):
            there = [self._there.find(each) for each in (name, other)]
            if other in found and found[other].targeted and all(there):
                (one, _), (two, dtype) = (self._numbers(self.base, each) for each in (name, other))
                (after, _), (again, stored) = (self._numbers(self.merged, each) for each in there if each)
                if dtype and stored and self._same(one, two, dtype) and self._same(after, again, stored):
                    return replace(found[other], name=name, dot=0.0, square=0.0)  # which count once
        return None

    def _lost(self, name: str) -> str:
        """What it means that the merged model lacks a tensor: nothing, if loading ties it to an equal one."""
        stored = self.base.manifest.by_name.get(name)
        if stored is None or is_buffer(stored):
            return "unchanged"
        tied = tied_to(self.base, name)
        partner = self._here.find(tied) if tied else None
        if partner and self._there.find(partner) and ties(self.merged):
            (one, _), (other, dtype) = self._numbers(self.base, name), self._numbers(self.base, partner)
            if one.shape == other.shape and self._same(one, other, dtype or torch.float32):
                return "unchanged"
        return "dropped"

    def _numbers(self, checkpoint: StagedCheckpoint, name: str) -> Numbers:
        read = checkpoint.read([name])[name]
        return torch.atleast_1d(read), None if name in checkpoint.quantized else read.dtype

    def _blocks(self, rows: int, columns: int) -> Sequence[At]:
        """Which rows are looked at together."""
        if not self.every and rows > SAMPLED:
            return [torch.linspace(0, rows - 1, SAMPLED).round().long()]
        size = max(1, BLOCK // max(1, columns))
        return [slice(begin, min(begin + size, rows)) for begin in range(0, rows, size)]

    def _same(self, one: torch.Tensor, other: torch.Tensor, dtype: torch.dtype) -> bool:
        """Whether the second is the first, rounded to its dtype; NaN is as good as NaN."""
        if one.shape != other.shape:
            return False
        return all(
            torch.allclose(rounded(one[at].double(), dtype), other[at].double(), rtol=0, atol=0, equal_nan=True)
            for at in self._spread(other)
        )

    def _spread(self, tensor: torch.Tensor) -> Sequence[At]:
        if tensor.dim() == 1:
            return [slice(None)]
        return self._blocks(tensor.shape[0], math.prod(tensor.shape[1:]))

    def _count(self, tensor: torch.Tensor) -> int:
        every = self.every or tensor.dim() == 1 or len(tensor) <= SAMPLED
        return len(tensor) if every else SAMPLED


def _rows(tensor: torch.Tensor) -> Rows:
    """What reads rows of a matrix; more axes are columns."""
    return lambda at: tensor[at].flatten(1).double()
