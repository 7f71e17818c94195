"""Sentences about the padding vector; every branch states what was measured."""

from __future__ import annotations

import math
from dataclasses import dataclass

from inspector.analyses.padding.result import FRESH, LIFTED, UNMASKED, Padding, PaddingGradient, PaddingRow

SENTENCES = (  # of different lengths, so that there is padding
    "a dog.\n"
    "the capital and largest city of a country.\n"
    "he drank a glass of cold water in the second month of the year."
)
WHY_NOT_ZERO = "Why does training move the padding row?"
MECHANISM = (
    "nn.Embedding(padding_idx=…) starts the row at zero and blocks the gradient through the look-up, but not through "
    "the output layer. If the output layer is tied to the embeddings, the row is also an output vector. Padding is "
    "never a target: its labels are −100 and are ignored. But it does not need to be a target: at every predicted "
    "position the softmax compares the state h with every output vector, and the gradient on the vector of token i is "
    "(pᵢ − yᵢ)·h. For a token that is never the target, this is pᵢ·h, which pushes its vector away from the states "
    "that occur. The push is strongest at the start of training, when the model still gives padding some probability. "
    "Adam divides a small steady gradient by its own size, so the row keeps moving."
)
WHY_MASK = "Why must a mean leave padding out?"
AVERAGES = (
    "A model computes a hidden state at every position, padding included. These states are not zero, whatever the "
    "padding vector is: they have gone through every layer. So a sentence vector must be the mean over the positions "
    "that the attention mask marks, (h * mask[..., None]).sum(1) / mask.sum(1, keepdim=True). h.mean(1) mixes in "
    "padding, whose share grows with the longest sentence of the batch."
)
MEASURES = (
    "Cosine compares the mean over all positions with the mean over tokens alone. Difference is the norm of one minus "
    "the other; relative divides it by the norm of the latter. Norm of padding is the norm of the mean state at "
    "padding positions."
)
MORE = "--json prints every experiment and the nearest rows."
MORE_WITH_TEXT = "--text TEXT, one sentence a line, measures the gradient on it. --json prints the nearest rows."
SO_FAR = "The row as the files store it. Its gradients follow once the model has run on the sentences."
SOFTMAX = "whose softmax pushes on every row"


@dataclass(frozen=True, slots=True)
class Named:
    """Which row each source calls padding."""

    token: str | None  # the tokenizer's
    token_id: int | None  # the tokenizer's
    config_id: int | None  # config.json's pad_token_id
    padding_idx: int | None  # the embedding module's
    known: bool  # False: no model could be built, so its padding_idx is not known
    has_tokenizer: bool

    @property
    def row(self) -> int | None:
        """The row of padding: the tokenizer takes precedence."""
        return self.config_id if self.token_id is None else self.token_id


def agreement(named: Named, *, rows: int) -> str:
    """Compare the model's padding_idx with the tokenizer's id."""
    if named.token_id is not None and named.token_id >= rows:
        return (
            f"The tokenizer pads with id {named.token_id:,}, but the embedding matrix has {rows:,} rows: padded input "
            "crashes the model until the matrix is resized."
        )
    if not named.known:
        return "No model can be built from these files, so its padding_idx is unknown."
    return _compare(named)


def _compare(named: Named) -> str:
    token_id, padding_idx = named.token_id, named.padding_idx
    tokenizer = "the tokenizer names no padding token" if named.has_tokenizer else "there is no tokenizer"
    if token_id is None and padding_idx is None:
        return f"The model has no padding_idx, and {tokenizer}: no row is reserved for padding."
    if token_id is None:
        return f"The model's padding_idx is {padding_idx:,}, and {tokenizer}."
    if padding_idx is None:
        return (
            f"The tokenizer pads with id {token_id:,}, but the model has no padding_idx: its look-up treats padding "
            "like any other token."
        )
    if padding_idx == token_id:
        return f"They agree: the tokenizer pads with id {token_id:,}, which is the padding_idx."
    return (
        f"They differ: the tokenizer pads with id {token_id:,}, but the model's padding_idx is {padding_idx:,}, which "
        "blocks the look-up of another row."
    )


def no_row(named: Named, *, rows: int) -> str:
    """The verdict where there is no padding row."""
    if named.row is not None:
        return f"There is no padding vector: padding has id {named.row:,}, but the matrix has {rows:,} rows."
    if named.has_tokenizer:
        return (
            "There is no padding vector: the tokenizer names no padding token, as is usual for GPT-2 and similar "
            "models, and most users pad with the end-of-text token."
        )
    return "The padding row is unknown: there is no tokenizer and no pad_token_id."


