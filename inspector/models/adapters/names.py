"""Find a tensor under the name that another file gives it."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable

from inspector.models.checkpoint import StagedCheckpoint
from inspector.models.families import modern
from inspector.models.ties import kept_ties

PREFIXES = 3  # parts at the beginning of a name that one of two files may leave out
LISTED = re.compile(r"\.(\d{1,9})(?=\.)|^(\d{1,9})(?=\.)")  # a module's place in a list
EXPERT = re.compile(r"(experts)\.\d{1,9}(?=\.)")


class Names:
    """The names of one checkpoint's tensors, with or without the prefix of the base model's attribute."""

    def __init__(self, names: Iterable[str]) -> None:
        self._held = {modern(name): name for name in names}
        shorter: defaultdict[str, list[str]] = defaultdict(list)
        for name, stored in self._held.items():
            for short in _shortened(name):
                shorter[short].append(stored)
        self._shorter = {short: found[0] for short, found in shorter.items() if len(found) == 1}

    def find(self, name: str) -> str | None:
        """The stored name of a tensor; None: there is none, or it is not clear which."""
        today = modern(name)
        if today in self._held:
            return self._held[today]
        return next((self._held[short] for short in _shortened(today) if short in self._held), self._shorter.get(today))


def _shortened(name: str) -> Iterable[str]:
    parts = name.split(".")
    return (".".join(parts[count:]) for count in range(1, min(PREFIXES, len(parts) - 2) + 1))


def tied_to(checkpoint: StagedCheckpoint, name: str) -> str | None:
    """The name that the model's class keeps a tensor under when the two are tied; None: it ties them to nothing."""
    return checkpoint.family.ties.get(name) if checkpoint.family else None


def tied_with(checkpoint: StagedCheckpoint, name: str) -> list[str]:
    """The other names that loading a checkpoint ties to a tensor."""
    model = checkpoint.structure[0] if checkpoint.structure else None
    pairs = tuple(kept_ties(model).items()) if model is not None else ()
    sources = {pair[1] for pair in pairs if Names(pair).find(name)}
    every = dict.fromkeys(each for pair in pairs if pair[1] in sources for each in pair)
    return [each for each in every if not Names([each]).find(name)]


def ties(checkpoint: StagedCheckpoint) -> bool:
    """Whether loading the checkpoint ties its head to its embeddings."""
    usual = checkpoint.family.tied_by_default if checkpoint.family else False
    said = checkpoint.setting("tie_word_embeddings").value
    return said if isinstance(said, bool) else usual


def place_of(name: str) -> tuple[str, str]:
    """The layer of a tensor, "" outside of any, and its name within."""
    found = LISTED.search(name)
    if found is None:
        return "", name
    return found[1] or found[2], EXPERT.sub(r"\1.*", name[found.end() + 1 :])
