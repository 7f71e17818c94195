"""Sentences that give the reason of a verdict on names that share a tensor, or were meant to."""

from __future__ import annotations

import math
from collections.abc import Sequence

from inspector.analyses.sharing.result import FileRelation
from inspector.text import in_level

BY_NOTHING = "nothing declares it"
BY_CLASS = "the class declares it, whatever config.json says"
NOT_BY_CLASS, NOTHING = "The class does not tie these names", "Nothing declares it"
KEPT = {  # what the file stores of a tied group; {first} of the {count} names that it holds
    "no copy": "the file stores it in another form",
    "one copy": "the file stores one copy, as {first}",
    "one storage": "the file stores {count} names on one storage",
    "equal copies": "the file stores {count} equal copies",
    "different numbers": "the file stores {count} different copies",
    "not compared": "the file stores {count} copies, which cannot be compared yet",
}
NOT_HELD = "the file has it under none of these names: a loader fills it with random numbers"
ALIAS_ONLY = (
    "The file's metadata says that these names are one tensor, but the loaded model keeps them separate: what one of "
    "them learns, the other does not."
)
# {why} of names that nothing ties; {holder}: the file or the module.
ALONE_IN_FILE = "{why}, but the file has only {name}: a loader fills the others with random numbers.{mend}"
EQUAL = (
    "{why}, and the {holder} has {count} copies with the same numbers: they are equal but not shared, and training "
    "moves them apart."
)
DIFFERENT = "{why}, and the copies have different numbers: {distance}"
NOT_COMPARED = "{why}, and the file has {count} copies: whether they are equal is known when all weights are here."
# Names that are declared to be one tensor.
DECLARED = "They are declared to be one tensor"
ON_DEVICES = "Declared, but the tensors are on {devices}, and devices cannot share memory."
BROKEN = (
    "Declared, but broken: the {holder} has different numbers under these names, so the loaded model keeps them "
    "separate: {distance}"
)
KEPT_APART = "Declared, but the loaded model keeps these names separate."
# How far copies are apart, as the end of a sentence.
ALONE = "only one of them is available."
RESHAPED = "their shapes differ."
# What a reader must know of the answer.
HOMELESS = "{model} has no place for {count} of the file, such as {name}, so their sharing is not shown."
NOT_SEARCHED = "Equal copies that nothing declares are looked for when all weights are here."
MISSING = "The file lacks {count} of its own class, such as {name}: a loader would fill them with random numbers."


def kept(stored: Sequence[str], relation: FileRelation, *, lacking: bool) -> str:
    """What the file stores of a tied group, by its own names; "" for a module in memory."""
    if relation == "no file":
        return ""
    if lacking:
        return NOT_HELD
    return KEPT[relation].format(first=stored[0] if stored else "", count=len(stored))


def tied(names: int, kept: str, *, by: str, alike: bool) -> str:
    """Why names are tied: who declares it, and what the file stores, which is "" where there is no file."""
    views = "" if alike else " They are different views of it."
    block = f"One block of memory under {names} names"
    if not kept:
        return f"{block}: {by.removeprefix('config.json and ')}.{views}"
    return f"{block}: {by}, and {kept}.{views}"


def by_both(against: str | None) -> str:
    """Who ties names; config.json may say the opposite in a level that the class does not read."""
    if against is None:
        return "config.json and the class declare it"
    return f"the class declares it, which does not read that config.json sets tie_word_embeddings to false{at(against)}"


def set_to_false(level: str) -> str:
    """Why nothing ties names: config.json says so, in a level."""
    return f"config.json sets tie_word_embeddings to false{in_level(level)}"


def untied(level: str, against: str | None, *, silent: bool, config_class: str) -> str:
    """Why nothing ties names, as the beginning of a sentence.

    Args:
        level: The level of config.json that the class reads.
        against: Another one that ties them.
        silent: Whether config.json says nothing in the first.
        config_class: Whose default holds then.
    """
    reads = f"transformers' class reads {level or 'the top level'}"
    if against is None:
        return (
            f"config.json does not set tie_word_embeddings{in_level(level)}, whose default in {config_class} is false"
        )
    true = f"config.json sets tie_word_embeddings to true{at(against)}"
    if not silent:
        return f"{true} and to false{at(level)}; {reads}"
    nothing = f"nothing {'above' if not level else at(level).strip()}"
    return f"{true} and {nothing}; {reads}, whose default is false"


def tie_it(level: str) -> str:
    """What to do where the class does not read the level that ties, and the file has one copy."""
    return f" Set tie_word_embeddings to true{at(level)}."


def at(level: str) -> str:
    """A level of config.json, the top too."""
    return in_level(level) or " at the top"


def distance(max_abs: float, cosine: float, share: float) -> str:
    """How far apart copies are, as the end of a sentence.

    Args:
        max_abs: Largest difference of two numbers; NaN if a tensor holds one.
        cosine: Of the two as one long vector each.
        share: Of their numbers that were compared, 0..1.
    """
    if math.isnan(max_abs):
        return "at least one of them holds NaN."
    if share < 1:
        return f"in a sample of {share:.1%} of the numbers, largest difference {max_abs:.3g}, cosine {cosine:.4f}."
    return f"largest difference {max_abs:.3g}, overall cosine {cosine:.4f}."
