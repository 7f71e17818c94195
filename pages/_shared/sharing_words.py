"""The words of the sharing page, with the numbers of the checkpoint at hand."""

from __future__ import annotations

from collections.abc import Iterator

from inspector.figures.text import bytes_text, plural
from inspector.results import SharedGroup, Sharing
from pages._shared.words import literal


def explain_sharing(sharing: Sharing) -> Iterator[tuple[str, str]]:
    """Questions that people ask about tying, each with its answer for this checkpoint."""
    tied = [group for group in sharing.groups if group.in_memory and group.names]
    weight = next((group for group in tied if len(group.shape) == 2), None)
    if weight is not None:
        yield _why_missing(sharing, weight)
        yield _what_tying_is(weight)
    broken = [group for group in sharing.groups if group.declared and not group.in_memory]
    if broken:
        yield (
            "Why is a declared tie not there?",
            f"The configuration declares {plural(len(broken), 'tie')} that the weights do not "
            "keep: the copies differ, so tying them would throw one away. Any further training "
            "moves them apart.",
        )
    if weight is None:
        yield (
            "Would tying be possible here?",
            "Tying needs an output layer as wide as the input embedding, "
            "(vocabulary, hidden size). No two matrices of this model share their bytes, so "
            "training one leaves every other as it is.",
        )


def _why_missing(sharing: Sharing, group: SharedGroup) -> tuple[str, str]:
    first, others = group.names[0], group.names[1:]
    order = [name for name in sharing.tensors["name"] if name in group.names]
    if order:
        first, others = order[0], tuple(name for name in group.names if name != order[0])
    hidden = sharing.listed_parameters - sharing.unique_parameters
    lost = ", ".join(f"`{_code(name)}`" for name in others)
    return (
        f"Why is {literal(others[0])} not among the parameters?",
        f"It is there, under its other name. `named_parameters()` lists a shared parameter once, "
        f"under the first name that it meets: `{_code(first)}`. {lost} "
        f"{'is' if len(others) == 1 else 'are'} the same {_shape(group)} tensor. "
        f"`named_parameters(remove_duplicate=False)` shows every name: "
        f"{sharing.listed_parameters:,} parameters by name, of which {hidden:,} are second names, "
        f"and {sharing.unique_parameters:,} in memory.",
    )


def _what_tying_is(group: SharedGroup) -> tuple[str, str]:
    return (
        "What is weight tying?",
        f"The output projection *is* the input embedding: one block of memory, "
        f"{_shape(group)} and {bytes_text(group.nbytes)}, read as a table on the way in and as a "
        "projection on the way out. No transpose is needed: a linear layer stores (out, in), "
        "which is (vocabulary, hidden size) here. Every step of training moves both at once. "
        "Press & Wolf (2017), *Using the Output Embedding to Improve Language Models*; "
        "Inan et al. (2016); Vaswani et al. (2017), section 3.4.",
    )


def _shape(group: SharedGroup) -> str:
    return " × ".join(f"{size:,}" for size in group.shape)


def _code(name: str) -> str:
    return name.replace("`", "'")