def loading(row: PaddingRow, model_class: str) -> str:
    """A row that is zero in the model and not in the file."""
    return (
        f"In the file, the norm of this row is {row.norm:.3f}. In the model it is 0: {model_class} sets the row to "
        "zero after it has loaded the file."
    )


def verdict(
    row: PaddingRow, named: Named, *, tied: bool | None, declared: bool, unmeasured: str, zeroed_by: str = ""
) -> str:
    """State the mechanism for this checkpoint.

    Args:
        named: Its padding_idx among others.
        tied: Whether the output matrix is the embedding matrix; None: it was not loaded.
        declared: Whether the configuration ties them.
        unmeasured: A clause: why the model with its head was not run; "" where nobody asked.
        zeroed_by: The class that sets the row to zero after loading; "" where it leaves it as it is.
    """
    if row.norm != row.norm:
        return "The padding vector holds NaN: it is damaged, and padded input gives NaN."
    blocked = named.padding_idx == row.token_id
    clauses = {
        True: _zero_because if row.is_zero else _moved_because,
        False: _zero_untied if row.is_zero else _not_moved_because,
    }
    if tied is None:
        because = _unmeasured(row, blocked=blocked, declared=declared, reason=unmeasured)
    else:
        because = clauses[tied](row, blocked=blocked)
    return f"{_state(row, zeroed_by)}: {because}."


def _state(row: PaddingRow, zeroed_by: str) -> str:
    if row.is_zero:
        return "The padding vector is exactly zero"
    if zeroed_by:
        return (
            f"{zeroed_by} sets the padding vector to zero after loading it, but in the file it is not zero (norm "
            f"{row.norm:.3f}, percentile {row.percentile:.1f})"
        )
    return f"The padding vector is not zero (norm {row.norm:.3f}, percentile {row.percentile:.1f})"


def _moved_because(row: PaddingRow, *, blocked: bool) -> str:
    because = f"it is tied to the output matrix, {SOFTMAX}{_push(row)}; "
    if blocked:
        return f"{because}the look-up path is blocked by padding_idx{_number(row, 'input_path')}"
    return f"{because}no padding_idx set it to zero at the start{_look_up(row)}"


def _zero_because(row: PaddingRow, *, blocked: bool) -> str:
    push = f"it is tied to the output matrix, {SOFTMAX}{_push(row)}"
    start = "padding_idx starts it at zero, but" if blocked else "no padding_idx starts it at zero, and"
    return f"{start} {push}, so it was not trained in this form or was set to zero afterwards"


def _not_moved_because(row: PaddingRow, *, blocked: bool) -> str:
    if blocked:
        return (
            "no gradient reaches it now, because the output matrix is separate and padding_idx blocks the "
            f"look-up{_number(row, 'input_path')}, so it started like this, or was trained or written in another form"
        )
    return (
        "the model has no padding_idx for it, so it started random like any other row; the output matrix is separate, "
        f"and its softmax pushes on its own rows, not on this one{_look_up(row)}"
    )


def _zero_untied(row: PaddingRow, *, blocked: bool) -> str:
    if blocked:
        return (
            f"padding_idx starts it at zero and blocks the look-up path{_number(row, 'input_path')}, and the "
            "output matrix is separate, so no gradient moves it"
        )
    return "the model has no padding_idx for it, so it was set to zero afterwards"


def _unmeasured(row: PaddingRow, *, blocked: bool, declared: bool, reason: str) -> str:
    idle = "blocks its look-up" if blocked else "does not block its look-up"
    why = f"{reason}, so its gradient cannot be measured" if reason else "nothing was run"
    if not declared:
        return f"{why}; padding_idx {idle}, and the configuration ties no output matrix to it"
    if row.is_zero:
        return f"{why}; padding_idx {idle}, and no tied output matrix seems to have trained it"
    return (
        f"{why}; padding_idx {idle}, but a tied output matrix, which the configuration calls for, moves every row by "
        "its softmax while such a model is pre-trained"
    )


def _number(row: PaddingRow, path: str) -> str:
    if row.gradient is None:
        return ""
    return f" (gradient {number(getattr(row.gradient, path))} on your text)"


def _push(row: PaddingRow) -> str:
    if row.gradient is None:
        return ""
    return (
        f" (gradient {number(row.gradient.output_path)} on your text, in proportion to the probability of "
        f"{number(row.gradient.probability)} that the model gives this token there)"
    )


