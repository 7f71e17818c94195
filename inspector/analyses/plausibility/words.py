"""Sentences about how plausible a text is."""

from __future__ import annotations

from inspector.analyses.plausibility.result import Plausibility


def totals(result: Plausibility) -> str:
    """How each token was judged, and what they add up to."""
    return (
        "Each token is masked alone, and the head predicts it: surprisal is −log₂ of the probability of the token in "
        "the text (pseudo-log-likelihood, Salazar et al. 2020). A mask itself is not judged. Together the "
        f"{result.judged} tokens have a pseudo-log-likelihood of {result.pseudo_log_likelihood:.3f}, a "
        f"pseudo-perplexity of {result.pseudo_perplexity:.2f}."
    )
