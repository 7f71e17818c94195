"""Find the ties that one checkpoint has and another has not."""

from __future__ import annotations

from collections.abc import Sequence

from inspector.analyses.compare import words_notes as words
from inspector.analyses.compare.compute_names import Spelling
from inspector.analyses.compare.result import TieChange
from inspector.analyses.sharing.result import SharedGroup, Sharing


def changed_ties(
    first: Sharing, second: Sharing, *, names: tuple[str, str], spelling: Spelling
) -> tuple[TieChange, ...]:
    """List the groups that are tied in memory in one of two models and not in the other.

    Returns:
        Those of the first before those of the second, the largest of each first.
    """
    here = _broken(first, second, tied_in="first", other=names[1], spelling=spelling)
    there = _broken(second, first, tied_in="second", other=names[0], spelling=spelling)
    return (*here, *there)


def _broken(
    holder: Sharing, other_sharing: Sharing, *, tied_in: str, other: str, spelling: Spelling
) -> list[TieChange]:
    groups = [(_bare(group.names, spelling), group) for group in other_sharing.groups]
    tied = [bare for bare, group in groups if group.verdict == "tied"]
    known = _bare(other_sharing.tensors["name"].tolist(), spelling)
    broken = []
    for group in holder.groups:
        bare = _bare(group.names, spelling)
        if group.verdict == "tied" and not any(bare <= each for each in tied):
            verdict, reason = _explain(group, groups, known, other, spelling)
            broken.append(TieChange(group.names, tied_in, verdict, group.shape, group.nbytes, reason))
    return broken


def _explain(
    group: SharedGroup,
    groups: Sequence[tuple[frozenset[str], SharedGroup]],
    known: frozenset[str],
    other: str,
    spelling: Spelling,
) -> tuple[str, str]:
    """The other checkpoint's verdict on these names, and one sentence about it."""
    missing = [name for name in group.names if spelling(name) not in known]
    if len(group.names) - len(missing) < 2:
        return "absent", words.NOTHING_TO_TIE.format(other=other, names=", ".join(missing))
    bare = _bare(group.names, spelling)
    untied = [
        (len(bare & theirs), judged) for theirs, judged in groups if judged.verdict != "tied" and len(bare & theirs) > 1
    ]
    if untied:
        judged = max(untied, key=lambda pair: pair[0])[1]
        return judged.verdict, judged.reason
    return "apart", words.APART.format(other=other)


def _bare(names: Sequence[str], spelling: Spelling) -> frozenset[str]:
    return frozenset(spelling(name) for name in names)
