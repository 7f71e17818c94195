"""Say in words what was found of the padding vector; every branch says what was measured."""

from __future__ import annotations

from dataclasses import dataclass

from inspector.analyses.padding.result import PaddingRow

SENTENCES = (  # of different lengths, so that there is padding
    "a dog.\n"
    "the capital and largest city of a country.\n"
    "he drank a glass of cold water in the second month of the year."
)
MECHANISM = (
    "nn.Embedding(padding_idx=…) starts the row at zero and blocks the gradient through the "
    "look-up. Where the output layer is tied to the embeddings, the same row is also an output "
    "vector, and the softmax over the vocabulary pushes on every row at every predicted position, "
    "whether or not padding is ever a label (it is not: its labels are −100 and are ignored). So a "
    "mean over positions must use the attention mask: padding adds something."
)
SOFTMAX = "whose softmax pushes on every row"


@dataclass(frozen=True, slots=True)
class Named:
    """Who calls which row padding."""

    token: str | None  # the tokenizer's
    token_id: int | None  # the tokenizer's
    config_id: int | None  # config.json's pad_token_id
    padding_idx: int | None  # the embedding module's
    known: bool  # False: no model could be built, so nobody knows its padding_idx
    has_tokenizer: bool

    @property
    def row(self) -> int | None:
        """The row of padding: what the tokenizer says goes first."""
        return self.config_id if self.token_id is None else self.token_id


def agreement(named: Named, *, rows: int) -> str:
    """Compare the model's padding_idx with the tokenizer's id.

    Args:
        named: What each of them says.
        rows: Of the embedding matrix.
    """
    if named.token_id is not None and named.token_id >= rows:
        return (
            f"The tokenizer pads with id {named.token_id:,}, and the embedding matrix has {rows:,} "
            "rows: padded input would make the model fail until the matrix is resized."
        )
    if not named.known:
        return "No model can be built from these files, so its padding_idx is not known."
    return _compare(named)


def _compare(named: Named) -> str:
    token_id, padding_idx = named.token_id, named.padding_idx
    tokenizer = "the tokenizer names no padding token" if named.has_tokenizer else ("there is no tokenizer")
    if token_id is None and padding_idx is None:
        return f"The model has no padding_idx, and {tokenizer}: nothing is set apart for padding."
    if token_id is None:
        return f"The model's padding_idx is {padding_idx:,}, and {tokenizer}."
    if padding_idx is None:
        return (
            f"The tokenizer pads with id {token_id:,}, and the model has no padding_idx: its "
            "look-up treats padding as any other token."
        )
    if padding_idx == token_id:
        return f"They agree: the tokenizer pads with id {token_id:,}, which is the padding_idx."
    return (
        f"They differ: the tokenizer pads with id {token_id:,}, and the model's padding_idx is "
        f"{padding_idx:,}, so the look-up of another row is blocked."
    )


def no_row(named: Named, *, rows: int) -> str:
    """The verdict where there is no padding row."""
    if named.row is not None:
        return f"There is no padding vector: padding has id {named.row:,} and there are {rows:,} rows."
    if named.has_tokenizer:
        return (
            "There is no padding vector: the tokenizer names no padding token, as is usual for "
            "GPT-2 and its kin, and in its place people take the end-of-text token."
        )
    return "Nothing here says which row is padding: there is no tokenizer, and no pad_token_id."


def verdict(row: PaddingRow, named: Named, *, tied: bool | None, declared: bool, unmeasured: str) -> str:
    """State the mechanism for this checkpoint.

    Args:
        row: Padding's row.
        named: Its padding_idx among others.
        tied: Whether the output matrix is the embedding matrix; None: it was not loaded.
        declared: Whether the configuration ties them.
        unmeasured: A clause: why the model with its head was not run; "" where nobody asked.
    """
    if row.norm != row.norm:
        return "The padding vector holds NaN: it is damaged, and padded input gives no numbers."
    blocked = named.padding_idx == row.token_id
    clauses = {
        True: _zero_because if row.is_zero else _moved_because,
        False: _zero_untied if row.is_zero else _not_moved_because,
    }
    if tied is None:
        because = _unmeasured(row, blocked=blocked, declared=declared, reason=unmeasured)
    else:
        because = clauses[tied](row, blocked=blocked)
    return f"{_state(row)}: {because}."


def _state(row: PaddingRow) -> str:
    if row.is_zero:
        return "The padding vector is exactly zero"
    return f"The padding vector is not zero (norm {row.norm:.3f}, percentile {row.percentile:.1f})"


def _moved_because(row: PaddingRow, *, blocked: bool) -> str:
    because = f"it is tied to the output matrix, {SOFTMAX}{_number(row, 'output_path')}; "
    if blocked:
        return f"{because}the look-up path is blocked by padding_idx{_number(row, 'input_path')}"
    return f"{because}no padding_idx set it to zero at the start{_look_up(row)}"


def _zero_because(row: PaddingRow, *, blocked: bool) -> str:
    push = f"it is tied to the output matrix, {SOFTMAX}{_number(row, 'output_path')}"
    start = "it is as padding_idx starts it" if blocked else "no padding_idx starts it there"
    return f"{start}, yet {push}: it was not trained in this form, or was set to zero afterwards"


def _not_moved_because(row: PaddingRow, *, blocked: bool) -> str:
    if blocked:
        return (
            "no gradient reaches it now, since the output matrix is another one and padding_idx "
            f"blocks the look-up{_number(row, 'input_path')}, so it began like this, or was "
            "trained or written in another form"
        )
    return (
        "the model has no padding_idx for it, so it began random as any other row; the output "
        f"matrix is another one, {SOFTMAX} of its own and not on this one{_look_up(row)}"
    )


def _zero_untied(row: PaddingRow, *, blocked: bool) -> str:
    if blocked:
        return (
            "padding_idx starts it at zero and blocks the look-up path"
            f"{_number(row, 'input_path')}, and the output matrix is another one, so that no "
            "gradient moves it"
        )
    return "the model has no padding_idx for it, so somebody set it to zero"


def _unmeasured(row: PaddingRow, *, blocked: bool, declared: bool, reason: str) -> str:
    idle = "blocks its look-up" if blocked else "does not block its look-up"
    why = f"{reason}, so its gradient cannot be measured" if reason else "nothing was run"
    if not declared:
        return f"{why}; padding_idx {idle}, and the configuration ties no output matrix to it"
    if row.is_zero:
        return f"{why}; padding_idx {idle}, and no tied output matrix seems to have trained it"
    return (
        f"{why}; padding_idx {idle}, but a tied output matrix, which the configuration calls for, "
        "moves every row by its softmax while such a model is pre-trained"
    )


def _number(row: PaddingRow, path: str) -> str:
    if row.gradient is None:
        return ""
    return f" (gradient {number(getattr(row.gradient, path))} on your text)"


def _look_up(row: PaddingRow) -> str:
    if row.gradient is None:
        return ""
    if row.gradient.input_path == 0:
        return ", though nothing came through its look-up on your text: the attention mask sees to it"
    return f", and its look-up moves it too{_number(row, 'input_path')}"


def number(value: float) -> str:
    """Write a norm: an exact zero as 0, anything else with three digits."""
    return "0" if value == 0 else f"{value:.3g}"