def _look_up(row: PaddingRow) -> str:
    if row.gradient is None:
        return ""
    if row.gradient.input_path == 0:
        return ", but no gradient came through its look-up on your text: the attention mask blocks it"
    return f", and its look-up moves it too{_number(row, 'input_path')}"


def number(value: float | None) -> str:
    """Write a norm: an exact zero as 0, a missing one as a dash, anything else with three digits."""
    if value is None or math.isnan(value):
        return "–"
    return "0" if value == 0 else f"{value:.3g}"


def stand_in(row: PaddingRow) -> str:
    """What is shown where there is no padding token."""
    return (
        f"The results below are for {row.token}, in place of padding. Unlike padding, it is usually a label in "
        "training, so it is pulled as well as pushed."
    )


def facts(result: Padding, row: PaddingRow) -> dict[str, str]:
    """Which token is padding, and where."""
    named = "none" if result.pad_id is None else f"{result.pad_token or 'no name'} (id {result.pad_id:,})"
    return {
        "Padding token": named,
        **({"Shown instead": f"{row.token} (id {row.token_id:,})"} if result.stand_in else {}),
        "padding_idx of the model": "none" if result.padding_idx is None else f"{result.padding_idx:,}",
        "Exactly zero": "in the model, not in the file" if result.loading else "yes" if row.is_zero else "no",
        "Output matrix tied": {True: "yes: one tensor", False: "no: separate matrix", None: "not measured"}[
            result.tied
        ],
    }


def neighbors(row: PaddingRow) -> str:
    """What the nearest rows have in common."""
    if row.nearest.empty:
        return "A zero vector has no direction, so it has no nearest rows by cosine."
    unused = sum(kind in ("unused", "no token") for kind in row.nearest["kind"])
    if 2 * unused <= len(row.nearest):
        return "The nearest rows by cosine:"
    return (
        f"{unused} of the {len(row.nearest)} nearest rows, like padding, never occur in a text: rows that are never a "
        "label all get the same kind of push."
    )


def output_row(row: PaddingRow) -> str:
    """The same token's row in an output matrix of its own."""
    return (
        f"The output matrix has its own row for {row.token}: norm {row.norm:.3f}, percentile {row.percentile:.1f}; "
        "its nearest rows there:"
    )


def explain_gradient(row: PaddingRow, gradient: PaddingGradient) -> tuple[str, ...]:
    """What one backward pass shows, number by number."""
    return (
        f"Through the look-up: {number(gradient.input_path)}. It moves {gradient.rows_input:,} of {gradient.rows:,} "
        "rows: those of the tokens in the input.",
        f"Through the softmax: {number(gradient.output_path)}. {_softmax(gradient)}",
        f"One ordinary backward pass of the model leaves {number(gradient.total)} on the row; the two paths add up to "
        f"it within {gradient.split_error:.1g}.",
        f"Here the model gives {row.token} a probability of {number(gradient.probability)} on average: the push is "
        "that share of the state h, so it fades as the model learns never to predict this token.",
        *_controls(row),
    )


def conditions(result: Padding, gradient: PaddingGradient) -> str:
    """How the gradients were computed."""
    return f"Loss {gradient.loss:.4f}, {result.device}, {result.dtype}; evaluation mode, no dropout."


def _softmax(gradient: PaddingGradient) -> str:
    pushed = f"it pushes {gradient.rows_output:,} of {gradient.rows:,} output vectors"
    if gradient.output_matrix is None:
        return f"The output matrix is the embedding matrix, and {pushed}."
    return (
        f"The output matrix is separate: {pushed}, and the gradient on its own row for this token is "
        f"{number(gradient.output_matrix)}."
    )


def _controls(row: PaddingRow) -> list[str]:
    if row.experiments is None:
        return []
    at = {line["experiment"]: line for line in row.experiments.to_dict("records") if line["role"] == "as padding"}
    lines = []
    if FRESH in at:
        lines.append(
            f"Control: a fresh random model of the same config, whose row has norm {number(at[FRESH]['row_norm'])}, "
            f"gets {number(at[FRESH]['total'])}. This number is not about the checkpoint; it shows where training "
            "starts."
        )
    if LIFTED in at and UNMASKED in at:
        kept, lost = at[LIFTED]["input_path"], at[UNMASKED]["input_path"]
        lines.append(
            f"Without padding_idx, the look-up gets {number(kept)} with the attention mask and {number(lost)} without "
            "it" + (": with an attention mask, padding_idx changes nothing." if kept == 0 else ".")
        )
    return lines
