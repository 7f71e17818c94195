"""The cells of a lens: as a table, and one of them by step."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from inspector.analyses.lens.result import Lens, LensRows
from inspector.text import percent_text

MOST_ACROSS = 200  # positions of the table: the last ones
BEST = 4  # tokens of a step


def typed(tokens: Sequence[str], text: str) -> list[int]:
    """Positions of the tokens that stand in the text as they are."""
    bare = [token.strip().removeprefix("␣").removeprefix("##") for token in tokens]
    return [place for place, token in enumerate(bare) if token and token in text]


def typed_marks(tokens: Sequence[str], text: str) -> list[int]:
    """Positions of special tokens that were typed, such as masks."""
    return [at for at in typed(tokens, text) if len(tokens[at]) > 2 and tokens[at][0] in "[<" and tokens[at] in text]


def top_tokens(rows: LensRows, rung: str, *, most: int = MOST_ACROSS) -> pd.DataFrame:
    """The top token of each cell at one step, a line for each layer, the text itself first.

    Args:
        most: Positions of the table: the last ones.

    Returns:
        layer, and for each of the last positions a column that has its number.
    """
    found: dict[int, dict[str, str]] = {}
    for layer, position, token in rows.cells.loc[rows.cells["rung"] == rung, ["layer", "position", "token"]].to_numpy():
        found.setdefault(layer, {})[str(position)] = token
    text = {str(position): token for position, token in list(enumerate(rows.tokens))[-most:]}
    names = ("emb.", *rows.layers[1:])
    lines = [{"layer": "text", **text}, *({"layer": names[layer], **found[layer]} for layer in sorted(found))]
    return pd.DataFrame(lines, columns=["layer", *text]).fillna("")


def best_by_step(lens: Lens, layer: int, position: int) -> dict[str, str]:
    """The best tokens of one cell after each step, the first with what the step gives it."""
    cells = lens.cells
    here = pd.DataFrame(cells[(cells["layer"] == layer) & (cells["position"] == position) & (cells["rank"] < BEST)])
    told: dict[str, list[str]] = {}
    for row in here.sort_values("rank").to_dict("records"):
        given = f"{row['score']:.3f}" if row["rung"] == "cosine" else percent_text(row["probability"])
        told.setdefault(row["rung"], []).append(row["token"] if row["rank"] else f"{row['token']} {given}")
    return {rung: ", ".join(told[rung]) for rung in lens.rungs if rung in told}
