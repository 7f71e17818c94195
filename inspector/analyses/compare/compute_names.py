"""Find which tensors of two checkpoints are meant to be the same one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from inspector.analyses.sharing.result import Sharing
from inspector.errors import InspectorError
from inspector.models.checkpoint import StagedCheckpoint
from inspector.models.families import modern


@dataclass(frozen=True, slots=True)
class CheckpointNames:
    """The names of one checkpoint."""

    held: Sequence[str]  # with bytes of their own in the files, in file order
    tied: Sequence[frozenset[str]]  # names of one tensor each, in memory or by the file's metadata


@dataclass(frozen=True, slots=True)
class Pair:
    """A tensor of the first checkpoint, one of the second, or both."""

    name: str | None
    other: str | None
    matched: str  # one of results.MATCHES; "" where one is missing


class Spelling:
    """Gives names without the base model's prefix, in today's spelling."""

    def __init__(self, bases: Iterable[str]) -> None:
        """Args: attributes of base models, such as "bert"."""
        self._prefixes = tuple(sorted({f"{base}." for base in bases if base}, key=len)[::-1])

    def __call__(self, name: str) -> str:
        """The name that both checkpoints would use."""
        today = modern(name)
        prefix = next((each for each in self._prefixes if today.startswith(each)), "")
        return today.removeprefix(prefix)


def base_of(checkpoint: StagedCheckpoint) -> str:
    """The base model's attribute, which files of the base class leave out of their names."""
    if checkpoint.family:
        return checkpoint.family.base
    try:
        return checkpoint.own_class.base_model_prefix
    except InspectorError:  # no config, or one that transformers does not know, or no class is there
        return ""


def names_of(checkpoint: StagedCheckpoint, sharing: Sharing | None) -> CheckpointNames:
    """Gather the names of a checkpoint, and which of them are one tensor."""
    manifest = checkpoint.manifest
    tied = [frozenset(pair) for pair in manifest.aliases.items()]
    groups = sharing.groups if sharing else ()
    tied += [frozenset(group.names) for group in groups if group.verdict == "tied"]
    return CheckpointNames([tensor.name for tensor in checkpoint.tensors], tied)


def match_names(first: CheckpointNames, second: CheckpointNames, spelling: Spelling) -> list[Pair]:
    """Match tensors by name, then by spelling, then through ties.

    Returns:
        A pair for every tensor of the first, in its order, then those that the second alone has.
        A tensor may stand in two pairs: as itself, and for a name that is tied to it.
    """
    partner = _by_spelling(first.held, second.held, spelling)
    found = set(partner.values())
    through = _through_ties(first.held, partner, second, spelling)
    back = _through_ties(second.held, found, first, spelling)
    pairs = [
        Pair(name, partner[name], "name" if partner[name] == name else "spelling")
        if name in partner
        else Pair(name, through.get(name), "tie" if name in through else "")
        for name in first.held
    ]
    added = [Pair(back.get(name), name, "tie" if name in back else "") for name in second.held if name not in found]
    return pairs + added


def _by_spelling(first: Sequence[str], second: Sequence[str], spelling: Spelling) -> dict[str, str]:
    there = set(second)
    partner = {name: name for name in first if name in there}
    left = defaultdict(list), defaultdict(list)
    for names, found in zip((first, second), left, strict=True):
        for name in names:
            if name not in partner:
                found[spelling(name)].append(name)
    for bare, names in left[0].items():
        others = left[1].get(bare, [])
        if len(names) == len(others) == 1:  # anything else would be a guess
            partner[names[0]] = others[0]
    return partner


def _through_ties(
    names: Sequence[str], known: Collection[str], there: CheckpointNames, spelling: Spelling
) -> dict[str, str]:
    """Name -> what the other checkpoint holds for it under another name of the same tensor."""
    held: dict[str, str] = {}
    for name in there.held:
        held.setdefault(spelling(name), name)
    place = {name: at for at, name in enumerate(there.held)}
    keeper: dict[str, str] = {}
    for group in there.tied:
        bare = {spelling(name) for name in group}
        if kept := [held[each] for each in bare if each in held]:
            keeper |= dict.fromkeys(bare, min(kept, key=place.__getitem__))
    return {name: keeper[spelling(name)] for name in names if name not in known and spelling(name) in keeper}
