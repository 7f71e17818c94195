"""Look for what is wrong with the rows of an embedding matrix."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from dataclasses import replace

import pandas as pd
import torch

from inspector.analyses.embeddings.compute_undertrained import RowJudgment, judge
from inspector.analyses.embeddings.result_health import EqualRows, Health
from inspector.analyses.embeddings.words import sum_up
from inspector.models.checkpoint import StagedCheckpoint
from inspector.models.families import declares_tie, in_file
from inspector.models.vocabulary.rows import RowFacts
from inspector.store.readers.levels import read_setting

KEY_COLUMNS = 8  # numbers of a row that are compared before the whole of it is
READ_ROWS = 4096  # rows that are hashed at a time


def examine(
    checkpoint: StagedCheckpoint, matrix: torch.Tensor, facts: RowFacts, vocabulary: pd.DataFrame
) -> tuple[Health, pd.DataFrame]:
    """Look for damaged, repeated, unused and under-trained rows.

    Args:
        matrix: Its input embeddings, (vocab, d_model), as stored.
        vocabulary: Labels of the rows: token_id, token, kind, norm.

    Returns:
        What was found, and the under-trained tokens with the evidence: token, token_id, score,
        percentile, norm, bias where there is one, why; most suspicious first.
    """
    tokens = checkpoint.tokens
    unreachable = tuple(row for row in tokens.unreachable if row < len(matrix)) if tokens else ()
    bias = output_bias(checkpoint)
    judgment = judge(
        matrix,
        facts,
        vocabulary,
        tied=is_tied(checkpoint),
        bias=bias,
        unreachable=unreachable,
        initializer_range=_initializer_range(checkpoint),
    )
    listed = _list_undertrained(judgment, vocabulary, bias, unreachable)
    size = tokens.size if tokens else len(matrix)
    beyond = vocabulary.loc[vocabulary["token_id"] >= size, ["token_id", "norm"]]
    missing = tokens.beyond(len(matrix)) if tokens else pd.DataFrame({"token_id": [], "token": []})
    lost = vocabulary.iloc[list(unreachable)][["token", "token_id", "norm"]]
    lost = lost.assign(listed=judgment.listed[list(unreachable)].numpy())
    health = Health(
        findings=(),
        indicator=judgment.indicator,
        equal_rows=find_equal_rows(matrix, facts.finite & ~facts.zero, vocabulary),
        zero_rows=_pick(vocabulary, facts.zero),
        not_finite_rows=_not_finite(matrix, facts, vocabulary),
        rows_beyond_tokenizer=beyond.reset_index(drop=True),
        tokens_beyond_rows=missing.reindex(columns=["token", "token_id"]),
        unreachable=lost.reset_index(drop=True),
        scores=pd.DataFrame({"score": judgment.scores.numpy(), "flagged": judgment.listed.numpy()}),
    )
    findings = sum_up(health, undertrained=len(listed), has_tokenizer=tokens is not None)
    return replace(health, findings=findings), listed


def is_tied(checkpoint: StagedCheckpoint) -> bool | None:
    """Whether the output layer repeats the input embeddings; None where nothing says so."""
    config = checkpoint.manifest.config
    if config is None or (checkpoint.family is None and "" not in checkpoint.stated("tie_word_embeddings")):
        return None
    return declares_tie(config, checkpoint.family)


def output_bias(checkpoint: StagedCheckpoint) -> torch.Tensor | None:
    """The bias that an MLM head adds for each token, (vocab,); None where the file has none."""
    family = checkpoint.family
    if family is None or not family.masked_lm:
        return None
    wanted = family.masked_lm[-1]  # the table lists it last
    shapes = {tensor.name: tensor.shape for tensor in checkpoint.manifest.tensors}
    for name in (wanted, wanted.replace(".bias", ".decoder.bias")):
        held = in_file(name, shapes.keys(), family.base)
        if held and shapes[held] == checkpoint.embedding.shape[:1]:
            return checkpoint.read([held])[held].float()
    return None


def _initializer_range(checkpoint: StagedCheckpoint) -> float | None:
    said = read_setting(checkpoint.manifest.config or {}, "initializer_range").value
    return float(said) if isinstance(said, int | float) and said > 0 else None


def find_equal_rows(matrix: torch.Tensor, judged: torch.Tensor, vocabulary: pd.DataFrame) -> tuple[EqualRows, ...]:
    """Group the rows that are equal to the bit.

    Args:
        matrix: (vocab, d_model), of any dtype.
        judged: Rows to look at, (vocab,) of bool.
        vocabulary: Labels of the rows: token, token_id, kind, norm.

    Returns:
        Groups of two rows or more, the largest first, then by their first row.
    """
    groups: dict[bytes, list[int]] = defaultdict(list)
    # A few numbers of each row are compared first: in most files no two rows get past that.
    for part in _alike(matrix, judged).split(READ_ROWS):
        rows = matrix[part].contiguous().view(torch.uint8).numpy()
        for index, row in zip(part.tolist(), rows, strict=True):
            groups[hashlib.blake2b(row.tobytes(), digest_size=16).digest()].append(index)
    found = [rows for rows in groups.values() if len(rows) > 1]
    return tuple(_label(vocabulary.iloc[rows]) for rows in sorted(found, key=lambda r: (-len(r), r[0])))


def _alike(matrix: torch.Tensor, judged: torch.Tensor) -> torch.Tensor:
    """Rows that share a few numbers with another row, ascending."""
    columns = torch.linspace(0, matrix.shape[1] - 1, min(KEY_COLUMNS, matrix.shape[1])).long()
    rows = judged.nonzero()[:, 0]
    few = matrix[:, columns].contiguous().view(torch.uint8)[rows].long()
    generator = torch.Generator().manual_seed(0)
    factors = torch.randint(1 << 62, few.shape[1:], generator=generator)
    keys = (few * factors).sum(dim=1)  # wraps around; a collision only costs a comparison
    _, inverse, counts = keys.unique(return_inverse=True, return_counts=True)
    return rows[counts[inverse] > 1]


def _label(rows: pd.DataFrame) -> EqualRows:
    return EqualRows(
        count=len(rows),
        what="unused" if set(rows["kind"]) <= {"unused", "no token"} else "tokens",
        norm=float(rows["norm"].iloc[0]),
        tokens=tuple(rows["token"].tolist()),
        token_ids=tuple(rows["token_id"].tolist()),
    )


def _list_undertrained(
    judgment: RowJudgment, vocabulary: pd.DataFrame, bias: torch.Tensor | None, unreachable: tuple[int, ...]
) -> pd.DataFrame:
    rows = judgment.listed.nonzero()[:, 0].numpy()
    frame = vocabulary.iloc[rows][["token", "token_id"]].assign(
        score=judgment.scores[rows].numpy(),
        percentile=judgment.percentiles[rows].numpy(),
        norm=vocabulary["norm"].to_numpy()[rows],
    )
    if bias is not None:
        frame["bias"] = bias[rows].numpy()
    never = frame["token_id"].isin(unreachable)
    vector = {"direction": "near the unused rows", "norm": "short"}
    frame["why"] = [
        vector.get(judgment.indicator.measure, "")
        + ", low output bias" * agrees
        + ", never produced by the tokenizer" * lost
        for agrees, lost in zip(judgment.agreed[rows].tolist(), never, strict=True)
    ]
    return frame.sort_values("score", ascending=False, kind="stable", ignore_index=True)


def _pick(vocabulary: pd.DataFrame, rows: torch.Tensor) -> pd.DataFrame:
    return vocabulary.loc[rows.numpy(), ["token", "token_id", "kind"]].reset_index(drop=True)


def _not_finite(matrix: torch.Tensor, facts: RowFacts, vocabulary: pd.DataFrame) -> pd.DataFrame:
    frame = _pick(vocabulary, ~facts.finite)
    frame["what"] = [
        "NaN" if bool(torch.isnan(matrix[row].float()).any()) else "infinity" for row in frame["token_id"].tolist()
    ]
    return frame
