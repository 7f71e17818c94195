"""Check the embedding matrix against the tokenizer and row by row, and where a generated text ends."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pandas as pd

from inspector.analyses.checks import words_vocabulary as words
from inspector.analyses.checks.compute_parts import at_least, conclude, not_checked, nothing_to_check
from inspector.analyses.checks.result import Check, Evidence, Severity
from inspector.analyses.checks.words import CHECK_A_COPY, CHECK_AGAIN
from inspector.analyses.embeddings.result import Embeddings
from inspector.analyses.embeddings.result_health import EqualRows, Health
from inspector.analyses.embeddings.words import USUAL_SHARE
from inspector.catalog import answer
from inspector.errors import InspectorError, NotInCheckpointError, RequestError
from inspector.models.checkpoint import StagedCheckpoint
from inspector.models.tokens import Tokens
from inspector.models.vocabulary.ends import GOES_ON, Ends, faults, read_ends, turn_goes_on
from inspector.models.vocabulary.input_matrix import read_instead_of_tokens
from inspector.progress import Progress
from inspector.store.staging import NO_TOKENIZER, UNREAD_TOKENIZER

ROWS = "Tokenizer and rows"
ZERO_ROWS, EQUAL_ROWS, UNDERTRAINED = "Zero rows", "Duplicated rows", "Under-trained tokens"
STOPPING = "Stopping"
VOCABULARY = (ROWS, ZERO_ROWS, EQUAL_ROWS, UNDERTRAINED)
# Matrices are made longer than the vocabulary so that their size is a multiple of one of these; some by several times
# a large one, to keep room for tokens (each official Qwen is).
MULTIPLES = (1024, 512, 256, 128, 64, 32, 16, 8)
ROOMY = 64
FEW_SPARE = 0.01  # of the rows, from which on spare ones that no rounding explains are many
WORDLESS = frozenset({"unused", "no token"})


def check_vocabulary(checkpoint: StagedCheckpoint, progress: Progress) -> tuple[Check, ...]:
    """Four checks of the vocabulary: tokenizer and rows, zero, duplicated, under-trained rows."""
    try:
        matrix = checkpoint.embedding_matrix()
        has_tokenizer = checkpoint.tokens is not None
    except NotInCheckpointError as error:
        if said := words.reads_no_tokens(*read_instead_of_tokens(checkpoint)):
            return tuple(nothing_to_check(name, said) for name in VOCABULARY)
        step = CHECK_A_COPY if checkpoint.unread.codes else CHECK_AGAIN
        return tuple(not_checked(name, str(error), step) for name in VOCABULARY)
    except InspectorError as error:
        broken = [Evidence("tokenizer", "cannot be read", "critical", None, str(error))]
        first = conclude(ROWS, broken, str(error), words.TOKENIZER_AGAIN)
        return first, *_all_unchecked(str(error))[1:]
    try:
        rows: Embeddings = answer("embeddings", checkpoint, progress=progress)
    except RequestError:
        return _all_unchecked(words.NOT_FINITE)
    health = rows.health
    pad = checkpoint.setting("pad_token_id").value
    first = check_rows(checkpoint, len(matrix), health, has_tokenizer=has_tokenizer)
    notes = checkpoint.tokens.notes if checkpoint.tokens else ()
    return (
        replace(first, detail=" ".join([first.detail, *notes])),
        check_zero_rows(health.zero_rows, has_tokenizer=has_tokenizer, pad=pad),
        check_equal_rows(health.equal_rows, has_tokenizer=has_tokenizer),
        check_undertrained(health, rows.undertrained),
    )


def check_rows(checkpoint: StagedCheckpoint, rows: int, health: Health, *, has_tokenizer: bool) -> Check:
    """Every token has its row, and every row but a few at the end a token."""
    tokens = checkpoint.tokens
    if tokens is None or not has_tokenizer:
        return nothing_to_check(ROWS, _no_tokenizer(checkpoint))
    beyond = list(zip(health.tokens_beyond_rows["token"], health.tokens_beyond_rows["token_id"], strict=True))
    made_up = tokens.made_up(rows) if beyond else frozenset()
    evidence = [
        Evidence(str(token), "no row", _of_no_row(made_up=token_id in made_up), None, words.no_row(token_id, rows))
        for token, token_id in beyond
    ]
    excess = rows - tokens.size
    if excess > 0:
        multiple = _rounded_to(rows, excess)
        severity: Severity = "note" if multiple or excess <= FEW_SPARE * rows else "minor"
        detail = words.more_rows(rows, tokens.size, multiple=multiple)
        evidence.append(Evidence("embedding matrix", "more rows than ids", severity, excess, detail))
    if count := len(health.unreachable):
        detail = words.unreachable([str(token) for token in health.unreachable["token"]], count)
        evidence.append(Evidence("tokenizer", "tokens that no text gives", "note", count, detail))
    if named := [each for each in beyond if each[1] not in made_up]:
        said = words.beyond_rows(len(named), *named[0], rows)
        return conclude(ROWS, evidence, said, words.OWN_TOKENIZER)
    if beyond:
        said = words.made_up(tokens.class_name or "", len(beyond), *beyond[0], rows)
        return conclude(ROWS, evidence, said, words.BEFORE_USE)
    if at_least("minor", evidence):
        return conclude(ROWS, evidence, words.rows_to_spare(rows, tokens.size), words.ITS_TOKENIZER)
    return conclude(ROWS, evidence, words.rows_fit(rows, tokens.size, multiple=_rounded_to(rows, excess)))


def _no_tokenizer(checkpoint: StagedCheckpoint) -> str:
    """Why there is no tokenizer: there are no files, or they are not read here."""
    if UNREAD_TOKENIZER in checkpoint.manifest.warnings:
        return UNREAD_TOKENIZER
    if NO_TOKENIZER in checkpoint.manifest.warnings:
        return words.NO_TOKENIZER
    try:
        checkpoint.require_tokens()
    except InspectorError as error:
        return str(error)
    return words.NO_TOKENIZER


def _of_no_row(*, made_up: bool) -> Severity:
    return "minor" if made_up else "critical"


def _rounded_to(rows: int, excess: int) -> int | None:
    """The number that a matrix's rows were rounded up to a multiple of; None where no rounding explains them."""
    return next((each for each in MULTIPLES if rows % each == 0 and (excess < each or each >= ROOMY)), None)


