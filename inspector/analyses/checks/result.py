"""Checks of a whole checkpoint: what each found, and what to do about it."""

from __future__ import annotations

import struct
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any, Literal, get_args

from inspector.results.findings import UNCHECKED
from inspector.results.plain import local

Status = Literal["ok", "warn", "fail"]
STATUSES: tuple[Status, ...] = get_args(Status)
# From nothing to everything: "none" (what was looked at), "note" (usual, good to know), "minor"
# (worth a look), "major" (some answers are wrong, or some inputs fail), "critical" (no answer can
# be trusted, or none is given).
Severity = Literal["none", "note", "minor", "major", "critical"]
SEVERITIES: tuple[Severity, ...] = get_args(Severity)
REPORTED = SEVERITIES[2:]  # what a check finds wrong
STATUS_OF: dict[Severity, Status] = dict(zip(SEVERITIES, ("ok", "ok", "warn", "fail", "fail"), strict=True))


# What the loader of the installed transformers makes of a stored tensor, the worst first. "new": a parameter of the
# class that no file holds. "ignored": the class itself lists it as not its own.
Outcome = Literal["wrong shape", "new", "dropped", "doubled", "ignored", "split", "fused", "renamed", "loaded"]
OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)


# What the files hold of an output matrix that could be the embeddings; "not read": both, and they were not compared.
HeldHead = Literal["embeddings alone", "equal", "different", "head alone", "neither", "not read"]
# What a loader makes of it; "not known": nobody here knows its rules for the class.
TieOutcome = Literal[
    "shared", "separate", "head random", "trained head thrown away", "refused", "not read", "not known"
]


@dataclass(frozen=True, slots=True)
class Evidence:
    """One thing that a check found."""

    subject: str  # what it concerns: a tensor's name, a token, a file, a setting
    problem: str  # a few words, the same ones for the same thing in every run
    severity: Severity
    count: int | None  # how many items are wrong; None where nothing is counted
    detail: str  # one sentence with the numbers
    id: str = ""  # of `results.findings.TABLE`; "" in results that are kept from before there were ids


@dataclass(frozen=True, slots=True)
class Check:
    """One check of a checkpoint, and its result."""

    name: str
    status: Status  # follows from the severity
    severity: Severity  # the worst of the evidence's
    detail: str  # one sentence: what was found
    next_step: str  # one sentence; "" if there is nothing to do
    checked: bool  # False: it could not run, and the detail explains why
    found: int  # pieces of evidence in total; the first ones are listed
    evidence: tuple[Evidence, ...]  # worst first
    id: str = ""  # stays when the name is worded anew

    @property
    def unchecked(self) -> str:
        """The id of the finding that this check could not be made."""
        return f"{self.id}.{UNCHECKED}"


@dataclass(frozen=True, slots=True)
class LoadingRow:
    """What becomes of tensors whose names, in the file and in the class, differ only in their places in lists."""

    pattern: str  # finds these names: "layers.*.mlp.weight"; of one its name
    count: int  # tensors of the file; of what is new, of the class
    file_name: str  # with the spans of these places: "layers.[0–11].mlp.weight"; "": no file holds it
    class_name: str  # likewise; several are separated by commas; "": the class has no place for it
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class TieRow:
    """What a loader makes of the output matrix, and why."""

    loader: str  # with the version that its rules are of
    outcome: TieOutcome
    reason: str  # one sentence
    level: str  # of config.json that it reads; "" is the top
    ties: bool | None  # by that level, or by the default of the class; None: not known
    held: HeldHead


@dataclass(frozen=True, slots=True)
class MatrixNorms:
    """How large the numbers of matrices are that share a shape and whose names differ only in their places in lists."""

    pattern: str  # with the spans of these places: "layers.[0–11].mlp.weight"; of one matrix its name
    shape: tuple[int, ...]
    tensors: int
    lowest_rms: float  # root mean square of a matrix's finite numbers: its norm over the root of their count
    median_rms: float
    highest_rms: float
    lowest_tensor: str  # name of the matrix with the least
    highest_tensor: str  # name of the matrix with the most


@dataclass(frozen=True, slots=True)
class EvidenceChange:
    """One piece of evidence that is new, worse, better or gone since an earlier run."""

    check: str
    subject: str
    problem: str
    change: str  # "new", "worse", "better" or "gone"
    severity: Severity  # the current one; if the evidence is gone, the former one
    id: str = ""


