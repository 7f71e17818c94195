"""Check that config.json and tokenizer mean the same padding token, and that it has a row."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from inspector.analyses.checks.compute_parts import conclude, not_checked
from inspector.analyses.checks.result import Check, Evidence
from inspector.errors import InspectorError
from inspector.models.checkpoint import Checkpoint

PADDING = "Padding"


@dataclass(frozen=True, slots=True)
class Facts:
    """What the files say about padding."""

    rows: int | None  # of the embedding matrix
    configured: int | None  # pad_token_id of config.json, or else of the model's kind
    silent: bool  # config.json does not say, and the kind's own default holds
    has_tokenizer: bool
    token: str | None  # the tokenizer's, as people read it
    token_id: int | None
    end_id: object  # eos_token_id of config.json: a number, several, or None


def check_padding(checkpoint: Checkpoint) -> Check:
    """The padding id has a row, and is the tokenizer's."""
    try:
        facts = _read(checkpoint)
    except InspectorError as error:
        return not_checked(PADDING, str(error))
    evidence = [*_range(facts), *_agreement(facts), *_row(checkpoint, facts)]
    order = ("critical", "major", "minor", "note", "none")
    worst = min(evidence, key=lambda each: order.index(each.severity), default=None)
    if worst is not None and worst.severity != "none":
        return conclude(PADDING, evidence, detail=worst.detail, next_step=_step(worst))
    return conclude(PADDING, evidence, detail=_fine(facts))


def _read(checkpoint: Checkpoint) -> Facts:
    tokens = checkpoint.tokens
    raw, index = tokens.role("pad") if tokens else (None, None)
    values = checkpoint.manifest.config or {}
    try:
        configured = getattr(checkpoint.config, "pad_token_id", None)
    except InspectorError:  # transformers does not know the model: what the file says
        configured = values.get("pad_token_id")
    try:
        rows = checkpoint.embedding.shape[0]
    except InspectorError:
        rows = None
    return Facts(
        rows=rows,
        configured=configured if type(configured) is int else None,
        silent="pad_token_id" not in values,
        has_tokenizer=tokens is not None,
        token=tokens.visible(index) if tokens and index is not None else raw,
        token_id=index,
        end_id=values.get("eos_token_id"),
    )


def _range(facts: Facts) -> list[Evidence]:
    pad, rows = facts.configured, facts.rows
    if pad is None or rows is None or 0 <= pad < rows:
        return []
    if -rows <= pad < 0:
        return [
            Evidence(
                "pad_token_id",
                "counts from the end",
                "minor",
                pad,
                f"config.json says pad_token_id {pad}: PyTorch takes row {rows + pad:,}, "
                "and no tokenizer gives a negative id.",
            )
        ]
    return [
        Evidence(
            "pad_token_id",
            "no such row",
            "critical",
            pad,
            f"config.json says pad_token_id {pad:,}, and the embedding matrix has "
            f"{rows:,} rows: the model cannot be built.",
        )
    ]


def _agreement(facts: Facts) -> list[Evidence]:
    pad, own = facts.configured, facts.token_id
    if not facts.has_tokenizer or pad == own:
        return []
    said = "its kind of model means" if facts.silent else "config.json says"
    if own is None:
        ends = facts.end_id if isinstance(facts.end_id, list) else [facts.end_id]
        severity = "note" if pad in ends or facts.silent else "minor"
        return [
            Evidence(
                "pad_token_id",
                "no padding token in the tokenizer",
                severity,
                None,
                f"The padding id is {pad:,} ({said} so), and the tokenizer names no padding token.",
            )
        ]
    if pad is None:
        return [
            Evidence(
                str(facts.token),
                "config.json names no padding",
                "note",
                None,
                f"The tokenizer pads with {facts.token} (id {own:,}), and config.json "
                "names none: its row is trained like every other.",
            )
        ]
    return [
        Evidence(
            "pad_token_id",
            "config.json and tokenizer disagree",
            "major",
            None,
            f"The padding id is {pad:,} ({said} so), and the tokenizer pads with "
            f"{facts.token} (id {own:,}): positions and losses are masked in the "
            "wrong places.",
        )
    ]


def _row(checkpoint: Checkpoint, facts: Facts) -> list[Evidence]:
    pad = facts.configured if facts.token_id is None else facts.token_id
    if pad is None or facts.rows is None or not 0 <= pad < facts.rows:
        return []
    row = checkpoint.embedding_matrix()[pad].float()
    if not bool(torch.isfinite(row).all()):
        return [
            Evidence(
                f"row {pad:,}",
                "padding row not finite",
                "major",
                None,
                f"The padding token's row {pad:,} holds NaN or infinity, and every padded batch reads it.",
            )
        ]
    norm = float(row.norm())
    said = "zero" if norm == 0 else f"not zero (norm {norm:.3f})"
    return [Evidence(f"row {pad:,}", "padding row", "none", None, f"The padding token's row {pad:,} is {said}.")]


def _step(worst: Evidence) -> str:
    if worst.problem == "padding row not finite":
        return "Set the row to zero, and look for the training step that broke it."
    return "Set pad_token_id in config.json to the id of the tokenizer's padding token."


def _fine(facts: Facts) -> str:
    pad = facts.configured
    if pad is None:
        return "Neither config.json nor the tokenizer names a padding token."
    if not facts.has_tokenizer:
        return f"The padding id {pad:,} has its row; there is no tokenizer to compare it with."
    return f"config.json and the tokenizer pad with {facts.token} (id {pad:,}), which has its row."
