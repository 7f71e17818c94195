"""Judge groups of names: tied, equal copies, diverged, declared only, alias only, not compared, and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import torch

from inspector.analyses.sharing import words_verdicts as words
from inspector.analyses.sharing.result import UNCOMPARED, FileRelation, Verdict
from inspector.models.copies import Copies
from inspector.models.memory import locate
from inspector.models.ties import TieFlag
from inspector.store.manifests.columns import TensorInfo


@dataclass(frozen=True, slots=True)
class SharingEvidence:
    """What is known of every name before groups are judged."""

    tensors: Mapping[str, torch.Tensor]  # parameters and buffers in memory, by model name
    parameters: frozenset[str]  # those of them that are parameters
    held: Mapping[str, TensorInfo] | None  # model name -> what the file holds; None: no file
    aliases: Mapping[str, str]  # name that only the metadata lists -> stored name
    copies: Copies
    memory: Sequence[frozenset[str]]  # names with bytes in common
    declared: Sequence[frozenset[str]]
    possible: Sequence[frozenset[str]]  # what the class would tie if the config said so
    config_ties: bool
    untied: bool = False  # config.json says so, and its class ties all the same
    flag: TieFlag | None = None  # as the class reads it; None: of a module, which has no file
    missing: frozenset[str] = frozenset()  # names that a loader fills with random numbers

    @property
    def holder(self) -> str:
        """What holds the numbers, in a word."""
        return "module" if self.held is None else "file"

    def can_compare(self, name: str) -> bool:
        """Whether there are numbers under a name that `copies` can compare."""
        return name in (self.tensors if self.held is None else self.held)

    def stored(self, names: Sequence[str]) -> tuple[str, ...]:
        """What the file calls those of some names that it holds, sorted."""
        return tuple(sorted(self.held[name].name for name in names if self.held is not None and name in self.held))


@dataclass(frozen=True, slots=True)
class Judgment:
    """A group's verdict and the facts behind it."""

    names: tuple[str, ...]  # sorted
    verdict: Verdict
    reason: str
    declared: bool
    in_memory: bool
    stored: tuple[str, ...]  # the file's own names of those that it holds, sorted
    aliases: tuple[str, ...]  # sorted
    file_relation: FileRelation


def find_groups(evidence: SharingEvidence) -> list[tuple[str, ...]]:
    """Groups to judge: overlapping in memory, declared, possible by the class, aliased, equal.

    A group whose names another one holds already is left out.
    """
    by_stored = {info.name: name for name, info in (evidence.held or {}).items()}
    aliased = [
        {alias, by_stored[kept]}
        for alias, kept in evidence.aliases.items()
        if kept in by_stored and alias in evidence.tensors
    ]
    found: list[set[str]] = []
    for names in (
        *evidence.memory,
        *evidence.declared,
        *evidence.possible,
        *join_pairs(aliased),
        *map(frozenset, evidence.copies.equal_groups() if evidence.copies.readable else ()),
    ):
        known = set(names) & set(evidence.tensors)
        if len(known) > 1 and not any(known <= earlier for earlier in found):
            found.append(known)
    return [tuple(sorted(names)) for names in found]


def join_pairs(pairs: Sequence[set[str]]) -> list[frozenset[str]]:
    """Join sets that have a name in common."""
    joined: list[set[str]] = []
    for pair in pairs:
        touching = [names for names in joined if names & pair]
        joined = [names for names in joined if not names & pair]
        joined.append(pair.union(*touching))
    return [frozenset(names) for names in joined]


