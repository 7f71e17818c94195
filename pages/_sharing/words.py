"""The words of the sharing page, with the numbers of the checkpoint at hand."""

from __future__ import annotations

from collections.abc import Iterator

from inspector.analyses.sharing.result import SharedGroup, Sharing
from inspector.text import bytes_text, literal, percent_text, plural
from pages._sharing.parts import OUTPUTS

# What the file holds, by its relation to the model's names.
FILES = {
    "one copy": "The file stores the tensor once: no two tensors of a safetensors file may have "
    "bytes in common. Here it holds {held}, and not {lacking}. That is no loss: a loader puts the "
    "one tensor under every name that the class ties.",
    "one storage": "It does not: a `.bin` file lists every name and keeps which of them share a "
    "storage. Here it holds {held}, whose bytes are written once.",
    "equal copies": "It does not: it holds equal copies under {held}, so the same bytes are "
    "stored {count} times, and a loader that ties keeps one of them.",
}


def explain_sharing(sharing: Sharing) -> Iterator[tuple[str, str]]:
    """Questions that people ask about tying, each with its answer for this checkpoint."""
    tied = [group for group in sharing.groups if group.in_memory and group.names]
    weight = next((group for group in tied if len(group.shape) == 2), None)
    if weight is not None:
        yield _why_missing(sharing, weight)
        yield _what_tying_is(weight)
        if weight.file_relation in FILES:
            yield _why_not_in_file(weight)
        yield _why_not_cloned(weight)
        yield _what_it_saves(sharing)
    broken = [group for group in sharing.groups if group.declared and not group.in_memory]
    if broken:
        yield (
            "Why is a declared tie not there?",
            f"The configuration declares {plural(len(broken), 'tie')} that the loaded model does "
            f"not keep. {' '.join(literal(group.reason) for group in broken[:3])}",
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
    projects = any(name.split(".")[-2:-1][0] in OUTPUTS for name in group.names if "." in name)
    if not projects:
        return (
            "What is tied here?",
            f"One block of memory, {_shape(group)} and {bytes_text(group.nbytes)}, under "
            f"{plural(len(group.names), 'name')}: none of them is an output layer. Every step of "
            "training moves all of them at once.",
        )
    vocab, d_model = group.shape
    return (
        "What is weight tying, and why is no transpose needed?",
        f"The output projection *is* the input embedding: one block of memory, "
        f"{_shape(group)} and {bytes_text(group.nbytes)}. On the way in, row *i* is looked up as "
        f"the vector of token *i*; on the way out, `nn.Linear({d_model}, {vocab})` computes "
        f"hidden · weightᵀ. A linear layer stores its weight as (out, in), which is "
        f"({vocab:,}, {d_model:,}) = (vocab, d_model): the embedding's own shape, so nothing is "
        "transposed. Every step of training moves both at once. "
        "Press & Wolf (2017), *Using the Output Embedding to Improve Language Models*; "
        "Inan et al. (2016); Vaswani et al. (2017), section 3.4.",
    )


def _why_not_in_file(group: SharedGroup) -> tuple[str, str]:
    lacking = [name for name in group.names if name not in group.in_file]
    names = ", ".join(f"`{_code(name)}`" for name in group.in_file)
    return (
        "Why does the saved file lack a tensor?",
        FILES[group.file_relation].format(
            held=names, lacking=", ".join(f"`{_code(name)}`" for name in lacking), count=len(group.in_file)
        ),
    )


def _why_not_cloned(group: SharedGroup) -> tuple[str, str]:
    return (
        "Is tied the same as cloned?",
        f"No. {plural(len(group.names), 'name')} of one tensor cannot differ; clones start equal, "
        f"take {bytes_text(group.nbytes)} more each, and part at the first training step. Choose "
        "*clone* below and see it done to a copy of this model.",
    )


def _what_it_saves(sharing: Sharing) -> tuple[str, str]:
    saved = sharing.listed_parameters - sharing.unique_parameters
    return (
        "What does sharing save?",
        f"Without it the model would have {sharing.listed_parameters:,} parameters, with it "
        f"{sharing.unique_parameters:,}: {saved:,} fewer, "
        f"{percent_text(saved / max(sharing.listed_parameters, 1))}, and "
        f"{bytes_text(sharing.listed_nbytes - sharing.unique_nbytes)} less memory.",
    )


def _shape(group: SharedGroup) -> str:
    return " × ".join(f"{size:,}" for size in group.shape)


def _code(name: str) -> str:
    return name.replace("`", "'")
