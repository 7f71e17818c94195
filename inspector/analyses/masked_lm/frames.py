"""Answers as tables: joint ones, and those of two checkpoints side by side."""

from __future__ import annotations

import math

import pandas as pd

from inspector.analyses.masked_lm.result import Mask, Prediction


def joint_answers(prediction: Prediction) -> pd.DataFrame:
    """One row a joint answer, most likely first; `words.JOINT` explains the numbers."""
    return pd.DataFrame(
        {
            "tokens": " · ".join(answer.tokens),
            "probability": math.exp(answer.log_probability),
            "log_probability": answer.log_probability,
            "independent": answer.independent,
            "pseudo_log_likelihood": answer.pseudo_log_likelihood,
        }
        for answer in prediction.joint
    )


def join_answers(mine: Mask, theirs: Mask) -> pd.DataFrame:
    """Set the listed tokens of two checkpoints side by side by their text.

    Returns:
        token, here, there (probabilities, NaN where not listed), rank_here, rank_there (from 1,
        missing likewise), the most likely of either first.
    """
    sides = [
        pd.DataFrame(
            {
                "token": mask.predictions["token"].map(_bare),
                name: mask.predictions["probability"],
                f"rank_{name}": pd.array(range(1, len(mask.predictions) + 1), dtype="Int64"),
            }
        ).drop_duplicates("token")
        for name, mask in (("here", mine), ("there", theirs))
    ]
    joined = sides[0].merge(sides[1], on="token", how="outer")
    order = joined[["here", "there"]].max(axis=1).sort_values(ascending=False, kind="stable").index
    return joined.loc[order, ["token", "here", "there", "rank_here", "rank_there"]].reset_index(drop=True)


def _bare(token: str) -> str:
    """A token without the sign of its tokenizer for "a word begins here"."""
    return token.removeprefix("␣")
