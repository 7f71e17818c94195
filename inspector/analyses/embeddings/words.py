"""Say in one sentence each what was looked for in a vocabulary's rows, and what was found."""

from __future__ import annotations

from collections.abc import Sequence

from inspector.analyses.embeddings.result import Embeddings
from inspector.analyses.embeddings.result_health import Health, RowProblem
from inspector.analyses.padding.words import MECHANISM
from inspector.text import plural

UNTRAINED = (
    "Only the softmax moves a token that never occurs in training text, and it pushes all such tokens the same way: "
    "if input and output embeddings are tied, their rows end up close together. If not, such a row only decays and "
    "stays short (Land & Bartolo 2024, Fishing for Magikarp, arXiv 2405.05417). Rare tokens move the same way, but "
    "less far, so the tokens listed are probably untrained or barely trained. This is evidence, not proof."
)
NO_TOKENIZER = "There is no tokenizer to compare the rows with."
USUAL_SHARE = 0.1  # healthy vocabularies of 4,000 to 30,000 tokens have 2 to 5 % under-trained
BAD, ODD, NOTED, FINE = "fail", "warn", "note", "ok"


def sum_up(health: Health, *, undertrained: int, has_tokenizer: bool) -> tuple[RowProblem, ...]:
    """List what was looked for, in a fixed order.

    Returns:
        Findings with status "fail" (running the model may fail or answer NaN), "warn" (worth a
        look), "note" (usual, good to know) or "ok".
    """
    return (
        _not_finite(health),
        _zero(health),
        _equal(health),
        _past_tokenizer(health, has_tokenizer=has_tokenizer),
        _past_rows(health, has_tokenizer=has_tokenizer),
        _unreachable(health, has_tokenizer=has_tokenizer),
        _undertrained(health, undertrained),
    )


def _finding(name: str, count: int, fine: str, status: str, detail: str) -> RowProblem:
    return RowProblem(name, count, status, detail) if count else RowProblem(name, 0, FINE, fine)


def _not_finite(health: Health) -> RowProblem:
    return _finding(
        "NaN or infinity",
        len(health.not_finite_rows),
        "Every number of every row is finite.",
        BAD,
        "These rows hold NaN or infinity: a text with one of their tokens, and with tied embeddings any text, gives "
        "NaN.",
    )


def _zero(health: Health) -> RowProblem:
    kinds, status = set(health.zero_rows["kind"]), NOTED
    if kinds <= {"padding"}:
        detail = "The padding row is all zeros, as padding_idx leaves it."
    elif kinds <= {"padding", "unused", "no token"}:
        detail = "Rows of unused tokens are all zeros."
    else:
        status = ODD
        detail = (
            "Rows of real tokens are all zeros: looking them up adds nothing, and a tied output layer gives them a "
            "constant logit."
        )
    return _finding("Zero rows", len(health.zero_rows), "No row is all zeros.", status, detail)


def _equal(health: Health) -> RowProblem:
    count = len(health.equal_rows)
    rows = sum(group.count for group in health.equal_rows)
    groups = f"{rows:,} rows in {plural(count, 'group')} are identical"
    status, detail = ODD, f"{groups}: the model cannot tell their tokens apart at its input."
    if all(group.what == "unused" for group in health.equal_rows):
        status, detail = NOTED, f"{groups}, and all of them are unused: they still hold their initial values."
    return _finding("Equal rows", count, "No two rows are identical.", status, detail)


def _past_tokenizer(health: Health, *, has_tokenizer: bool) -> RowProblem:
    name = "Rows beyond the tokenizer"
    if not has_tokenizer:
        return RowProblem(name, 0, NOTED, NO_TOKENIZER)
    return _finding(
        name,
        len(health.rows_beyond_tokenizer),
        "The tokenizer's ids cover every row.",
        NOTED,
        "The matrix has more rows than the tokenizer has ids, usually to round up its size: no text reaches the extra "
        "rows.",
    )


def _past_rows(health: Health, *, has_tokenizer: bool) -> RowProblem:
    name = "Tokens beyond the rows"
    if not has_tokenizer:
        return RowProblem(name, 0, NOTED, NO_TOKENIZER)
    return _finding(
        name,
        len(health.tokens_beyond_rows),
        "Every token has a row.",
        BAD,
        "The tokenizer assigns ids past the last row: a text with such a token crashes the model. The tokenizer may be "
        "another model's, or tokens were added to it and not to the model.",
    )


