"""Sentences about two sentences with one mask each."""

from __future__ import annotations

from inspector.analyses.contrast.result import Contrast

COLUMNS = {  # of the tokens -> what the numbers mean
    "difference": "First minus second: 0.69 means twice as likely, 2.3 ten times.",
    "first": "Log probability in the first sentence (natural logarithm).",
    "second": "Log probability in the second sentence.",
}
JENSEN_SHANNON = (
    "Distance between the two distributions over the whole vocabulary: 0 means identical, 1 means nothing in common."
)


def headline(result: Contrast, names: tuple[str, str]) -> str:
    """How far the two texts are apart, and the token that each of them favors most.

    Args:
        names: What tells the two texts apart.
    """
    favored = [
        f"{name} favors “{frame.iloc[0]['token']}”"
        for name, frame in zip(names, (result.favours_first, result.favours_second), strict=True)
        if len(frame)
    ]
    distance = f"The two texts differ by {result.jensen_shannon:.3f} of at most 1 bit (Jensen–Shannon)"
    return f"{distance}: {', '.join(favored)}." if favored else f"{distance}."
