"""The words of the padding page, with the numbers of the checkpoint at hand."""

from __future__ import annotations

import math

import pandas as pd

from inspector.analyses.padding.result import FRESH, LIFTED, UNMASKED, Padding, PaddingGradient, PaddingRow
from inspector.text import literal

FORUM = (
    "The usual answer is that “padding may be predicted, so its vector is trained”. That is not "
    "what happens: the labels of padding are −100 and are ignored, so it is never a target. It "
    "need not be one. At every predicted position the softmax compares the state **h** with "
    "**every** output vector, and the gradient on the vector of token *i* is (pᵢ − yᵢ)·**h**: for "
    "a token that is never right it is pᵢ·**h**, which pushes its vector away from the states that "
    "occur. Where the output matrix is tied to the embeddings, that vector is the padding row.\n\n"
    "`nn.Embedding(padding_idx=…)` starts the row at zero and drops the gradient of the "
    "*look-up*; about the output layer it knows nothing. The push is strongest when training "
    "begins and the model still gives padding a share of its probability, and Adam divides a small "
    "steady gradient by its own size, so that the row moves all the same."
)
AVERAGES = (
    "A model answers with a hidden state at **every** position, padding too, and those states are "
    "not zero, whatever the padding vector is: they have gone through every layer. So a sentence "
    "vector must be the mean over the positions that the attention mask names, "
    "`(h * mask[..., None]).sum(1) / mask.sum(1, keepdim=True)`; `h.mean(1)` mixes in the share of "
    "padding that is given below, which grows with the longest sentence of the batch."
)

MEASURES = (
    "Cosine: of the mean over all positions and the mean over tokens alone. Difference: the norm "
    "of the one less the other; relative, by the norm of the latter. Norm of padding: of the mean "
    "state at padding's positions."
)


def number(value: float | None) -> str:
    """Write a gradient's norm: an exact zero as 0, what there is none of as a dash."""
    if value is None or math.isnan(value):
        return "–"
    return "0" if value == 0 else f"{value:.3g}"


def facts(result: Padding, row: PaddingRow) -> dict[str, str]:
    """What is named as padding, and where."""
    named = "none" if result.pad_id is None else f"{result.pad_token or 'no name'} (id {result.pad_id:,})"
    tied = {True: "yes: one tensor", False: "no: another matrix", None: "not measured"}[result.tied]
    return {
        "Padding token": named,
        **({"Shown in its place": f"{row.token} (id {row.token_id:,})"} if result.stand_in else {}),
        "padding_idx of the model": "none" if result.padding_idx is None else f"{result.padding_idx:,}",
        "Exactly zero": "yes" if row.is_zero else "no",
        "Output matrix tied": tied,
    }


def explain_gradient(row: PaddingRow, gradient: PaddingGradient) -> str:
    """What one backward pass shows, number by number."""
    token = literal(row.token)
    lines = [
        f"- **Through the look-up: {number(gradient.input_path)}.** Of {gradient.rows:,} rows it "
        f"moves {gradient.rows_input:,}: those of the tokens that were read.",
        f"- **Through the softmax: {number(gradient.output_path)}.** {_softmax(gradient)}",
        f"- One ordinary backward pass of the model as it is leaves {number(gradient.total)} on "
        f"the row; the two paths add up to it within {gradient.split_error:.1g}.",
        f"- Here the model gives {token} a probability of {number(gradient.probability)} on "
        "average: the push is that share of the state **h**, so it dies down as the model learns "
        "never to answer with it.",
    ]
    return "\n".join([*lines, *_controls(row)])


def _softmax(gradient: PaddingGradient) -> str:
    pushed = f"it pushes {gradient.rows_output:,} of {gradient.rows:,} output vectors"
    if gradient.output_matrix is None:
        return f"The output matrix is the embedding matrix, and {pushed}."
    return (
        f"The output matrix is another one: {pushed}, and on its own row of this token the "
        f"gradient is {number(gradient.output_matrix)}."
    )


def _controls(row: PaddingRow) -> list[str]:
    experiments = row.experiments
    if experiments is None:
        return []
    at = {line["experiment"]: line for line in experiments.to_dict("records") if line["role"] == "as padding"}
    lines = []
    if FRESH in at:
        fresh = at[FRESH]
        lines.append(
            "- Control: a **fresh random model** of the same config, whose row has norm "
            f"{number(fresh['row_norm'])}, gets {number(fresh['total'])}. Its numbers say nothing "
            "about the checkpoint; they show where training begins."
        )
    if LIFTED in at and UNMASKED in at:
        kept, lost = at[LIFTED]["input_path"], at[UNMASKED]["input_path"]
        lines.append(
            f"- With `padding_idx` lifted the look-up gets {number(kept)} with the attention mask "
            f"and {number(lost)} without it"
            + (": where texts are masked, `padding_idx` is a second lock on the same door." if kept == 0 else ".")
        )
    return lines


def experiment_table(experiments: pd.DataFrame) -> pd.DataFrame:
    """The experiments with numbers that no rounding turns into zero."""
    shown = pd.DataFrame(experiments)
    for name in ("row_norm", "input_path", "output_path", "total"):
        shown[name] = [number(value) for value in shown[name]]
    return shown.rename(columns={"input_path": "through look-up", "output_path": "through softmax", "total": "both"})


def averaging_table(averaging: pd.DataFrame) -> pd.DataFrame:
    """The two means of each sentence, in short columns; MEASURES says what they are."""
    return averaging.rename(columns={"padding_share": "padding share", "padding_norm": "norm of padding"})


def neighbours(row: PaddingRow) -> str:
    """What the nearest rows have in common, if they have something."""
    unused = sum(kind in ("unused", "no token") for kind in row.nearest["kind"])
    if 2 * unused <= len(row.nearest):
        return "The nearest rows by cosine:"
    return (
        f"{unused} of the {len(row.nearest)} nearest rows stand for nothing in any text, as "
        "padding does: rows that are never a label all get the same kind of push."
    )
