"""Tables made from the answer."""

from __future__ import annotations

import pandas as pd

from inspector.analyses.similarity.result import Similarity


def best(result: Similarity) -> int:
    """The number of the text that is most similar to the first."""
    return int(result.scores.loc[result.scores["score"].idxmax(), "second"])


def pairs_of(result: Similarity, second: int) -> pd.DataFrame:
    """The pairs of tokens of the first text and another one; none where scores are no sums, or there are too many."""
    return pd.DataFrame(result.pairs[result.pairs["second"] == second])


def scores_with_texts(result: Similarity) -> pd.DataFrame:
    """Every score with the text that it is of, the most similar first."""
    texts = [result.texts[number] for number in result.scores["second"]]
    return result.scores.assign(text=texts).sort_values("score", ascending=False, ignore_index=True)


def token_parts(pairs: pd.DataFrame) -> pd.DataFrame:
    """What each token brings of the score, with all tokens of the other text together.

    Args:
        pairs: As `pairs_of` gives them.

    Returns:
        text ("first" or "second"), position, token, part; both texts' parts add up to the score.
    """
    rows = []
    for side in ("first", "second"):
        found = zip(pairs[f"{side}_position"], pairs[f"{side}_token"], pairs["part"], strict=True)
        parts: dict[tuple[int, str], float] = {}
        for position, token, part in found:
            parts[position, token] = parts.get((position, token), 0.0) + part
        rows += [(side, *place, part) for place, part in parts.items()]
    return pd.DataFrame(rows, columns=["text", "position", "token", "part"])


def largest_pairs(pairs: pd.DataFrame) -> pd.DataFrame:
    """Pairs of tokens, those that bring most of the score first."""
    return pairs.sort_values("part", ascending=False, ignore_index=True).drop(columns=["first", "second"])