def judge(names: tuple[str, ...], evidence: SharingEvidence) -> Judgment:
    """Give a group its verdict and the sentence that explains it."""
    in_memory = any(set(names) <= group for group in evidence.memory)
    declared = any(set(names) <= group for group in evidence.declared)
    held = tuple(name for name in names if evidence.held is not None and name in evidence.held)
    aliases = tuple(name for name in names if name in evidence.aliases and name not in held)
    relation = _file_relation(held, evidence)
    stored = evidence.stored(names)
    if relation == UNCOMPARED and not in_memory:
        why = words.DECLARED if declared else _why_untied(names, evidence)
        reason = words.NOT_COMPARED.format(why=why, count=len(held))
        return Judgment(names, UNCOMPARED, reason, declared, in_memory, stored, aliases, relation)
    compared = [name for name in names if evidence.can_compare(name)]
    verdict: Verdict
    if in_memory:
        by = words.BY_NOTHING
        if declared:
            silent = evidence.flag if evidence.flag and evidence.flag.said is None else None
            by = words.BY_CLASS if evidence.untied else words.by_both(silent and silent.against)
        verdict = "tied"
        kept = words.kept(stored, relation, lacking=evidence.missing.issuperset(names))
        reason = words.tied(len(names), kept, by=by, alike=_alike(names, evidence))
    elif aliases and len(held) < len(names):
        verdict, reason = "alias only", words.ALIAS_ONLY
    elif declared:
        verdict, reason = "declared only", _broken(compared, evidence)
    else:
        verdict, reason = _untied(names, compared, evidence)
    return Judgment(names, verdict, reason, declared, in_memory, stored, aliases, relation)


def _untied(names: tuple[str, ...], compared: Sequence[str], evidence: SharingEvidence) -> tuple[Verdict, str]:
    """Judge names that nothing declares to be one tensor, and that are not."""
    why = _why_untied(names, evidence)
    if evidence.held is not None and len(compared) == 1:
        (name,) = evidence.stored(compared)
        mend = words.tie_it(evidence.flag.level) if evidence.flag and evidence.flag.against is not None else ""
        return "diverged", words.ALONE_IN_FILE.format(why=why, name=name, mend=mend)
    if compared and _are_equal(compared, evidence):
        return "equal copies", words.EQUAL.format(why=why, holder=evidence.holder, count=len(compared))
    return "diverged", words.DIFFERENT.format(why=why, distance=_distance(compared, evidence.copies))


def _why_untied(names: tuple[str, ...], evidence: SharingEvidence) -> str:
    possible = any(set(names) <= group for group in evidence.possible)
    if not possible or evidence.config_ties:
        return words.NOT_BY_CLASS if possible else words.NOTHING
    flag = evidence.flag
    if flag is None or (flag.said is False and flag.against is None):
        return words.set_to_false(flag.level if flag else "")
    return words.untied(flag.level, flag.against, silent=flag.said is None, config_class=flag.config_class)


def _distance(names: Sequence[str], copies: Copies) -> str:
    """How far apart the two least similar of these are, in words."""
    if len(names) < 2:
        return words.ALONE
    measured = [copies.difference(one, other) for one, other in combinations(names, 2)]
    apart = [difference for difference in measured if difference is not None]
    if len(apart) < len(measured):
        return words.RESHAPED
    worst = min(apart, key=lambda difference: (difference.cosine, -difference.max_abs))
    return words.distance(worst.max_abs, worst.cosine, worst.share)


def _file_relation(held: Sequence[str], evidence: SharingEvidence) -> FileRelation:
    if evidence.held is None:
        return "no file"
    if len(held) < 2:
        return "one copy" if held else "no copy"
    if len({(evidence.held[name].file, evidence.held[name].storage) for name in held}) == 1:
        return "one storage"
    if not evidence.copies.readable:
        return UNCOMPARED
    return "equal copies" if _are_equal(held, evidence) else "different numbers"


def _are_equal(names: Sequence[str], evidence: SharingEvidence) -> bool:
    """Whether the same numbers are under all of these names, of which there is at least one."""
    return all(evidence.copies.same(names[0], name) for name in names[1:])


def _alike(names: Sequence[str], evidence: SharingEvidence) -> bool:
    """Whether every name is the very same view of its block."""
    places = {
        (block.begin, block.shape, block.strides) for name in names if (block := locate(0, "", evidence.tensors[name]))
    }
    return len(places) == 1


def _broken(names: Sequence[str], evidence: SharingEvidence) -> str:
    devices = {str(evidence.tensors[name].device) for name in names if name in evidence.tensors}
    if len(devices) > 1:
        return words.ON_DEVICES.format(devices=" and ".join(sorted(devices)))
    if len(names) > 1 and not _are_equal(names, evidence):
        return words.BROKEN.format(holder=evidence.holder, distance=_distance(names, evidence.copies))
    return words.KEPT_APART
