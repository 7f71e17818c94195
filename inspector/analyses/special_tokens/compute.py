"""List the special tokens with what each file says of them, and tell where a generated text ends."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

import pandas as pd

from inspector.analyses.special_tokens import words
from inspector.analyses.special_tokens.result import SpecialTokens
from inspector.catalog import import_ahead
from inspector.models.checkpoint import StagedCheckpoint
from inspector.models.tokens import Tokens
from inspector.models.vocabulary.ends import NAMED_ONES, Ends, faults, read_ends
from inspector.models.vocabulary.library import SPECIAL_ROLES
from inspector.progress import Progress

TURN_END = "ends a turn"


def tokens(checkpoint: StagedCheckpoint, *, progress: Progress) -> SpecialTokens:
    """List every special or added token: its roles, its files, its embedding row, and whether a text ends there.

    Raises:
        NotInCheckpointError: If the checkpoint brings no tokenizer.
    """
    tokenizer = checkpoint.require_tokens()
    ends = read_ends(checkpoint, progress=progress)
    table, rows = _table(checkpoint, tokenizer, ends, progress)
    end = ends.chat.turn_end
    return SpecialTokens(
        tokens=table,
        eos_ids=ends.eos_ids,
        eos_from=ends.stops_by,
        turn_end=None if end is None else tokenizer.visible(end),
        stops=None if end is None else end in ends.eos_ids,
        disagreements=(*(fault.detail for fault in faults(tokenizer, ends)), *_without_row(tokenizer, rows)),
        template=ends.chat.file,
        template_problem=ends.chat.problem,
    )


def _table(
    checkpoint: StagedCheckpoint, tokenizer: Tokens, ends: Ends, progress: Progress
) -> tuple[pd.DataFrame, int | None]:
    """A row for each token, and how many rows the embedding matrix has."""
    said, chat = ends.said, ends.chat
    roles: dict[int, list[str]] = defaultdict(list)
    files: dict[int, list[str]] = defaultdict(list)
    for role in SPECIAL_ROLES:
        if (index := tokenizer.role(role)[1]) is not None:
            roles[index].append(role)
        for file, ids in said.ids.get(role, {}).items():
            for each in ids:
                roles[each] += [role] * (role not in roles[each])
                files[each].append(file)
    if chat.turn_end is not None:
        roles[chat.turn_end].append(TURN_END)
    listed = sorted(tokenizer.special_ids | tokenizer.added_ids | roles.keys())
    from inspector.analyses.special_tokens.compute_rows import MeasuredRow, measure_tokens

    measured, rows = measure_tokens(checkpoint, listed, progress)
    found = []
    for index in listed:
        raw = tokenizer.raw(index)
        pieces = () if raw is None else tokenizer.pieces(raw)
        named = [file for file, texts in said.tokens.items() if raw in texts]
        row = measured.get(index, MeasuredRow())
        found.append(
            {
                "token": tokenizer.visible(index),
                "token_id": index,
                "roles": roles[index],
                "files": [*named, *dict.fromkeys(files[index])],
                "norm": row.norm,
                "percentile": row.percentile,
                "at_mean": row.at_mean,
                "equal_to": [*row.equal_to],
                "output_bias": row.output_bias,
                "in_template": raw is not None and raw in chat.text if chat.file else None,
                "reachable": index in pieces,
                "single": pieces == (index,),
            }
        )
    return pd.DataFrame(found, columns=_COLUMNS), rows


_COLUMNS = [
    "token", "token_id", "roles", "files", "norm", "percentile", "at_mean", "equal_to", "output_bias", "in_template",
    "reachable", "single",
]  # fmt: skip


def _without_row(tokenizer: Tokens, rows: int | None) -> Iterator[str]:
    """Special tokens that the embedding matrix has no row for."""
    if rows is not None:
        beyond = [
            index for index in sorted(tokenizer.special_ids) if index >= rows and tokenizer.raw(index) is not None
        ]
        yield from (words.no_row(tokenizer.visible(index), index, rows) for index in beyond[:NAMED_ONES])


import_ahead("inspector.analyses.special_tokens.compute_rows")
