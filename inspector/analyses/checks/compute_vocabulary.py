"""Check the embedding matrix: against the tokenizer, and row by row."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd

from inspector.analyses.checks.compute_parts import at_least, conclude, example, not_checked, nothing_to_check
from inspector.analyses.checks.result import Check, Evidence, Severity
from inspector.analyses.embeddings.result import Embeddings
from inspector.analyses.embeddings.result_health import EqualRows, Health
from inspector.catalog import answer
from inspector.errors import InspectorError, NotInCheckpointError, RequestError
from inspector.models.checkpoint import Checkpoint
from inspector.progress import Progress
from inspector.text import plural

ROWS = "Tokenizer and rows"
ZERO_ROWS, EQUAL_ROWS, UNDERTRAINED = "Zero rows", "Duplicated rows", "Under-trained tokens"
VOCABULARY = (ROWS, ZERO_ROWS, EQUAL_ROWS, UNDERTRAINED)
# Matrices are made longer than the vocabulary so that their size is a multiple of one of these.
MULTIPLES = (8, 16, 32, 64, 128, 256, 512, 1024)
USUAL_SHARE = 0.1  # healthy vocabularies of 4,000 to 30,000 tokens have 2 to 5 % under-trained
NAMED = 6  # tokens that a sentence names
WORDLESS = frozenset({"unused", "no token"})


def check_vocabulary(checkpoint: Checkpoint, progress: Progress) -> tuple[Check, ...]:
    """Four checks of the vocabulary: tokenizer and rows, zero, duplicated, under-trained rows."""
    try:
        matrix = checkpoint.embedding_matrix()
        has_tokenizer = checkpoint.tokens is not None
    except NotInCheckpointError as error:
        return _all_unchecked(str(error))
    except InspectorError as error:
        broken = [Evidence("tokenizer", "cannot be read", "critical", None, str(error))]
        step = "Get the tokenizer's files again, or save them with tokenizer.save_pretrained()."
        first = conclude(ROWS, broken, detail=str(error), next_step=step)
        return first, *_all_unchecked(str(error))[1:]
    try:
        rows: Embeddings = answer("embeddings", checkpoint, progress=progress)
    except RequestError:
        return _all_unchecked("every row of the embedding matrix holds NaN or infinity.")
    health = rows.health
    pad = (checkpoint.manifest.config or {}).get("pad_token_id")
    first = check_rows(checkpoint, len(matrix), health, has_tokenizer=has_tokenizer)
    notes = checkpoint.tokens.notes if checkpoint.tokens else ()
    return (
        replace(first, detail=" ".join([first.detail, *notes])),
        check_zero_rows(health.zero_rows, has_tokenizer=has_tokenizer, pad=pad),
        check_equal_rows(health.equal_rows, has_tokenizer=has_tokenizer),
        check_undertrained(health, rows.undertrained),
    )


def check_rows(checkpoint: Checkpoint, rows: int, health: Health, *, has_tokenizer: bool) -> Check:
    """Every token has its row, and every row but a few at the end a token."""
    tokens = checkpoint.tokens
    if tokens is None or not has_tokenizer:
        return nothing_to_check(ROWS, "there is no tokenizer to compare the rows with.")
    beyond = health.tokens_beyond_rows
    evidence = [
        Evidence(str(token), "no row", "critical", None, f"Its id is {token_id:,}, and the matrix has {rows:,} rows.")
        for token, token_id in zip(beyond["token"], beyond["token_id"], strict=True)
    ]
    excess = rows - tokens.size
    if excess > 0:
        rounded = any(rows % each == 0 and excess < each for each in MULTIPLES)
        why = "rounds its size up" if rounded else "is no rounding of its size"
        evidence.append(
            Evidence(
                "embedding matrix",
                "more rows than ids",
                "note" if rounded else "minor",
                excess,
                f"{rows:,} rows, {tokens.size:,} ids: the difference {why}.",
            )
        )
    evidence += _unreachable(health)
    if len(beyond):
        return conclude(
            ROWS,
            evidence,
            detail=f"The tokenizer gives {plural(len(beyond), 'id')} past the last of {rows:,} "
            f"rows {example(len(beyond), _listed(beyond))}: a text with such a token crashes the model.",
            next_step="Take the tokenizer that belongs to these weights, or resize the embeddings "
            "with model.resize_token_embeddings(len(tokenizer)) and train the new rows.",
        )
    if at_least("minor", evidence):
        return conclude(
            ROWS,
            evidence,
            detail=f"The matrix has {rows:,} rows and the tokenizer {tokens.size:,} ids: no text "
            f"reaches {plural(excess, 'row')}, more than rounding its size up explains.",
            next_step="Check that the tokenizer is the one that the model was trained with: added "
            "tokens may be missing from its files.",
        )
    return conclude(
        ROWS,
        evidence,
        detail=f"Each of the tokenizer's {tokens.size:,} ids has its "
        f"row{f', and {excess:,} more round the size up' if excess else ''}.",
    )


def check_zero_rows(zero: pd.DataFrame, *, has_tokenizer: bool, pad: int | None) -> Check:
    """No row of a real token is zero all over."""
    evidence = [
        Evidence(
            str(token),
            "row of zeros",
            _zero_severity(kind, token_id, has_tokenizer, pad),
            None,
            f"Row {token_id:,}, {_kind_words(kind)}.",
        )
        for token, token_id, kind in zero[["token", "token_id", "kind"]].itertuples(index=False)
    ]
    real = at_least("minor", evidence)
    if not real:
        said = (
            "No row is zero all over."
            if not evidence
            else (f"{plural(len(evidence), 'row is', 'rows are')} zero all over, and no real token's.")
        )
        return conclude(ZERO_ROWS, evidence, detail=said)
    named = ", ".join(each.subject for each in real[:NAMED])
    return conclude(
        ZERO_ROWS,
        evidence,
        detail=f"{plural(len(real), 'row of a real token is', 'rows of real tokens are')} zero all "
        f"over ({named}): the model reads nothing there.",
        next_step="Look for what wrote the zeros: a resize without initialization, pruning, or a "
        "copy that was cut off.",
    )


def check_equal_rows(groups: tuple[EqualRows, ...], *, has_tokenizer: bool) -> Check:
    """No two real tokens have one row to the bit."""
    evidence = [
        Evidence(
            ", ".join(group.tokens[:NAMED]) + " …" * (group.count > NAMED),
            "equal to the bit",
            "note" if group.what == "unused" and has_tokenizer else "minor",
            group.count,
            f"{group.count:,} rows, ids "
            f"{', '.join(map(str, group.token_ids[:NAMED]))}{' and more' * (group.count > NAMED)}.",
        )
        for group in groups
    ]
    real = at_least("minor", evidence)
    if not real:
        said = (
            "No two rows are equal to the bit."
            if not evidence
            else ("Only rows of unused tokens are bitwise equal: they were never trained.")
        )
        return conclude(EQUAL_ROWS, evidence, detail=said)
    rows = sum(each.count or 0 for each in real)
    return conclude(
        EQUAL_ROWS,
        evidence,
        detail=f"{rows:,} rows in {plural(len(real), 'group')} are equal to the bit "
        f"({real[0].subject}): the model cannot tell these tokens apart at its input.",
        next_step="If they were added with one starting value, train them; otherwise look for what copied them.",
    )


def check_undertrained(health: Health, listed: pd.DataFrame) -> Check:
    """No more tokens look never trained than is usual."""
    indicator = health.indicator
    if indicator.looks_untrained:
        whole = [Evidence("embedding matrix", "looks never trained", "minor", None, indicator.statement)]
        return conclude(
            UNDERTRAINED,
            whole,
            detail="The embedding matrix looks untrained: its rows look like independent random numbers.",
            next_step="If this is no fresh model, check that the trained weights were loaded before they were saved.",
        )
    judged = len(health.scores.dropna())
    if not judged:
        return nothing_to_check(UNDERTRAINED, indicator.statement)
    share = len(listed) / judged
    severity = "note" if share <= USUAL_SHARE else "minor"
    rows = listed[["token", "token_id", "score", "why"]].itertuples(index=False)
    evidence = [
        Evidence(str(token), "looks under-trained", severity, None, f"Row {token_id:,}, score {score:.3f}: {why}.")
        for token, token_id, score, why in rows
    ]
    said = f"{len(listed):,} of {judged:,} tokens look never, or hardly, trained"
    usual = "which is usual" if severity == "note" else "more than is usual"
    return conclude(
        UNDERTRAINED,
        evidence,
        detail=f"{said} ({share:.1%}), {usual}." if len(listed) else f"None of {judged:,} tokens looks under-trained.",
        next_step="Check that the tokenizer belongs to these weights, and that the training text was in its language.",
    )


def _all_unchecked(why: str) -> tuple[Check, ...]:
    return tuple(not_checked(name, why) for name in VOCABULARY)


def _unreachable(health: Health) -> list[Evidence]:
    count = len(health.unreachable)
    if not count:
        return []
    named = ", ".join(map(str, health.unreachable["token"].head(NAMED)))
    return [
        Evidence(
            "tokenizer",
            "tokens that no text gives",
            "note",
            count,
            f"{named}{' and more' * (count > NAMED)}: their own text becomes other tokens.",
        )
    ]


def _listed(frame: pd.DataFrame) -> str:
    first = frame.iloc[0]
    return f"{first['token']} (id {int(first['token_id']):,})"


def _zero_severity(kind: str, token_id: int, has_tokenizer: bool, pad: int | None) -> Severity:
    if token_id == pad or kind == "padding":
        return "note"
    return "note" if has_tokenizer and kind in WORDLESS else "minor"


def _kind_words(kind: str) -> str:
    return {"padding": "the padding token's", "no token": "without a token"}.get(kind, kind)
