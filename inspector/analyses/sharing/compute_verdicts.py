"""Judge groups of names: tied, equal copies, diverged, declared only, alias only, and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import get_args

import torch

from inspector.analyses.sharing.result import FileRelation, Verdict
from inspector.models.copies import Copies
from inspector.models.memory import locate
from inspector.store.manifests.manifest import TensorInfo

_BY_CLASS = "the class declares it, whatever config.json says"
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)


@dataclass(frozen=True, slots=True)
class Evidence:
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

    def can_compare(self, name: str) -> bool:
        """Whether there are numbers under a name that `copies` can compare."""
        return name in (self.tensors if self.held is None else self.held)


@dataclass(frozen=True, slots=True)
class Judgment:
    """A group's verdict and the facts behind it."""

    names: tuple[str, ...]  # sorted
    verdict: Verdict
    reason: str
    declared: bool
    in_memory: bool
    held: tuple[str, ...]  # sorted
    aliases: tuple[str, ...]  # sorted
    file_relation: FileRelation


def find_groups(evidence: Evidence) -> list[tuple[str, ...]]:
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
        *map(frozenset, evidence.copies.equal_groups()),
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


def judge(names: tuple[str, ...], evidence: Evidence) -> Judgment:
    """Give a group its verdict and the sentence that explains it."""
    in_memory = any(set(names) <= group for group in evidence.memory)
    declared = any(set(names) <= group for group in evidence.declared)
    held = tuple(name for name in names if evidence.held is not None and name in evidence.held)
    aliases = tuple(name for name in names if name in evidence.aliases and name not in held)
    verdict: Verdict
    relation = _file_relation(held, evidence)
    compared = [name for name in names if evidence.can_compare(name)]
    equal = all(evidence.copies.same(compared[0], name) for name in compared[1:])
    if in_memory:
        verdict, reason = "tied", _tied(names, held, declared, relation, evidence)
    elif aliases and len(held) < len(names):
        verdict = "alias only"
        reason = (
            "The file's metadata says that these names are one tensor, but the loaded model keeps them apart: what "
            "one of them learns, the other does not."
        )
    elif declared:
        verdict = "declared only"
        reason = _broken(compared, equal=equal, evidence=evidence)
    elif len(compared) == 1 and evidence.held is not None:
        verdict = "diverged"
        reason = (
            f"{_why_untied(names, evidence)}, and the file holds {compared[0]} alone: a loader fills the others with "
            "random numbers."
        )
    elif equal and compared:
        verdict = "equal copies"
        reason = (
            f"{_why_untied(names, evidence)}, and {_holder(evidence)} {len(compared)} copies with the same numbers: "
            "they are equal, not shared, and drift apart as soon as either is trained."
        )
    else:
        verdict = "diverged"
        reason = (
            f"{_why_untied(names, evidence)}, and the copies hold different numbers: "
            f"{describe_distance(compared, evidence.copies)}"
        )
    return Judgment(names, verdict, reason, declared, in_memory, held, aliases, relation)


def describe_distance(names: Sequence[str], copies: Copies) -> str:
    """Say how far apart the two least similar of these are, as the end of a sentence."""
    if len(names) < 2:
        return "only one of them is at hand."
    measured = [copies.difference(one, other) for one, other in combinations(names, 2)]
    apart = [difference for difference in measured if difference is not None]
    if len(apart) < len(measured):
        return "their shapes differ."
    worst = min(apart, key=lambda difference: (difference.cosine, -difference.max_abs))
    if worst.max_abs != worst.max_abs:  # NaN
        return "at least one of them holds NaN."
    if worst.share < 1:
        return (
            f"in a sample of {worst.share:.1%} of the numbers, largest difference {worst.max_abs:.3g}, cosine "
            f"{worst.cosine:.4f}."
        )
    return f"largest difference {worst.max_abs:.3g}, overall cosine {worst.cosine:.4f}."


def _file_relation(held: Sequence[str], evidence: Evidence) -> FileRelation:
    if evidence.held is None:
        return "no file"
    if len(held) < 2:
        return "one copy" if held else "no copy"
    if len({(evidence.held[name].file, evidence.held[name].storage) for name in held}) == 1:
        return "one storage"
    same = all(evidence.copies.same(held[0], name) for name in held[1:])
    return "equal copies" if same else "different numbers"


def _why_untied(names: tuple[str, ...], evidence: Evidence) -> str:
    possible = any(set(names) <= group for group in evidence.possible)
    if possible and not evidence.config_ties:
        return "config.json says tie_word_embeddings = false"
    return "The class does not tie these names" if possible else "Nothing declares it"


def _holder(evidence: Evidence) -> str:
    return "the module holds" if evidence.held is None else "the file holds"


def _tied(names: Sequence[str], held: Sequence[str], declared: bool, relation: str, evidence: Evidence) -> str:
    views = "" if _alike(names, evidence) else " They are views of it, not all the same one."
    by = "nothing declares it"
    if declared:
        by = _BY_CLASS if evidence.untied else "config.json and the class declare it"
    if relation == "no file":
        return f"One block of memory under {len(names)} names: {by.removeprefix('config.json and ')}." + (views)
    kept = {
        "no copy": "the file stores it under another name",
        "one copy": f"the file stores one copy, as {held[0] if held else ''}",
        "one storage": f"the file stores {len(held)} names on one storage",
        "equal copies": f"the file stores {len(held)} equal copies",
        "different numbers": f"the file stores {len(held)} different copies",
    }[relation]
    return f"One block of memory under {len(names)} names: {by}, and {kept}.{views}"


def _alike(names: Sequence[str], evidence: Evidence) -> bool:
    """Whether every name is the very same view of its block."""
    places = {
        (block.begin, block.shape, block.strides) for name in names if (block := locate(0, "", evidence.tensors[name]))
    }
    return len(places) == 1


def _broken(names: Sequence[str], *, equal: bool, evidence: Evidence) -> str:
    devices = {str(evidence.tensors[name].device) for name in names if name in evidence.tensors}
    if len(devices) > 1:
        return (
            f"Declared, but the names lie on {' and '.join(sorted(devices))}, and memory cannot be shared across "
            "devices."
        )
    if len(names) > 1 and not equal:
        where = "module" if evidence.held is None else "file"
        return (
            f"Declared, but broken: the {where} holds different numbers under these names, so the loaded model keeps "
            f"them apart: {describe_distance(names, evidence.copies)}"
        )
    return "Declared, but the loaded model keeps these names apart."