def check_zero_rows(zero: pd.DataFrame, *, has_tokenizer: bool, pad: int | None) -> Check:
    """No row of a real token is zero all over."""
    evidence = []
    for token, token_id, kind in zero[["token", "token_id", "kind"]].itertuples(index=False):
        usual = token_id == pad or kind == "padding" or (has_tokenizer and kind in WORDLESS)
        severity: Severity = "note" if usual else "minor"
        detail = words.zero_row(token_id, kind)
        evidence.append(Evidence(str(token), "row of zeros", severity, None, detail))
    real = [each.subject for each in at_least("minor", evidence)]
    said = words.zero_tokens(real) if real else words.zero_rows(len(evidence))
    return conclude(ZERO_ROWS, evidence, said, words.WHAT_WROTE_ZEROS)


def check_equal_rows(groups: tuple[EqualRows, ...], *, has_tokenizer: bool) -> Check:
    """No two real tokens have one row to the bit."""
    evidence = [
        Evidence(
            words.equal_tokens(group.tokens, group.count),
            "equal to the bit",
            "note" if group.what == "unused" and has_tokenizer else "minor",
            group.count,
            words.equal_ids(group.token_ids, group.count),
        )
        for group in groups
    ]
    real = at_least("minor", evidence)
    if not real:
        return conclude(EQUAL_ROWS, evidence, words.EQUAL_UNUSED if evidence else words.NO_EQUAL_ROWS)
    said = words.equal_rows(sum(each.count or 0 for each in real), len(real), real[0].subject)
    return conclude(EQUAL_ROWS, evidence, said, words.WHAT_COPIED)


def check_undertrained(health: Health, listed: pd.DataFrame) -> Check:
    """No more tokens look never trained than is usual."""
    indicator = health.indicator
    if indicator.looks_untrained:
        whole = [Evidence("embedding matrix", "looks never trained", "minor", None, indicator.statement)]
        return conclude(UNDERTRAINED, whole, words.UNTRAINED, words.LOST_WEIGHTS)
    judged = len(health.scores.dropna())
    if not judged:
        return nothing_to_check(UNDERTRAINED, indicator.statement)
    usual = len(listed) / judged <= USUAL_SHARE
    evidence = [
        Evidence(
            str(token),
            "looks under-trained",
            "note" if usual else "minor",
            None,
            words.undertrained_row(token_id, score, why),
        )
        for token, token_id, score, why in listed[["token", "token_id", "score", "why"]].itertuples(index=False)
    ]
    return conclude(UNDERTRAINED, evidence, words.undertrained(len(listed), judged, usual=usual), words.ITS_TEXT)


def _all_unchecked(why: str) -> tuple[Check, ...]:
    return tuple(not_checked(name, why) for name in VOCABULARY)


def check_stopping(checkpoint: StagedCheckpoint, progress: Progress) -> Check:
    """The token that ends an answer is one that generate() stops at, and no two files disagree; no numbers are read."""
    try:
        tokenizer = checkpoint.require_tokens()
        ends = read_ends(checkpoint, progress=progress)
    except NotInCheckpointError as error:
        return nothing_to_check(STOPPING, str(error))
    except InspectorError as error:
        return not_checked(STOPPING, str(error), words.TOKENIZER_AGAIN)
    found = list(_of_stopping(tokenizer, ends))
    if not ends.eos_ids and not ends.chat.file and not found:
        return conclude(STOPPING, (), words.NO_END)
    if worse := at_least("minor", found):
        return conclude(
            STOPPING, found, worse[0].detail, words.STOP_THERE if worse[0].problem == GOES_ON else words.ONE_OF_BOTH
        )
    stops = [f"{tokenizer.visible(each)} (id {each})" for each in ends.eos_ids]
    said = words.stops(stops, ends.stops_by, chat=ends.chat.turn_end is not None)
    if ends.chat.file and ends.chat.turn_end is None:
        said = f"{said} {words.end_not_known(ends.chat.file, ends.chat.problem)}"
    return conclude(STOPPING, found, said)


def _of_stopping(tokenizer: Tokens, ends: Ends) -> Iterator[Evidence]:
    end = ends.chat.turn_end
    if end is not None and end not in ends.eos_ids:
        token = tokenizer.visible(end)
        yield Evidence(token, GOES_ON, "minor", None, turn_goes_on(token, end, ends.stops_by))
    for fault in faults(tokenizer, ends):
        yield Evidence(fault.subject, fault.problem, "note" if fault.harmless else "minor", None, fault.detail)
