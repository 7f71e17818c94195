"""What the evidence about one weight proves, and what that of all weights proves together."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from inspector.analyses.merge_proof import words
from inspector.analyses.merge_proof.compute_replay import ReplayEvidence, Weight, look, replays, within
from inspector.analyses.merge_proof.result import NOTHING, PROCEDURES, PROVEN

SURE = 0.1  # standard error of a coefficient above which it says nothing
NEAR = 0.01  # of 1, besides what rounding explains
MOST_TIMES = 4  # merges of one adapter that are tried one after the other
# Shares of an alpha that people mean: half or twice of it, a scale that was left out or applied once more.
SHARES = (1 / 16, 1 / 8, 1 / 4, 1 / 3, 1 / 2, 2 / 3, 3 / 4, 1.5, 2.0, 3.0, 4.0, 8.0, 16.0, -1.0)


@dataclass(frozen=True, slots=True)
class Judged:
    """What was found of one tensor."""

    name: str
    targeted: bool
    verdict: str
    procedures: tuple[str, ...] = ()  # that replay it
    coefficient: float | None = None
    reason: str = ""
    rows: int = 0
    dot: float = 0.0  # ⟨merged − base, change⟩
    square: float = 0.0  # |change|²
    same: bool = False  # as the base


def judge(name: str, weight: Weight, *, scale: float, rank: int) -> Judged:
    """Say what became of a weight that an adapter changes.

    Args:
        name: Of the weight.
        weight: Where its numbers are.
        scale: Of the change.
        rank: Of the change; 0: it has none.
    """
    if weight.delta.nonfinite:
        return Judged(name, True, "not checkable", reason=words.NOT_FINITE)
    found = look(weight)
    if not math.isfinite(found.dot + found.square):
        return Judged(name, True, "not checkable", reason=words.NOT_FINITE, rows=found.rows)
    verdict, coefficient, reason = _verdict(weight, found, scale=scale, rank=rank)
    procedures = tuple(dict.fromkeys(way.procedure for way in found.open)) if verdict == "merged" else ()
    known = coefficient is not None
    return Judged(
        name,
        True,
        verdict,
        procedures,
        coefficient,
        reason,
        found.rows,
        found.dot if known else 0.0,
        found.square if known else 0.0,
        found.equal,
    )


def _verdict(weight: Weight, found: ReplayEvidence, *, scale: float, rank: int) -> tuple[str, float | None, str]:
    if not found.square:
        return (NOTHING, None, words.DEAD) if found.equal else ("other base", None, words.DEAD_CHANGED)
    if found.equal:
        return ("not checkable", None, words.HIDDEN) if found.open else ("not merged", 0.0, "")
    if found.open:
        return "merged", found.coefficient, ""
    near = 4 * found.error + NEAR
    if abs(found.coefficient - 1) <= near and found.error < SURE and within(weight, 1.0):
        return "within rounding", found.coefficient, ""
    verdict, reason = _times(weight, found.coefficient, near) or _scaled(weight, found, near, scale=scale, rank=rank)
    return verdict, found.coefficient, reason


def _times(weight: Weight, coefficient: float, near: float) -> tuple[str, str] | None:
    """Several merges of the same adapter, if replaying them gives the numbers."""
    for times in range(2, MOST_TIMES + 1):
        if abs(coefficient - times) <= near * times and replays(weight, times, one_by_one=True):
            return "merged more than once", words.TIMES.format(times=times)
    return None


def _scaled(weight: Weight, found: ReplayEvidence, near: float, *, scale: float, rank: int) -> tuple[str, str]:
    """One merge with another scale; if that explains nothing, another base."""
    coefficient = found.coefficient
    usual = [*SHARES, *((1 / scale,) if scale else ()), *((math.sqrt(rank), 1 / math.sqrt(rank)) if rank else ())]
    for share in usual:
        if abs(coefficient - share) <= near * max(abs(share), 0.1) and replays(weight, share):
            return "other alpha", words.SHARE.format(share=share)
    if found.error < SURE * abs(coefficient) and within(weight, coefficient):
        return "other alpha", words.SHARE.format(share=coefficient)
    return "other base", words.UNEXPLAINED


def conclude(
    judged: Sequence[Judged], dropped: Iterable[str], unreadable: Sequence[str]
) -> tuple[str, str | None, float | None]:
    """The verdict for the checkpoint, the procedure that replays all of it, and the coefficient of the whole.

    Args:
        judged: Every tensor.
        dropped: Those of the base that the merged model lacks.
        unreadable: Tensors of the adapter whose effect is not known: nothing is proven then.
    """
    targets = [each for each in judged if each.targeted and each.verdict != NOTHING]
    verdicts = {each.verdict for each in targets}
    square = sum(each.square for each in targets)
    coefficient = sum(each.dot for each in targets) / square if square else None
    replayed = [each.procedures for each in targets if each.verdict == "merged" and each.procedures]
    procedure = next((each for each in PROCEDURES if replayed and all(each in one for one in replayed)), None)
    verdict = _whole(verdicts)
    strangers = any(each.verdict == "changed" for each in judged)
    if verdict in PROVEN and (strangers or list(dropped)):
        verdict = "other base" if strangers else "partly merged"
    if verdict in PROVEN and unreadable:
        verdict = "not checkable"
    return verdict, procedure if verdict == "merged" else None, coefficient


def _whole(verdicts: set[str]) -> str:
    """Of all targets: what they have in common, or "partly merged"."""
    judged = verdicts - {"not checkable"}
    if not judged:
        return "not checkable"
    if judged <= set(PROVEN):
        if "not checkable" in verdicts:
            return "not checkable"
        return "within rounding" if "within rounding" in judged else "merged"
    if len(judged) == 1:
        return judged.pop()
    if judged & set(PROVEN) or "not merged" in judged:
        return "partly merged"
    return "other base" if "other base" in judged else "other alpha"
