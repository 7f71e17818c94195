"""Check that config.json and tokenizer mean the same padding token, and that it has a row."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from inspector.analyses.checks import words_structure as words
from inspector.analyses.checks.compute_parts import PADDING, RANK, conclude, not_checked
from inspector.analyses.checks.result import Check, Evidence, Severity
from inspector.analyses.checks.words import CHECK_THE_ORIGINAL
from inspector.errors import InspectorError
from inspector.models.checkpoint import StagedCheckpoint
from inspector.store.staging import UNREAD_TOKENIZER

NOT_FINITE = "padding row not finite"
LAST_TOKEN = "ForSequenceClassification"  # its answer is read at the last token that is no padding
PAST_ROWS = "padding token without a row"
STEPS = {NOT_FINITE: words.FIND_WHAT_BROKE_IT, PAST_ROWS: words.PAD_WITH_A_ROW}


@dataclass(frozen=True, slots=True)
class PaddingFacts:
    """What the files say about padding."""

    rows: int | None  # of the embedding matrix
    configured: int | None  # pad_token_id of config.json, or else of the model's kind
    level: str  # of config.json that it is from: "" is the top
    silent: bool  # config.json does not say, and the kind's own default holds
    has_tokenizer: bool
    token: str | None  # the tokenizer's, as people read it
    token_id: int | None
    end_id: object  # eos_token_id of config.json: a number, several, or None
    unused_by: str  # the class that config.json names, if it never looks at the padding id; else ""


def check_padding(checkpoint: StagedCheckpoint) -> Check:
    """The padding id has a row, and is the tokenizer's."""
    if UNREAD_TOKENIZER in checkpoint.manifest.warnings:
        return not_checked(PADDING, UNREAD_TOKENIZER, CHECK_THE_ORIGINAL)
    try:
        facts = _read(checkpoint)
    except InspectorError as error:
        return not_checked(PADDING, str(error))
    evidence = [*_range(facts), *_agreement(facts), *_row(checkpoint, facts)]
    worst = max(evidence, key=lambda each: RANK[each.severity], default=None)
    if worst is not None and worst.severity != "none":
        step = STEPS.get(worst.problem, words.NAME_THE_PAD)
        return conclude(PADDING, evidence, worst.detail, step)
    pad, token = facts.configured, facts.token
    fine = words.NO_PADDING if pad is None else words.padding_fine(pad, token, tokenizer=facts.has_tokenizer)
    return conclude(PADDING, evidence, fine)


def _read(checkpoint: StagedCheckpoint) -> PaddingFacts:
    tokens = checkpoint.tokens
    raw, index = tokens.role("pad") if tokens else (None, None)
    configured = checkpoint.setting("pad_token_id")
    ends = checkpoint.stated("eos_token_id")
    try:
        rows = checkpoint.embedding.shape[0]
    except InspectorError:
        rows = None
    return PaddingFacts(
        rows=rows,
        configured=configured.value if type(configured.value) is int else None,
        level=configured.level,
        silent=configured.level not in checkpoint.stated("pad_token_id"),
        has_tokenizer=tokens is not None,
        token=tokens.visible(index) if tokens and index is not None else raw,
        token_id=index,
        end_id=next(iter(ends.values()), None),
        unused_by=_unused_by(checkpoint),
    )


def _unused_by(checkpoint: StagedCheckpoint) -> str:
    """The class, if it has no row for padding and neither writes text nor looks for the end of one, as CLIP's."""
    if checkpoint.structure is None:
        return ""
    model, _ = checkpoint.structure
    rows = any(isinstance(each, torch.nn.Embedding) and each.padding_idx is not None for each in model.modules())
    named = type(model).__name__
    used = rows or model.can_generate() or model.config.is_encoder_decoder or named.endswith(LAST_TOKEN)
    return "" if used else named


def _range(facts: PaddingFacts) -> list[Evidence]:
    pad, rows = facts.configured, facts.rows
    if pad is None or rows is None or 0 <= pad < rows:
        return []
    detail = words.no_row(pad, rows, facts.level)
    if -rows <= pad < 0:
        return [Evidence("pad_token_id", "counts from the end", "minor", pad, detail)]
    return [Evidence("pad_token_id", "no such row", "critical", pad, detail)]


def _agreement(facts: PaddingFacts) -> list[Evidence]:
    pad, own = facts.configured, facts.token_id
    if not facts.has_tokenizer or pad == own:
        return []
    if own is not None and facts.rows is not None and own >= facts.rows:
        detail = words.padding_past_rows(facts.token, own, facts.rows)
        return [Evidence(str(facts.token), PAST_ROWS, "critical", own, detail)]
    subject, problem = "pad_token_id", "config.json and tokenizer disagree"
    severity: Severity = "major"
    if own is None:
        ends = facts.end_id if isinstance(facts.end_id, list) else [facts.end_id]
        problem = "no padding token in the tokenizer"
        severity = "note" if pad in ends or facts.silent or facts.unused_by else "minor"
    elif pad is None:
        subject, problem = str(facts.token), "config.json names no padding"
        severity = "note"
    elif facts.unused_by:
        severity = "note"
    level = None if facts.silent else facts.level
    detail = words.disagreement(pad, facts.token, own, level=level, unused_by=facts.unused_by)
    return [Evidence(subject, problem, severity, None, detail)]


def _row(checkpoint: StagedCheckpoint, facts: PaddingFacts) -> list[Evidence]:
    pad = facts.configured if facts.token_id is None else facts.token_id
    if pad is None or facts.rows is None or not 0 <= pad < facts.rows:
        return []
    row, subject = checkpoint.embedding_matrix()[pad].float(), f"row {pad:,}"
    if not bool(torch.isfinite(row).all()):
        return [Evidence(subject, NOT_FINITE, "major", None, words.padding_row(pad, None))]
    return [Evidence(subject, "padding row", "none", None, words.padding_row(pad, float(row.norm())))]
