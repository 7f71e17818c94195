"""What the checks of shapes, heads, left-over tensors, ties and padding say."""

from __future__ import annotations

from collections.abc import Sequence

from inspector.analyses.checks.words import such_as
from inspector.text import in_level, plural, shape_text

OWN_CONFIG = "Put the config.json that was saved with these weights in their folder."
NO_CONFIG = "There is no config.json"
CHECK_THE_MODEL = "To check a model, open the base model, or a model that the adapter was merged into."
NO_CLASS_NAMED = "config.json names no class: {built} was tried."
NO_SUCH_CLASS = "transformers has no class {named}: {built} was tried."
COMPARE_CONFIG = (
    "Compare config.json, and which files there are, with where the weights come from: either may have changed, or a "
    "file may be missing."
)
NAME_A_CLASS = (
    "If the class comes with code of its own (trust_remote_code), leave config.json as it is. Otherwise, set "
    "architectures to the class of transformers that these weights belong to."
)
COMPLETE = "All {parameters:,} parameters of {built} are in the file."
BUT_POOLER = "All parameters of {built} but its pooler are in the file; sentence-transformers does not use that one."
TAKE_ITS_FILE = (
    "Check that no weight file is missing. If all are there, the weights may be another class's, such as an encoder's "
    "without this head: architectures in config.json names the class."
)
READ_THEM = "They may be in {file}, which loaders do not read: the check of the files says why."
GET_THE_SHARDS = "The index lists them, but its shards do not hold them: compare both with their source."
TIE_AT = (
    "Set tie_word_embeddings to true {place} of config.json, as it is{against}: transformers' class reads it there."
)
ADD_THE_SHARD = "They may be in the shards that are not there: the check of the files names them."
NEVER_LOADED = "{built} has no parameter of this name, so the tensor is never loaded."
NAME_ITS_CLASS = (
    "If another class needs them, set architectures in config.json to that class. Keep them otherwise: another program "
    "may use what this class leaves out."
)
UNTIED = "{built} ties no parameters."
TIED_APART = "{subject} have the same numbers but are not tied: training moves them apart."
TIE_THEM = "If they should be one tensor, set tie_word_embeddings to true in config.json."
FIND_THE_STEP = (
    "Find the step that separated them (a resize, a conversion, a merge). If they should differ, set "
    "tie_word_embeddings to false in config.json."
)
NO_PADDING = "Neither config.json nor the tokenizer names a padding token."
NAME_THE_PAD = (
    "Find out which token the model was trained to pad with: pad_token_id in config.json and the tokenizer should both "
    "name that one. In some models positions are counted from this id, so a wrong one changes every answer."
)
FIND_WHAT_BROKE_IT = (
    "Compare the row with the source or with an earlier checkpoint of the run, and find the step that broke it."
)
PAD_WITH_A_ROW = (
    "Compare the tokenizer's files with their source. If this token is to pad, the model needs a row for it: "
    "model.resize_token_embeddings(len(tokenizer)) adds it."
)


def no_config() -> str:
    """Nothing says what the weights are."""
    return f"{NO_CONFIG}: heads, ties and shapes cannot be checked, and no model can be built."


def fits(tensors: int) -> str:
    """All shapes are those that config.json asks for."""
    return f"config.json fits the shapes of {plural(tensors, 'tensor')}."


def tie_at(level: str, against: str) -> str:
    """What to do where the class does not read the level of config.json that ties."""
    place = f"in {level}" if level else "at the top"
    return TIE_AT.format(place=place, against=in_level(against) or " at the top")


def mismatch(found: Sequence[int], wanted: Sequence[int]) -> str:
    """A tensor of another shape."""
    return f"{shape_text(found)} in the file, {shape_text(wanted)} according to config.json."


def mismatches(count: int, first: str, detail: str) -> str:
    """Some tensors have other shapes; `detail` is the first one's."""
    tensors = plural(count, "tensor has another shape", "tensors have other shapes")
    return f"{tensors} than config.json expects {such_as(count, first)}: {detail}"


def missing(shape: Sequence[int], part: str, unread: str | None) -> str:
    """A parameter that the file lacks, of the base model or a head; a file that no loader reads may have it."""
    there = f" {unread} has it, which loaders do not read." if unread else ""
    return f"{shape_text(shape)}, part of the {part}: a loader fills it with random numbers.{there}"


def head_there(head: str) -> str:
    """A head that the file holds."""
    return f"The file has the {head.replace('_', ' ').replace('lm', 'LM')} head."


def lacking(built: str, count: int, first: str, *, random: int, parameters: int, pooler: bool) -> str:
    """Parameters are not in the file, of which `pooler`: none but the pooler's."""
    consequence = "from_pretrained fills them with random numbers, so any result that depends on them is meaningless"
    if pooler:
        consequence = "pooler_output would be random, but the hidden states are unaffected"
    return (
        f"{built} needs {plural(count, 'tensor')} that the file lacks {such_as(count, first)}: {consequence} "
        f"({random:,} of {parameters:,} parameters)."
    )


def by_pipeline(built: str, modules: Sequence[str]) -> str:
    """Which class sentence-transformers loads, and the modules that it runs."""
    return f"sentence-transformers loads it as {built} and runs {' → '.join(modules)} (modules.json)."


