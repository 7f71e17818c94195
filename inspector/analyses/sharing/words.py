"""Sentences about which names share memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from inspector.analyses.sharing.result import UNCOMPARED, SharedGroup, Sharing
from inspector.text import bytes_text, percent_text, plural, shape_text

INPUTS = {"word_embeddings", "wte", "embed_tokens", "embed_in", "shared", "tok_embeddings"}
OUTPUTS = {"decoder", "lm_head", "embed_out", "vocab_projector", "generator_lm_head", "output"}
JUDGED = "How each group was judged: as declared, in the file, and in memory."
REUSED = "Modules that one forward pass runs more than once"
# {who} the names, {n} tensors of {shape}; by verdict, or by verdict and what the file holds.
ANSWERS = {
    "tied": "{who} are tied: one tensor of {shape} under {names}.",
    "equal copies": "{who} are not tied, but equal so far: {n} copies of {shape} have the same numbers until training "
    "moves them apart.",
    "diverged": "{who} are not tied: {n} different tensors of {shape}.",
    "declared only": "{who} are declared tied, but the loaded model keeps them separate.",
    "declared only, different numbers": "{who} are declared tied, but the file has {n} different tensors of {shape}.",
    "not compared": "{who} are {n} tensors of {shape} in the file: whether they are equal is known when all weights "
    "are here.",
    "alias only": "The file says that {who} are one tensor, but the loaded model keeps them separate.",
}
# What the file holds, by its relation to the model's names.
FILES = {
    "one copy": "The file stores the tensor once, because no two tensors in a safetensors file may share bytes. It "
    "has {held} but not {lacking}. Nothing is lost: a loader assigns the tensor to every name that the class ties.",
    "one storage": "It does not: a .bin file lists every name and records which of them share a storage. It has "
    "{held}, whose bytes are written once.",
    "equal copies": "It does not: it has equal copies under {held}, so the same bytes are stored {count} times, and a "
    "loader that ties keeps one of them.",
}

IN_FILE = {
    "one copy": "one copy, as {first}",
    "one storage": "one storage, under {held}",
    "equal copies": "equal copies under {held}",
    "different numbers": "different numbers under {held}",
    "not compared": "copies under {held}, not compared yet",
    "no copy": "under none of these names",
    "no file": "no file: a module in memory",
}


def answer(sharing: Sharing) -> str:
    """What is shared, in a sentence or two."""
    if not sharing.groups:
        names = plural(len(sharing.tensors), "name")
        return f"Nothing is shared: each of the {names} has its own tensor. {_reuse(sharing)}".strip()
    group = main_group(sharing)
    return " ".join(filter(None, [answer_for(group), _others(sharing, group), _reuse(sharing)]))


def main_group(sharing: Sharing) -> SharedGroup:
    """The group that most people ask about: the embeddings, else the largest."""
    return next(filter(_is_embedding, sharing.groups), sharing.groups[0])


def answer_for(group: SharedGroup) -> str:
    """Whether the names of a group share memory."""
    text = ANSWERS.get(f"{group.verdict}, {group.file_relation}") or ANSWERS[group.verdict]
    return text.format(
        who=_who(group),
        n=tensors_in_memory(group),
        shape=shape_text(group.shape),
        names=plural(len(group.names), "name"),
    )


def sizes(*counted: Sharing | SharedGroup) -> str:
    """Parameters and bytes by name and once, and what sharing saves."""
    listed, unique, listed_nbytes, unique_nbytes = (
        sum(getattr(each, name) for each in counted)
        for name in ("listed_parameters", "unique_parameters", "listed_nbytes", "unique_nbytes")
    )
    saved = listed_nbytes - unique_nbytes
    saving = (
        f"sharing saves {bytes_text(saved)}, {percent_text(saved / listed_nbytes)}" if saved else "nothing is saved"
    )
    return (
        f"{listed:,} parameters by name, {unique:,} unique; {bytes_text(listed_nbytes)} by name, "
        f"{bytes_text(unique_nbytes)} unique; {saving}."
    )


def alike(others: Sequence[SharedGroup]) -> str:
    """How many groups follow one pattern, the first not counted, and what all of them take."""
    return f"{plural(len(others) - 1, 'more group')} of this pattern; in total: {sizes(*others)}"


def explain(sharing: Sharing) -> Iterator[tuple[str, str]]:
    """Questions that people ask about tying, each with its answer for this checkpoint."""
    tied = [group for group in sharing.groups if group.in_memory and group.names]
    weight = next((group for group in tied if len(group.shape) == 2), None)
    if weight is not None:
        yield _why_missing(sharing, weight)
        yield _what_tying_is(weight)
        if weight.file_relation in FILES:
            yield _why_not_in_file(weight)
        yield (
            "Is tying the same as cloning?",
            f"No. {plural(len(weight.names), 'name')} of one tensor cannot differ; clones start equal, take "
            f"{bytes_text(weight.nbytes)} more each, and differ after the first training step.",
        )
        yield "What does sharing save?", sizes(sharing)
    open_groups = any(group.verdict == UNCOMPARED for group in sharing.groups)
    broken = [
        group for group in sharing.groups if group.declared and not group.in_memory and group.verdict != UNCOMPARED
    ]
    if broken:
        yield (
            "Why is a declared tie missing?",
            f"The configuration declares {plural(len(broken), 'tie')} that the loaded model does not keep. "
            f"{' '.join(group.reason for group in broken[:3])}",
        )
    if weight is None and not open_groups:
        yield (
            "Would tying be possible here?",
            "Tying needs an output layer as wide as the input embedding, (vocabulary, hidden size). No two matrices "
            "of this model share their bytes, so training one leaves every other as it is.",
        )


def _why_missing(sharing: Sharing, group: SharedGroup) -> tuple[str, str]:
    order = [name for name in sharing.tensors["name"] if name in group.names] or list(group.names)
    first, others = order[0], [name for name in group.names if name != order[0]]
    return (
        f"Why is {others[0]} not among the parameters?",
        "It is, under its other name. named_parameters() lists a shared parameter once, under the first name that it "
        f"finds: {first}. {', '.join(others)} {'is' if len(others) == 1 else 'are'} the same "
        f"{shape_text(group.shape)} tensor. named_parameters(remove_duplicate=False) lists every name: "
        f"{sharing.listed_parameters:,} parameters by name, of which "
        f"{sharing.listed_parameters - sharing.unique_parameters:,} are second names, and "
        f"{sharing.unique_parameters:,} in memory.",
    )


def _what_tying_is(group: SharedGroup) -> tuple[str, str]:
    block = f"one block of memory, {shape_text(group.shape)} and {bytes_text(group.nbytes)}"
    if not _modules(group) & OUTPUTS:
        return (
            "What is tied here?",
            f"{plural(len(group.names), 'name')} for {block}: none of them is an output layer. Every training step "
            "moves all of them at once.",
        )
    vocab, d_model = group.shape
    return (
        "What is weight tying, and why is no transpose needed?",
        f"The output projection is the input embedding: {block}. On the way in, row i is looked up as the vector of "
        f"token i; on the way out, nn.Linear({d_model}, {vocab}) computes hidden · weightᵀ. A linear layer stores its "
        f"weight as (out, in), which is ({vocab:,}, {d_model:,}) = (vocab, d_model): the embedding's own shape, so "
        "nothing is transposed. Every training step moves both at once. Press & Wolf (2017), Using the Output "
        "Embedding to Improve Language Models; Inan et al. (2016); Vaswani et al. (2017), section 3.4.",
    )


def _why_not_in_file(group: SharedGroup) -> tuple[str, str]:
    lacking = ", ".join(member.name for member in group.members if not member.stored_as)
    text = FILES[group.file_relation]
    return (
        "Why does the saved file lack a tensor?",
        text.format(held=", ".join(group.in_file), lacking=lacking, count=len(group.in_file)),
    )


def truths(group: SharedGroup) -> tuple[str, str, str]:
    """What the configuration, the file and memory each say of a group."""
    declared = "yes, in the configuration and the class" if group.declared else "no"
    held = IN_FILE[group.file_relation].format(
        first=group.in_file[0] if group.in_file else "", held=plural(len(group.in_file), "name")
    )
    aliases = f"; only as an alias: {', '.join(group.aliases)}" if group.aliases else ""
    memory = "one block" if group.in_memory else f"{plural(tensors_in_memory(group), 'tensor')}, separate"
    return declared, held + aliases, memory


def tensors_in_memory(group: SharedGroup) -> int:
    """How many tensors the names of a group are."""
    return 1 if group.in_memory else len({(member.storage, member.offset) for member in group.members})


def _is_embedding(group: SharedGroup) -> bool:
    return len(group.shape) == 2 and bool(_modules(group) & INPUTS)


def _modules(group: SharedGroup) -> set[str]:
    """Names of the modules that hold a group's names: "lm_head" of "lm_head.weight"."""
    return {name.rpartition(".")[0].rpartition(".")[2] for name in group.names}


def _who(group: SharedGroup) -> str:
    if _is_embedding(group) and _modules(group) & OUTPUTS:
        return "Input and output embeddings"
    if len(group.names) == 2:
        return " and ".join(group.names)
    return f"{group.names[0]} and {plural(len(group.names) - 1, 'more name')}"


def _others(sharing: Sharing, main: SharedGroup) -> str:
    """The groups that the answer leaves out: their names, or a count by verdict."""
    others = [group for group in sharing.groups if group is not main]
    if len(others) == 1 and others[0].verdict == "tied" and len(others[0].names) == 2:
        return f"Also tied: {' and '.join(others[0].names)}."
    counts = ", ".join(f"{count:,} {verdict}" for verdict, count in Counter(each.verdict for each in others).items())
    return f"Other groups of names: {counts}." if counts else ""


def _reuse(sharing: Sharing) -> str:
    """Modules that run more than once: sharing that no name shows."""
    if not sharing.reused_modules:
        return ""
    module = max(sharing.reused_modules, key=lambda each: each.uses)
    count = len(sharing.reused_modules)
    others = f" (and {plural(count - 1, 'other module')})" if count > 1 else ""
    return f"{module.name}{others} runs {module.uses} times in one forward pass."
