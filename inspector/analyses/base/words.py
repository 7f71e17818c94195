"""What is said about two checkpoints of which one may be the base."""

from __future__ import annotations

from inspector.analyses.base.result import RELATED, Relation
from inspector.text import plural, some

NAMED = 6  # settings that are named
NO_MATRICES = "{name} contains no matrix of floating-point numbers that can be read: nothing tells its base."
QUANTIZED = "{} is quantized, so some of the difference may be its rounding."
WHICH_FIRST = "Which of two checkpoints came first?"
WHICH_FIRST_ANSWER = (
    "Their weights do not tell: if one was trained further from the other, each looks like a small change of the "
    "other. The larger vocabulary, the added head or the date of a file may tell."
)
HOW = "How is this judged?"
HOW_ANSWER = (
    "From up to 60 matrices, chosen by their names, of each at most 32 rows and 32 columns; the rest is not read. "
    "Matrices of one kind that were trained apart have a cosine near 0. Fine-tuning leaves nearly all of the base: the "
    "cosine and the coefficient are near 1. A merge with another model takes one share of every matrix, the "
    "coefficient. A merged adapter is a difference of few directions, its rank."
)


def quantized(name: str) -> str:
    """Its numbers are rounded."""
    return QUANTIZED.format(name)


def headline(found: Relation) -> str:
    """The verdict, and what it rests on."""
    return f"{_verdict(found)} {_evidence(found)}"


def _verdict(found: Relation) -> str:
    name, other = found.name, found.other_name
    match found.verdict:
        case "same":
            return f"{name} has the weights of {other}."
        case "fine-tuned from" if found.rank:
            return f"{name} is {other} with a change of rank {found.rank} or less, as a merged adapter is."
        case "fine-tuned from":
            return f"{name} was fine-tuned from {other}, or {other} from {name}."
        case "merged with":
            return f"{name} is a merge of {other} with something else."
        case "unrelated":
            return f"{name} and {other} are unrelated."
    return f"The sampled numbers do not tell whether {name} was made from {other}."


def _evidence(found: Relation) -> str:
    if not found.matched:
        return "No sampled matrix has the same name and shape in both."
    matched = f"{found.equal} of {plural(found.matched, 'sampled matrix', 'sampled matrices')} are equal"
    if found.cosine is None or found.coefficient is None:
        return f"{matched}." if found.verdict in RELATED else f"{matched}, but most are in one of the two only."
    return f"{matched}; the others have cosine {found.cosine:.3f} and coefficient {found.coefficient:.2f}."


def facts(found: Relation) -> dict[str, str]:
    """The evidence in a few values."""
    said = {"Matrices in both": f"{found.matched} of {found.own} sampled, and of {found.other} of {found.other_name}"}
    if found.relative_change is not None:
        said["Relative change"] = f"{found.relative_change:.3g}"
        said["Rank of the change"] = f"at most {found.rank}" if found.rank else "more than the sample shows"
    if found.tokens and found.other_tokens and found.shared_tokens is not None:
        said["Tokens in both"] = f"{found.shared_tokens:,} of {found.tokens:,} and {found.other_tokens:,}"
    said["Settings that differ"] = some(found.settings, NAMED) if found.settings else "none"
    return said
