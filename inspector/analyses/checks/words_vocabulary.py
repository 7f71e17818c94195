"""What the checks of the vocabulary say: tokenizer and rows, zero, duplicated and under-trained rows."""

from __future__ import annotations

from collections.abc import Sequence

from inspector.analyses.checks.words import such_as
from inspector.text import plural

NAMED = 6  # tokens that a sentence names
TOKENIZER_AGAIN = (
    "Try AutoTokenizer.from_pretrained() on the folder. If it fails, too, compare the tokenizer's files with their "
    "source."
)
NOT_FINITE = "every row of the embedding matrix holds NaN or infinity."
NO_TOKENIZER = "there is no tokenizer to compare the rows with."
OWN_TOKENIZER = (
    "Compare the tokenizer's files with the source: they may be another model's. If you added the tokens yourself, "
    "model.resize_token_embeddings(len(tokenizer)) makes new rows for them, to be trained."
)
BEFORE_USE = (
    "If texts are to contain such a token, the model needs a row for it: model.resize_token_embeddings(len(tokenizer)) "
    "adds it, untrained."
)
ITS_TOKENIZER = (
    "Check that the tokenizer is the one that the model was trained with: added tokens may be missing from its files."
)
NO_ZERO_ROWS = "No row is all zeros."
WHAT_WROTE_ZEROS = (
    "Find the step that wrote the zeros: a resize without initialization, pruning, or a copy that was cut off."
)
NO_EQUAL_ROWS = "No two rows are identical."
EQUAL_UNUSED = "Only rows of unused tokens are bitwise equal: they were never trained."
WHAT_COPIED = "If they were added with the same initial value, train them. Otherwise, find the step that copied them."
UNTRAINED = "The embedding matrix looks untrained: its rows look like independent random numbers."
LOST_WEIGHTS = "If this is not a fresh model, check that the trained weights were loaded before the model was saved."
ITS_TEXT = "Check that the tokenizer belongs to these weights, and that the training text was in its language."
NO_END = "No file says where a generated text would end, and there is no chat template."
STOP_THERE = (
    "If the model is to answer in a chat, add that id to eos_token_id in generation_config.json, or give generate() "
    "eos_token_id=[…] with all ids that end a text. The page Embeddings lists who says what."
)
ONE_OF_BOTH = (
    "Find out which file is right, at the model's source; transformers reads the one that the sentence says. "
    "The page Embeddings lists who says what."
)
KINDS = {"padding": "the padding token's", "no token": "without a token"}


def reads_no_tokens(built: str, inputs: Sequence[str]) -> str:
    """A model of images or sound; "" if it reads tokens."""
    return f"{built} reads {' and '.join(inputs)}, not tokens." if inputs else ""


def no_row(token_id: int, rows: int) -> str:
    """A token whose row the matrix lacks."""
    return f"Its id is {token_id:,}, but the matrix has {rows:,} rows."


def more_rows(rows: int, ids: int, *, multiple: int | None) -> str:
    """The matrix is longer than the vocabulary; `multiple`: its rows are rounded up to a multiple of this."""
    if multiple is None:
        return f"{rows:,} rows, {ids:,} ids: rounding up the size does not explain the difference."
    return f"{rows:,} rows, {ids:,} ids: the size is rounded up to a multiple of {multiple:,}."


def unreachable(tokens: Sequence[str], count: int) -> str:
    """Tokens that no text gives; the first ones are named."""
    return f"{', '.join(tokens[:NAMED])}{' and more' * (count > NAMED)}: their own text is tokenized into other tokens."


def beyond_rows(count: int, token: str, token_id: int, rows: int) -> str:
    """Tokens have no rows; one of them is named."""
    return (
        f"The tokenizer assigns {plural(count, 'id')} past the last of {rows:,} rows "
        f"{such_as(count, f'{token} (id {token_id:,})')}: a text with such a token crashes the model."
    )


def made_up(class_name: str, count: int, token: str, token_id: int, rows: int) -> str:
    """Tokens that only the class names have no rows; one of them is named."""
    return (
        f"transformers' {class_name} adds {plural(count, 'token')} that no file of the checkpoint names, with ids past "
        f"the last of {rows:,} rows {such_as(count, f'{token} (id {token_id:,})')}: only a text in which such a token "
        "is typed crashes the model."
    )


def rows_to_spare(rows: int, ids: int) -> str:
    """More rows than rounding explains."""
    return (
        f"The matrix has {rows:,} rows and the tokenizer {ids:,} ids: no text reaches {plural(rows - ids, 'row')}, "
        "many more than rounding up the size explains."
    )


def rows_fit(rows: int, ids: int, *, multiple: int | None) -> str:
    """Each id has its row; `multiple`: more rows round up the size to a multiple of this."""
    why = f"round up the size to a multiple of {multiple:,}" if multiple else "have no token"
    spare = f", and {rows - ids:,} more {why}" if rows > ids else ""
    return f"Each of the tokenizer's {ids:,} ids has a row{spare}."


def zero_row(token_id: int, kind: str) -> str:
    """Where a row of zeros lies."""
    return f"Row {token_id:,}, {KINDS.get(kind, kind)}."


def zero_rows(count: int) -> str:
    """Rows of zeros, of tokens that none is read for."""
    return f"{plural(count, 'row is', 'rows are')} all zeros; no real token uses them." if count else NO_ZERO_ROWS


def zero_tokens(tokens: Sequence[str]) -> str:
    """Rows of zeros of real tokens."""
    rows = plural(len(tokens), "row of a real token is", "rows of real tokens are")
    return f"{rows} all zeros ({', '.join(tokens[:NAMED])}): the model gets no input from them."


def equal_tokens(tokens: Sequence[str], count: int) -> str:
    """Tokens whose rows are equal."""
    return ", ".join(tokens[:NAMED]) + " …" * (count > NAMED)


def equal_ids(ids: Sequence[int], count: int) -> str:
    """Where equal rows lie."""
    return f"{count:,} rows, ids {', '.join(map(str, ids[:NAMED]))}{' and more' * (count > NAMED)}."


def equal_rows(rows: int, groups: int, first: str) -> str:
    """Groups of rows are equal."""
    return (
        f"{rows:,} rows in {plural(groups, 'group')} are identical ({first}): the model cannot tell these "
        "tokens apart at its input."
    )


def undertrained_row(token_id: int, score: float, why: str) -> str:
    """Why a token looks under-trained."""
    return f"Row {token_id:,}, score {score:.3f}: {why}."


def undertrained(count: int, judged: int, *, usual: bool) -> str:
    """How many tokens look under-trained."""
    if not count:
        return f"None of {judged:,} tokens looks under-trained."
    said = f"{count:,} of {judged:,} tokens look untrained or barely trained ({count / judged:.1%})"
    return f"{said}, {'which is usual' if usual else 'more than usual'}."


def stops(ends: Sequence[str], file: str, *, chat: bool) -> str:
    """Where generate() stops."""
    if not ends:
        return "No file says where a generated text would end."
    said = f"generate() stops at {' and '.join(ends)}, by {file}"
    return f"{said}, and the chat template ends an answer with one of these." if chat else f"{said}."


def end_not_known(file: str, problem: str) -> str:
    """The chat template does not tell with which token an answer ends; `problem`: why it cannot be rendered."""
    return f"{file} cannot be rendered: {problem}." if problem else f"{file} ends an answer with no special token."
