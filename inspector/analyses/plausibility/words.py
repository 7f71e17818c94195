"""Sentences about how plausible a text is."""

from __future__ import annotations

from inspector.analyses.plausibility.result import Plausibility
from inspector.text import percent_text


def subtitle(result: Plausibility) -> str:
    """What the colored text shows, in a line below its title."""
    if result.method == "causal":
        return "each token predicted from the tokens before it; below it, its surprisal in bits"
    masked = "alone" if result.by == "token" else "with the rest of its word"
    return f"each token masked {masked}; below it, its surprisal in bits"


def totals(result: Plausibility) -> str:
    """How each token was judged, and what they add up to."""
    if result.method == "causal":
        return (
            "Each token is predicted from the tokens before it, all in one pass: surprisal is −log₂ of the probability "
            f"of the token in the text. {judged(result)} Together the {result.judged} judged tokens have a "
            f"log-likelihood of {result.log_likelihood:.3f} and a perplexity of {result.perplexity:.2f}, which is exp "
            "of the mean loss."
        )
    masked = "alone" if result.by == "token" else "together with the rest of its word"
    return (
        f"Each token is masked {masked}, and the head predicts it: surprisal is −log₂ of the probability of the token "
        "in the text (pseudo-log-likelihood, Salazar et al. 2020). Masks are not judged. Together the "
        f"{result.judged} tokens have a pseudo-log-likelihood of {result.pseudo_log_likelihood:.3f} and a "
        f"pseudo-perplexity of {result.pseudo_perplexity:.2f}."
    )


def judged(result: Plausibility) -> str:
    """Which tokens a causal model judges, and why not the first."""
    first = result.tokens.iloc[0]
    if first["special"]:
        return (
            f"The text begins with the special token {first['token']}, which is not judged, so every token after it "
            "has a context."
        )
    return (
        f"The first token, “{first['token']}”, has no context and is not judged: the tokenizer puts no special token "
        "before the text."
    )


def alternatives(result: Plausibility, *, count: int) -> dict[int, str]:
    """The most likely tokens at each position in one line: "paris 12 %, rome 3 %"."""
    best = result.alternatives[result.alternatives["rank"] <= count]
    found: dict[int, list[str]] = {}
    for position, token, share in zip(
        *(best[name].tolist() for name in ("position", "token", "probability")), strict=True
    ):
        found.setdefault(position, []).append(f"{token} {percent_text(share)}")
    return {position: ", ".join(texts) for position, texts in found.items()}


def stands_for_unknown(count: int, name: str | None) -> str:
    """Tokens that were judged in place of text that the vocabulary lacks."""
    return (
        f"{count} {'token represents' if count == 1 else 'tokens represent'} text that is not in the vocabulary: the "
        f"score there is for {name} itself."
    )
