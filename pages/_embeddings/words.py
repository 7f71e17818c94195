"""The words of the embeddings page, with the numbers of the checkpoint at hand."""

from __future__ import annotations

from inspector.analyses.embeddings.result import Embeddings
from inspector.analyses.padding.words import MECHANISM
from inspector.text import literal


def explain_padding(result: Embeddings) -> tuple[str, str]:
    """Why the padding row is, or is not, zero."""
    if result.pad_token is None or result.pad_norm is None:
        return (
            "Where is the padding token?",
            "This tokenizer has none, as is usual for GPT-2 and its kin: texts of different "
            "lengths cannot be put into one batch before one is chosen, most often the "
            "end-of-text token.",
        )
    token = literal(result.pad_token)
    measured = (
        f"Row {result.pad_id:,} has norm **{result.pad_norm:.3f}**, the median row "
        f"**{result.norms.median:.3f}**; {result.pad_percentile:.1f} % of all rows are shorter. "
    )
    if result.pad_norm == 0:
        return (
            f"Why is {token} zero?",
            measured + "It was never pushed: `padding_idx` blocks the gradient through the "
            "look-up, and no tied output layer moved it.",
        )
    return f"Why is {token} not zero?", measured + literal(MECHANISM)


def explain_special(result: Embeddings) -> tuple[str, str]:
    """What the norms of special tokens say."""
    question = "What do the special tokens' norms say?"
    if result.special.empty:
        return question, "No tokenizer names special tokens here."
    ordered = result.special.sort_values("norm", ignore_index=True)
    low, high = ordered.iloc[0], ordered.iloc[-1]
    return (
        question,
        f"The shortest special row is **{literal(low['token'])}** with {low['norm']:.3f}, the "
        f"longest **{literal(high['token'])}** with {high['norm']:.3f}; all rows lie between "
        f"{result.norms.min:.3f} and {result.norms.max:.3f}. A dot product grows with the row's "
        "norm, a cosine does not: that is why the two rank neighbors differently.",
    )