def unused_head(named: str, lacking: int) -> str:
    """The class that config.json names is not the one that is loaded."""
    said = f"config.json names {named}, which it does not load"
    if not lacking:
        return f"{said}."
    return f"{said}: the file lacks {plural(lacking, 'tensor')} of that class, and nothing uses them."


def left_over(built: str, count: int, first: str, *, ahead: bool, beside: int, loader: str) -> str:
    """Which tensors have no place in the class.

    Args:
        ahead: Others predict several tokens ahead.
        beside: How many belong to quantized weights.
        loader: The class that has a place for them; "" where none has.
    """
    if not count:
        scales = f", except for {plural(beside, 'tensor')} that belong to quantized weights" if beside else ""
        return f"{built} has a place for every {'other ' if ahead else ''}tensor{scales}."
    tensors = plural(count, "tensor")
    said = f"The file has {tensors} {such_as(count, first)} that {built} has no place for and never uses"
    return f"{said}; {loader} loads {'it' if count == 1 else 'them'}." if loader else f"{said}."


def ahead(built: str, names: Sequence[str], layers: Sequence[int], *, key: str, count: int) -> str:
    """Which tensors predict several tokens ahead, and who says so: a setting of config.json, or the class."""
    one = len(layers) == 1 or (count == 1 and not layers)
    kind = f"the multi-token-prediction layer{'' if one else 's'}"
    by = f"config.json declares ({key} {count})" if key else f"{built} is written to leave out"
    if layers:
        what = f"Layer{'' if one else 's'} {', '.join(map(str, layers))} {'is' if one else 'are'} {kind} that {by}"
    else:
        tensors = plural(len(names), "tensor belongs", "tensors belong")
        what = f"{tensors} {such_as(len(names), names[0])} to {kind} that {by}"
    them = "it" if one else "them"
    return f"{what}: transformers skips {them} when it loads the model; vLLM and SGLang use {them}."


def broken_ties(count: int, first: str) -> str:
    """Names that should be one tensor are not."""
    ties = plural(count, "tie is", "ties are")
    return (
        f"{ties} broken {such_as(count, first)}: the names should be one tensor, but the loaded model keeps them "
        "separate."
    )


def tied(groups: int, apart: int, *, equal: int) -> str:
    """How many groups of names are tied, how many could be and are not, and how many are equal all the same."""
    rest = f"; {plural(apart, 'other group')} separate, as config.json declares" if apart else ""
    copies = f"; {plural(equal, 'other group has', 'other groups have')} equal numbers" if equal else ""
    return f"{plural(groups, 'group of names is', 'groups of names are')} tied{rest}{copies}."


def no_row(pad: int, rows: int, level: str) -> str:
    """The padding id, from a level of config.json, is past the matrix, or counts from its end."""
    said = f"config.json sets pad_token_id to {pad:,}{in_level(level)}"
    if pad < 0 <= rows + pad:
        return f"{said}: PyTorch uses row {rows + pad:,}, and no tokenizer produces a negative id."
    return f"{said}, but the embedding matrix has {rows:,} rows: the model cannot be built."


def disagreement(pad: int | None, token: str | None, own: int | None, *, level: str | None, unused_by: str) -> str:
    """How the padding of config.json, or else of the model's kind, differs from the tokenizer's token and its id.

    Args:
        level: The level of config.json that says it, "" for the top; None: it says nothing, and the kind's holds.
        unused_by: The class that makes no use of it; "": it does.
    """
    if pad is None:
        return (
            f"The tokenizer pads with {token} (id {own:,}), but config.json names no padding token: its row is "
            "trained like every other."
        )
    source = "the default of this model type" if level is None else f"from config.json{in_level(level)}"
    said = f"The padding id is {pad:,} ({source}), but"
    unused = f" {unused_by} does not use the padding id." if unused_by else ""
    if own is None:
        return f"{said} the tokenizer names no padding token.{unused}"
    if unused:
        return f"{said} the tokenizer pads with {token} (id {own:,}).{unused}"
    return f"{said} the tokenizer pads with {token} (id {own:,}): positions and losses are masked in the wrong places."


def padding_past_rows(token: str | None, token_id: int, rows: int) -> str:
    """The tokenizer's padding token is past the matrix."""
    return (
        f"The tokenizer pads with {token} (id {token_id:,}), but the embedding matrix has {rows:,} rows: a padded "
        "batch crashes the model."
    )


def padding_row(row: int, norm: float | None) -> str:
    """What the padding token's row holds; None: NaN or infinity."""
    if norm is None:
        return f"The padding token's row {row:,} holds NaN or infinity, and every padded batch reads it."
    return f"The padding token's row {row:,} is {'zero' if norm == 0 else f'not zero (norm {norm:.3f})'}."


def padding_fine(pad: int, token: str | None, *, tokenizer: bool) -> str:
    """The padding id has its row."""
    if not tokenizer:
        return f"The padding id {pad:,} has a row; there is no tokenizer to compare it with."
    return f"config.json and the tokenizer pad with {token} (id {pad:,}), which has a row."
