"""Sentences about what a checkpoint holds."""

from __future__ import annotations

from collections.abc import Sequence

from inspector.analyses.overview.figures_parts import Part
from inspector.analyses.overview.result import ListedTensor, Overview
from inspector.names import group_names, list_pattern
from inspector.text import bytes_text, count_text, plural, shape_text

# What each head answers, for readers who do not know its class.
HEADS = {
    "masked_lm": ("Masked LM", "Which token belongs at the mask?"),
    "causal_lm": ("Causal LM", "Which token comes next?"),
    "next_sentence": ("Next sentence", "Does the second sentence follow the first?"),
    "sequence_classification": ("Sequence classification", "Which label or number fits the text?"),
    "token_classification": ("Token classification", "Which label fits each token?"),
    "question_answering": ("Question answering", "Where in the text is the answer?"),
    "multiple_choice": ("Multiple choice", "Which ending fits best?"),
}
UNKNOWN_CODES = "{names} are quantized in an unknown way, so nothing is computed from them."
NO_NUMBERS = (
    "{count:,} of the {of:,} tensors contain no numbers ({names}), like the placeholders that sharded training "
    "(DeepSpeed ZeRO-3, FSDP) saves. If the run was sharded, gather its weights and save them again."
)
BY_NAMES = (
    "The model's class could not be asked, so names alone decide: a head that they do not tell counts as absent, and "
    "a parameter that the class would tie may count twice. {error}"
)
HEAD_IS_ABSENT = (
    "config.json names {architecture}, but the file lacks that head's weights. The head counts as absent, because a "
    "loader would fill it with random numbers."
)
MANY_ROWS = (
    "The embedding matrix has {more:,} more rows than the tokenizer has ids ({rows:,} versus {ids:,}): no text can "
    "reach them."
)
PARAMETERS = (
    "Counts every number once, even under two names; quantized weights count as dequantized. A matrix that the files "
    "store twice may count twice: Parameter sharing compares such copies and counts what a loaded model has."
)
IN_MEMORY = (
    "The weights as stored: bytes under two names count once, copies count each. A model that runs takes more if its "
    "quantized weights are dequantized."
)


HEADS_BY_WEIGHTS = "The heads are determined from the weights in the files."
NO_ABSENT_HEAD = "No absent head ever predicts anything here."
NO_HEAD = "This checkpoint has none, so it gives no predictions."


MORE = "--tensors lists every tensor, --find some of them, --hash the files' SHA-256."
MORE_OF_ADAPTER = f"The command adapter says what it changes, and how much. {MORE}"
PORTRAIT = "Area: number of parameters. One of identical layers is drawn"


def headline(overview: Overview) -> str:
    """The checkpoint in a sentence: class, size, heads."""
    what = overview.architecture or overview.model_type or "a checkpoint without config.json"
    dtypes = " and ".join(overview.dtypes) or "no tensors"
    present = [HEADS[head][0] for head, state in overview.heads.items() if state == "present"]
    heads = f"with weights for {' and '.join(present)}" if present else "without a task head"
    return (
        f"{overview.name} is {what}: {count_text(overview.unique_parameters)} parameters in {dtypes}, "
        f"{bytes_text(overview.nbytes_on_disk)}, {heads}."
    )


def part_facts(part: Part) -> dict[str, str]:
    """What is known of one rectangle of the portrait."""
    if part.kind == "vectors":
        return {"Vectors": f"{part.count:,}", "Parameters": f"{part.parameters:,}"}
    return {
        "Shape": shape_text(part.shape) + (f", {part.count:,} of them in a layer" if part.count > 1 else ""),
        "Stored as": part.dtype,
        "Parameters": "none of its own: a second name" if part.kind == "tied" else f"{part.parameters:,}",
    }


def details(overview: Overview) -> dict[str, str]:
    """What configuration, headers and tokenizer say of the model."""
    tokenizer = overview.tokenizer
    twice = overview.listed_parameters - overview.unique_parameters
    links = ", ".join(file.name for file in overview.files if file.linked_from)
    ways = ", ".join(f"{count:,} weights as {way}" for way, count in overview.quantized.items())
    return {
        "Model type": overview.model_type or "no config.json",
        "Architecture": overview.architecture or "not stated",
        **({"sentence-transformers runs": " → ".join(overview.pipeline)} if overview.pipeline else {}),
        "Stored as": ", ".join(f"{name} ({count:,})" for name, count in overview.dtypes.items()),
        **({"Quantized": ways} if ways else {}),
        **({"Read through links": links} if links else {}),
        "Tokenizer": f"{tokenizer.kind}, {tokenizer.size:,} ids" if tokenizer else "none",
        "Padding token": _token(tokenizer.pad_token, tokenizer.pad_id) if tokenizer else "none",
        "Mask token": _token(tokenizer.mask_token, tokenizer.mask_id) if tokenizer else "none",
        "Tied": f"{twice:,} parameters have a second name" if twice else "nothing, according to the headers",
    }


def in_short(overview: Overview) -> str:
    """The checkpoint in a line: class, parameters, dtypes and tensors."""
    what = overview.architecture or overview.model_type or overview.name
    numbers = f"{count_text(overview.unique_parameters)} parameters"
    return " · ".join([what, numbers, " and ".join(overview.dtypes), plural(len(overview.tensors), "tensor")])


def _token(token: str | None, token_id: int | None) -> str:
    return f"{token} (id {token_id})" if token else "none"


def tensor_lines(tensors: Sequence[ListedTensor]) -> list[str]:
    """One line for each tensor, and one for all that differ in their places in lists alone."""
    alike = [(each.shape, each.dtype, tuple(list_pattern(name)[0] for name in each.tied_to)) for each in tensors]
    several = len({each.file for each in tensors}) > 1
    return [
        _line(group.label, [tensors[place] for place in group.places], several=several)
        for group in group_names([each.name for each in tensors], alike)
    ]


def _line(label: str, members: Sequence[ListedTensor], *, several: bool) -> str:
    first = members[0]
    kind = f"{shape_text(first.shape)} {first.dtype}"
    parts = [
        label,
        kind if len(members) == 1 else f"{len(members):,} tensors of {kind}",
        bytes_text(sum(each.nbytes for each in members)),
    ]
    files = {each.file for each in members}
    if several:
        parts.append(first.file if len(files) == 1 else plural(len(files), "file"))
    if first.name_in_file:
        parts.append(f"{_folded([each.name_in_file or each.name for each in members])} in the file")
    if first.tied_to:
        tied = zip(*(each.tied_to for each in members), strict=True)
        parts.append(f"tied to {', '.join(_folded(names) for names in tied)}")
    return " · ".join(parts)


def _folded(names: Sequence[str]) -> str:
    """One name, or the pattern of several."""
    return group_names(sorted(set(names)))[0].label


def total(tensors: Sequence[ListedTensor]) -> str:
    """What listed tensors add up to."""
    parameters = sum(each.parameters for each in tensors)
    return (
        f"{plural(len(tensors), 'tensor')}, {plural(parameters, 'number')}, "
        f"{bytes_text(sum(each.nbytes for each in tensors))}"
    )
