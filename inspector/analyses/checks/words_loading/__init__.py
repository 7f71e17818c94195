"""What the check of loading says: what becomes of each tensor, and what contradicts config.json."""

from __future__ import annotations

from collections.abc import Mapping

from inspector.analyses.checks.words_loading import ties
from inspector.text import plural

TAB = "Loading"  # and the check of this name
TITLE = "What a loader makes of the files, by pattern of names"
MEANINGS = {
    "outcome": (
        "what the installed transformers does: loads it, renames it, fuses several into one (experts, codes and their "
        "scales), splits one, ignores it because the class lists it as not its own, drops it, has it twice, cannot "
        "load it (wrong shape); new: a parameter that no file holds, which a loader fills with random numbers"
    )
}
OF_ANOTHER_KIND = "class of another kind of model"
OTHER_KIND = (
    "config.json names the class {named}, which is of model type {own}, but its model_type is {said}: transformers' "
    "Auto classes go by model_type, other loaders by the class."
)
UNEVEN_GROUPS = "heads that do not divide into groups"
UNEVEN = (
    "config.json sets num_attention_heads to {heads} and num_key_value_heads to {groups}, which does not divide it: "
    "the attention of the model fails."
)
OTHER_HEADS = "another number of heads"
FEWER_AHEAD = "fewer layers for multi-token prediction than declared"
NO_COMPANION = "quantized weight without its scale"
LACKS = "{lacks} is not in the files, while {others:,} other quantized weights have one: these codes stand for nothing."
OTHER_COMPANION = "scale of another shape"
UNFIT = "The codes are {codes}, which does not go with what is beside them: {beside}."
SPARE_COMPANION = "scale without a quantized weight"
PLAIN = "It belongs to codes, but the weight beside it is stored as {}."
NO_CODES = "It belongs to codes, and there are none beside it."
NO_SCALES = (
    "config.json declares weights that are quantized ({method}), and no float8 weight in the files has a scale: these "
    "codes stand for nothing."
)
CODES_LEFT_ALONE = "quantized, and named as not quantized"
LEFT_ALONE = (
    "config.json names it in {key} ({pattern}), but it is stored as {scheme}: a loader builds a plain layer there, "
    "which codes do not fit."
)
QUANTIZE_AGAIN = "Look for the file that has it, or have the weights quantized again."
COMPARE = "Compare config.json with the one that was saved with these weights."
STEPS = {
    NO_COMPANION: QUANTIZE_AGAIN,
    OTHER_COMPANION: QUANTIZE_AGAIN,
    SPARE_COMPANION: "Compare the tensors with those where the weights come from.",
    CODES_LEFT_ALONE: "Compare the list in config.json with that of the program that quantized the weights.",
    OF_ANOTHER_KIND: "If the weights are of that class, set model_type to its type. Otherwise name the class that was "
    "saved.",
    ties.THROWN_AWAY: ties.UNTIE,
    ties.RANDOM: ties.TIE,
    UNEVEN_GROUPS: COMPARE,
    OTHER_HEADS: COMPARE,
    FEWER_AHEAD: "If a server is to predict several tokens ahead, get these layers from where the weights come from. "
    "The model itself needs none of them.",
}
# How many tensors had an outcome, in a clause.
CLAUSES = {
    "loaded": "{} loaded as named",
    "renamed": "{} renamed",
    "fused": "{} fused",
    "split": "{} split",
    "ignored": "{} ignored by the class",
    "doubled": "{} there twice",
    "dropped": "{} dropped",
    "new": "{} of the class made up",
    "wrong shape": "{} of the wrong shape",
}


def outcomes(model_class: str, counts: Mapping[str, int]) -> str:
    """What becomes of all tensors, in one sentence."""
    total = sum(count for outcome, count in counts.items() if outcome != "new")
    told = ", ".join(CLAUSES[outcome].format(f"{count:,}") for outcome, count in counts.items())
    return f"{model_class} is made of {plural(total, 'tensor')}: {told}."


def first_of(count: int, subject: str, detail: str) -> str:
    """What was found first, the worst, and how much more."""
    return f"{subject}: {detail}{f' And {count - 1:,} more.' if count > 1 else ''}"


def heads(rows: int, held: int, size: int, *, key: str, said: int) -> str:
    """A matrix has the rows of another number of heads."""
    return f"It has {rows:,} rows, as for {plural(held, 'head')} of {size}, but config.json sets {key} to {said}."


def prediction(key: str, count: int, held: int) -> str:
    """Layers that config.json declares are not in the files."""
    there = f"only {held:,}" if held else "none"
    return f"config.json sets {key} to {count:,}, but the files hold {there} of these layers."