def _unreachable(health: Health, *, has_tokenizer: bool) -> RowProblem:
    name, listed = "Tokens never produced", sum(health.unreachable["listed"].tolist())
    if not has_tokenizer:
        return RowProblem(name, 0, NOTED, "There is no tokenizer to try.")
    return _finding(
        name,
        len(health.unreachable),
        "No token's own text is tokenized into other tokens.",
        NOTED,
        f"Their own text is tokenized into other tokens: no text reaches them. {listed:,} of them are among the "
        "under-trained.",
    )


def _undertrained(health: Health, count: int) -> RowProblem:
    name, indicator = "Under-trained tokens", health.indicator
    if indicator.looks_untrained:
        return RowProblem(name, 0, ODD, "The matrix looks untrained.")
    if indicator.measure == "none":
        return RowProblem(name, 0, NOTED, indicator.statement)
    usual = count <= USUAL_SHARE * len(health.scores.dropna())
    detail = "Their rows look untrained or barely trained, so the model knows little about them."
    if usual:
        detail += " So many are usual."
    return _finding(name, count, "No ordinary token's row looks untrained.", NOTED if usual else ODD, detail)


def headline(result: Embeddings) -> str:
    """The matrix in a sentence, and what is wrong with its rows."""
    norms = result.norms
    text = (
        f"{result.rows:,} rows of {result.columns:,} numbers, with a median norm of {norms.median:.3f} "
        f"({norms.min:.3f} to {norms.max:.3f})"
    )
    wrong = [
        f"{each.name} ({each.count:,})" if each.count else each.name
        for each in result.health.findings
        if each.status in (BAD, ODD)
    ]
    return f"{text}. Worth a look: {', '.join(wrong)}." if wrong else f"{text}; no problems found."


def none_listed(judged: int) -> str:
    """That no token looks under-trained."""
    return f"No token is listed: none of {judged:,} reaches the threshold."


def not_found(name: str, texts: Sequence[str]) -> str:
    """Why a search found no token."""
    return (
        f"No single token of {name}: {', '.join(texts)}. The tokenizer splits such a word into pieces or does not know "
        "it. Try a pattern such as un*."
    )


def nearest(result: Embeddings) -> str:
    """How the neighbors were measured."""
    measure = "euclidean distance" if result.metric == "euclidean" else result.metric
    return f"Nearest in all {result.columns:,} dimensions by {measure}."


def explain_padding(result: Embeddings) -> tuple[str, str]:
    """Why the padding row is, or is not, zero."""
    if result.pad_token is None or result.pad_norm is None:
        return (
            "Where is the padding token?",
            "This tokenizer has none, as is usual for GPT-2 and similar models. To batch texts of different lengths, "
            "choose one, usually the end-of-text token.",
        )
    token = result.pad_token
    measured = (
        f"Row {result.pad_id:,} has norm {result.pad_norm:.3f}, the median row {result.norms.median:.3f}; "
        f"{result.pad_percentile:.1f} % of all rows are shorter. "
    )
    if result.pad_norm == 0:
        return (
            f"Why is {token} zero?",
            measured
            + "No gradient ever moved it: padding_idx blocks the gradient through the look-up, and no tied output "
            "layer moved it.",
        )
    return f"Why is {token} not zero?", measured + MECHANISM


def explain_special(result: Embeddings) -> tuple[str, str]:
    """What the norms of special tokens show."""
    question = "What do the norms of special tokens show?"
    if result.special.empty:
        return question, "There is no tokenizer that names special tokens."
    ordered = result.special.sort_values("norm", ignore_index=True)
    low, high = ordered.iloc[0], ordered.iloc[-1]
    return (
        question,
        f"The shortest special row is {low['token']} with {low['norm']:.3f}, the longest {high['token']} with "
        f"{high['norm']:.3f}; all norms are between {result.norms.min:.3f} and {result.norms.max:.3f}. A dot product "
        "grows with the row's norm, a cosine does not, so the two rank neighbors differently.",
    )
