"""Joint answers as a table."""

from __future__ import annotations

import math

import pandas as pd

from inspector.analyses.masked_lm.result import Prediction


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
