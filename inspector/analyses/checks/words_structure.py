"""What the checks of shapes, heads, left-over tensors, ties and padding say."""

from __future__ import annotations

from collections.abc import Sequence

from inspector.analyses.checks.words import such_as
from inspector.text import plural, shape_text

OWN_CONFIG = "Put the config.json that was saved with these weights beside them."
NO_CONFIG = "There is no config.json"
NO_CLASS_NAMED = "config.json names no class: {built} was tried."
NO_SUCH_CLASS = "transformers has no class {named}: {built} was tried."
NAME_A_CLASS = "Name the class of these weights in architectures."
COMPLETE = "All {parameters:,} parameters of {built} are in the file."
TAKE_ITS_FILE = (
    "Take the file that was saved with them, or name the class that these weights are of in architectures of "
    "config.json."
)
NEVER_LOADED = "{built} has no parameter of this name: it is never loaded."
NAME_ITS_CLASS = (
    "If a head belongs to them, name its class in architectures of config.json; if nothing does, save the model "
    "without them."
)
UNTIED = "{built} ties no parameters."
TIED_APART = "{subject} hold the same numbers and are not tied: training moves them apart."
TIE_THEM = "If they are meant to be one, set tie_word_embeddings to true in config.json."
FIND_THE_STEP = (
    "Find the step that wrote them apart (a resize, a conversion, a merge); if they are meant to differ, set "
    "tie_word_embeddings to false in config.json."
)
NO_PADDING = "Neither config.json nor the tokenizer names a padding token."
NAME_THE_PAD = "Set pad_token_id in config.json to the id of the tokenizer's padding token."
ZERO_THE_ROW = "Set the row to zero, and look for the training step that broke it."


def no_config() -> str:
    """Nothing says what the weights are."""
    return f"{NO_CONFIG}: heads, ties and shapes cannot be checked, and no model can be built."


def fits(tensors: int) -> str:
    """All shapes are those that config.json asks for."""
    return f"config.json fits the shapes of {plural(tensors, 'tensor')}."


def mismatch(found: Sequence[int], wanted: Sequence[int]) -> str:
    """A tensor of another shape."""
    return f"{shape_text(found)} in the file, {shape_text(wanted)} by config.json."


def mismatches(count: int, first: str, detail: str) -> str:
    """Some tensors have other shapes; `detail` is the first one's."""
    tensors = plural(count, "tensor has another shape", "tensors have other shapes")
    return f"{tensors} than config.json asks for {such_as(count, first)}: {detail}"


def missing(shape: Sequence[int], part: str) -> str:
    """A parameter that the file lacks, of the base model or a head."""
    return f"{shape_text(shape)}, of the {part}: a loader fills it with random numbers."


def head_there(head: str) -> str:
    """A head that the file holds."""
    return f"The file holds the {head.replace('_', ' ').replace('lm', 'LM')} head."


def lacking(built: str, count: int, first: str, *, random: int, parameters: int, pooler: bool) -> str:
    """Parameters are not in the file, of which `pooler`: none but the pooler's."""
    consequence = "from_pretrained fills them with random numbers, and what depends on them is nonsense"
    if pooler:
        consequence = "pooler_output would be random, the hidden states are not"
    return (
        f"{built} needs {plural(count, 'tensor')} that the file lacks {such_as(count, first)}: {consequence} "
        f"({random:,} of {parameters:,} parameters)."
    )


def left_over(built: str, count: int, first: str) -> str:
    """Which tensors have no place in the class."""
    if not count:
        return f"{built} has a place for every tensor."
    tensors = plural(count, "tensor")
    return f"{built} has no place for {tensors} of the file {such_as(count, first)}: nothing of it is ever used."


def broken_ties(count: int, first: str) -> str:
    """Names that should be one tensor are not."""
    ties = plural(count, "tie is", "ties are")
    return (
        f"{ties} broken {such_as(count, first)}: the names should be one tensor, and the loaded model keeps them apart."
    )


def tied(groups: int, apart: int) -> str:
    """How many groups of names are tied, and how many are not and need not be."""
    rest = f"; {plural(apart, 'other group')} apart, as config.json says" if apart else ""
    return f"{plural(groups, 'group of names is', 'groups of names are')} tied{rest}."


def no_row(pad: int, rows: int) -> str:
    """The padding id is past the matrix, or counts from its end."""
    if pad < 0 <= rows + pad:
        return (
            f"config.json says pad_token_id {pad}: PyTorch takes row {rows + pad:,}, and no tokenizer gives a "
            "negative id."
        )
    return (
        f"config.json says pad_token_id {pad:,}, and the embedding matrix has {rows:,} rows: the model cannot be built."
    )


def disagreement(pad: int | None, token: str | None, own: int | None, *, silent: bool) -> str:
    """How the padding of config.json, or else of the model's kind, differs from the tokenizer's token and its id."""
    if pad is None:
        return (
            f"The tokenizer pads with {token} (id {own:,}), and config.json names none: its row is trained like "
            "every other."
        )
    said = f"The padding id is {pad:,} ({'its kind of model means' if silent else 'config.json says'} so), and"
    if own is None:
        return f"{said} the tokenizer names no padding token."
    return f"{said} the tokenizer pads with {token} (id {own:,}): positions and losses are masked in the wrong places."


def padding_row(row: int, norm: float | None) -> str:
    """What the padding token's row holds; None: NaN or infinity."""
    if norm is None:
        return f"The padding token's row {row:,} holds NaN or infinity, and every padded batch reads it."
    return f"The padding token's row {row:,} is {'zero' if norm == 0 else f'not zero (norm {norm:.3f})'}."


def padding_fine(pad: int, token: str | None, *, tokenizer: bool) -> str:
    """The padding id has its row."""
    if not tokenizer:
        return f"The padding id {pad:,} has its row; there is no tokenizer to compare it with."
    return f"config.json and the tokenizer pad with {token} (id {pad:,}), which has its row."
