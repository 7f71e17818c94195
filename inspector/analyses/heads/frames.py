"""Tables of a task head's answer."""

from __future__ import annotations

import pandas as pd

from inspector.analyses.heads.result import AnswerLoss


def loss_frame(loss: AnswerLoss) -> pd.DataFrame:
    """Where the labeled answer lies after clamping, and the loss of both ends."""
    ends = {
        "start": (loss.start, loss.start_clamped, loss.start_loss),
        "end": (loss.end, loss.end_clamped, loss.end_loss),
    }
    return pd.DataFrame(
        {
            "of": name,
            "position": str(place),
            "clamped to": str(clamped),
            "loss": "ignored" if value is None else f"{value:.4f}",
        }
        for name, (place, clamped, value) in ends.items()
    )
