"""Sentences about two sentences with one mask each."""

from __future__ import annotations

COLUMNS = {  # of the tokens -> what the numbers mean
    "difference": "First minus second: 0.69 means twice as likely, 2.3 ten times.",
    "first": "Log probability in the first sentence (natural logarithm).",
    "second": "Log probability in the second sentence.",
}
JENSEN_SHANNON = (
    "Distance between the two distributions over the whole vocabulary: 0 means identical, 1 means nothing in common."
)
