"""Sentences about what a checkpoint holds."""

from __future__ import annotations

from collections.abc import Sequence

from inspector.analyses.overview.figures_parts import DrawnTensors, Magnitude
from inspector.analyses.overview.result import ListedTensor, Overview
from inspector.analyses.overview.result_gguf import GgufFacts
from inspector.names import group_names, list_pattern
from inspector.results.checkpoint import TokenizerInfo
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
    "text_to_text": ("Text to text", "Which text follows from this one?"),
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
# Keys of a GGUF file's metadata, below its architecture -> what they are called here
SIZES = {
    "block_count": "layers",
    "embedding_length": "hidden size",
    "feed_forward_length": "feed-forward size",
    "attention.head_count": "heads",
    "attention.head_count_kv": "key/value heads",
    "context_length": "context length",
    "rope.freq_base": "RoPE base",
    "rope.scaling.type": "RoPE scaling",
    "expert_count": "experts",
}
SPECIAL = {
    "begins": "bos_token_id",
    "ends": "eos_token_id",
    "ends a turn": "eot_token_id",
    "unknown": "unknown_token_id",
    "pads": "padding_token_id",
}
COLORED_BY = {"kind": "By kind", "dtype": "By dtype", "file": "By file", "rms": "By RMS"}
PORTRAIT = "Area: number of parameters. One of identical layers is drawn"
RMS = "Color: root mean square of the stored numbers, of several matrices together"
IN_SAMPLE = "of a sample"


CHAT_TEMPLATE = "The chat template in the file's metadata:"


def bits(facts: GgufFacts) -> str:
    """How many bits a number takes, and in which types."""
    return f"{facts.bits_per_weight:.3g} on average, in {', '.join(facts.types)}"


def _described(facts: GgufFacts) -> dict[str, str]:
    """What the metadata of a GGUF file says, in short."""
    said, architecture = facts.metadata, facts.architecture
    of_model = {key.removeprefix(f"{architecture}."): value for key, value in said.items()}
    sizes = [f"{label} {of_model[key]}" for key, label in SIZES.items() if key in of_model]
    imatrix = said.get("quantize.imatrix.file")
    dataset = said.get("quantize.imatrix.dataset", "an unnamed dataset")
    return {
        "GGUF architecture": f"{architecture or 'not stated'}{': ' if sizes else ''}{', '.join(sizes)}",
        "Bits a number": bits(facts),
        "Importance matrix": f"{imatrix}, from {dataset}" if imatrix else "none recorded",
    }


def _special(facts: GgufFacts) -> dict[str, str]:
    """What the metadata of a GGUF file says of its tokenizer."""
    said = {key.removeprefix("tokenizer.ggml."): value for key, value in facts.metadata.items()}
    kinds = [said[key] for key in ("model", "pre") if key in said]
    ids = [f"{role} {said[key]}" for role, key in SPECIAL.items() if key in said]
    return {
        "Tokenizer": ", ".join([*kinds, f"{said['tokens']} of tokens"]) if "tokens" in said else "none in the metadata",
        "Special tokens": f"{', '.join(ids)} (ids)" if ids else "none in the metadata",
    }


def _tokens(tokenizer: TokenizerInfo | None) -> dict[str, str]:
    return {
        "Tokenizer": f"{tokenizer.kind}, {tokenizer.size:,} ids" if tokenizer else "none",
        "Padding token": _token(tokenizer.pad_token, tokenizer.pad_id) if tokenizer else "none",
        "Mask token": _token(tokenizer.mask_token, tokenizer.mask_id) if tokenizer else "none",
    }


def headline(overview: Overview) -> str:
    """The checkpoint in a sentence: class, size, heads."""
    gguf = overview.gguf and f"a GGUF file of the architecture {overview.gguf.architecture or 'that it does not state'}"
    what = overview.architecture or overview.model_type or gguf or "a checkpoint without config.json"
    dtypes = " and ".join(overview.dtypes) or "no tensors"
    present = [HEADS[head][0] for head, state in overview.all_heads.items() if state == "present"]
    heads = f"with weights for {' and '.join(present)}" if present else "without a task head"
    return (
        f"{overview.name} is {what}: {count_text(overview.unique_parameters)} parameters in {dtypes}, "
        f"{bytes_text(overview.nbytes_on_disk)}, {heads}."
    )


def portrait_subtitle(color: str, values: str) -> str:
    """What the portrait shows.

    Args:
        color: What its colors tell.
        values: Which stored numbers were read.
    """
    if color != "rms":
        return PORTRAIT
    return f"{RMS}, {IN_SAMPLE}" if values == "sample" else RMS


def _sizes(size: Magnitude) -> dict[str, str]:
    """How large the numbers of a part are, where they were read."""
    rms = f"{size.rms:.3g}"
    if size.measured > 1:
        rms += f"; of {size.measured:,} tensors from {size.lowest:.3g} to {size.highest:.3g}"
    broken = plural(size.broken, "tensor")
    return {**({"RMS": rms} if size.measured else {}), **({"NaN or infinity": f"in {broken}"} if size.broken else {})}


def part_facts(part: DrawnTensors, size: Magnitude) -> dict[str, str]:
    """What is known of one rectangle of the portrait."""
    if part.kind == "vectors":
        return {"Vectors": f"{part.count:,}", "Parameters": f"{part.parameters:,}", **_sizes(size)}
    return {
        "Shape": shape_text(part.shape) + (f", {part.count:,} of them in a layer" if part.count > 1 else ""),
        "Stored as": part.dtype,
        "Parameters": "none of its own: a second name" if part.kind == "tied" else f"{part.parameters:,}",
        **_sizes(size),
    }


def details(overview: Overview) -> dict[str, str]:
    """What configuration, headers and tokenizer say of the model."""
    tokenizer = overview.tokenizer
    twice = overview.listed_parameters - overview.unique_parameters
    links = ", ".join(file.name for file in overview.files if file.linked_from)
    ways = ", ".join(f"{count:,} weights as {way}" for way, count in overview.quantized.items())
    return {
        **({} if overview.gguf else {"Model type": overview.model_type or "no config.json"}),
        **({} if overview.gguf else {"Architecture": overview.architecture or "not stated"}),
        **({"sentence-transformers runs": " → ".join(overview.pipeline)} if overview.pipeline else {}),
        "Stored as": ", ".join(f"{name} ({count:,})" for name, count in overview.dtypes.items()),
        **({"Quantized": ways} if ways else {}),
        **(_described(overview.gguf) if overview.gguf else {}),
        **({"Read through links": links} if links else {}),
        **(_special(overview.gguf) if overview.gguf else _tokens(tokenizer)),
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