@dataclass(frozen=True, slots=True)
class Baseline:
    """Changes since an earlier run; severities "none" and "note" are left out."""

    name: str  # of the checkpoint in the earlier run
    fingerprint: str
    known: int  # pieces of evidence that are unchanged
    changes: tuple[EvidenceChange, ...]  # new and worse ones first


@dataclass(frozen=True, slots=True)
class Checks:
    """All checks of a checkpoint."""

    name: str
    fingerprint: str
    counts: dict[Status, int]  # status -> checks, in STATUSES order
    checks: tuple[Check, ...]  # in a fixed order
    baseline: Baseline | None = None  # None: no baseline was given
    values: str = "all"  # stored numbers that were read: "all", "sample" or "none"
    accepted: tuple[str, ...] = ()  # ids of findings that do not count in the exit status
    norms: tuple[MatrixNorms, ...] = ()  # of float matrices, by pattern of names and shape, in file order; at most 300
    loading: tuple[LoadingRow, ...] = ()  # the worst first, at most 300; empty where no class can be built
    ties: tuple[TieRow, ...] = ()  # one a loader; empty where the class has no output matrix that it could tie
    # Of each stored tensor in the files' order, as eight bytes: the RMS of a float matrix; infinity where numbers are
    # NaN or infinite; NaN: not measured. Empty: no numbers were read.
    measured: bytes = local(default=b"")

    @property
    def rms(self) -> tuple[float, ...]:
        """The same as numbers."""
        return struct.unpack(f"<{len(self.measured) // 8}d", self.measured)

    def worst_first(self) -> list[Check]:
        """The checks in the order in which they should be read."""
        return sorted(self.checks, key=lambda check: -SEVERITIES.index(check.severity))

    def failing(self, *, strict: bool = False) -> tuple[Check, ...]:
        """The checks that a pipeline should stop at.

        Args:
            strict: Warnings count as failures, too.

        Returns:
            Those that failed; with a baseline, only those with new or worse evidence.
        """
        enough = REPORTED if strict else REPORTED[1:]
        return tuple(check for check in self._since(enough) if self.counted(check) in enough)

    def unjudged(self) -> tuple[Check, ...]:
        """The checks that something kept from being made; with a baseline, only those that it has as made."""
        return tuple(check for check in self._since(REPORTED) if not check.checked and self.counted(check) in REPORTED)

    def counted(self, check: Check) -> Severity:
        """The worst of what a check found and nobody accepted."""
        if not self.accepted or check.severity not in REPORTED:
            return check.severity
        if not check.evidence:
            return "none" if check.unchecked in self.accepted else check.severity
        left: list[Severity] = [each.severity for each in check.evidence if each.id not in self.accepted]
        if check.found > len(check.evidence):  # what is not listed may be anything, and is no worse than the last one
            left.append(check.evidence[-1].severity)
        return max(left, key=SEVERITIES.index) if left else "none"

    def _since(self, enough: Collection[Severity]) -> Iterator[Check]:
        """The checks with evidence that bad; with a baseline, only those with new or worse one that nobody accepted."""
        worse = {
            each.check
            for each in (self.baseline.changes if self.baseline else ())
            if each.change in ("new", "worse") and each.severity in enough and each.id not in self.accepted
        }
        return (check for check in self.checks if self.baseline is None or check.name in worse)


def read_checks(plain: dict[str, Any]) -> Checks:
    """Checks out of what `to_json` made of them."""
    checks = (check | {"evidence": tuple(Evidence(**each) for each in check["evidence"])} for check in plain["checks"])
    named = {name: plain[name] for name in ("name", "fingerprint", "counts")}
    named["accepted"] = tuple(plain.get("accepted", ()))
    named["values"] = plain.get("values", "all")  # results that are kept from before had no choice
    norms = (MatrixNorms(**(row | {"shape": tuple(row["shape"])})) for row in plain.get("norms", ()))
    named["loading"] = tuple(LoadingRow(**row) for row in plain.get("loading", ()))
    named["ties"] = tuple(TieRow(**row) for row in plain.get("ties", ()))
    return Checks(**named, checks=tuple(Check(**check) for check in checks), norms=tuple(norms))
