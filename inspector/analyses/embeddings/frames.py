"""What was found in the rows of an embedding matrix, as tables."""

from __future__ import annotations

import pandas as pd

from inspector.analyses.embeddings.result_health import EqualRows, Health
from inspector.text import some

SHOWN = 12  # tokens of a group of equal rows that are written out


def finding_rows(health: Health) -> dict[str, pd.DataFrame]:
    """The rows of each finding that has any to list, by its name."""
    return {
        "NaN or infinity": health.not_finite_rows,
        "Zero rows": health.zero_rows,
        "Equal rows": pd.DataFrame(map(_group, health.equal_rows)),
        "Rows beyond the tokenizer": health.rows_beyond_tokenizer,
        "Tokens beyond the rows": health.tokens_beyond_rows,
        "Tokens never produced": health.unreachable,
    }


def _group(group: EqualRows) -> dict[str, object]:
    return {
        "rows": group.count,
        "kind": group.what,
        "tokens": some(group.tokens, SHOWN),
        "ids": ", ".join(map(str, group.token_ids[:SHOWN])),
        "norm": group.norm,
    }
