"""Sentences about how plausible a text is."""

from __future__ import annotations

from inspector.analyses.plausibility.result import Plausibility
from inspector.text import percent_text

WHY_CAUSAL = "Why is no mask filled?"
WHY_MEASURES = "What do the values of the whole text mean?"
CAUSAL = (
    "This model is causal: it predicts the next token and cannot fill masks. Instead, the answer is how plausible each "
    "token of a text is, given the tokens before it."
)
COLUMNS = {  # of the tokens -> what the numbers mean
    "rank": "1 is the most likely token of the vocabulary at this position.",
    "bits": "-log2 of the probability; 0 is certain.",
    "log_probability": "Natural logarithm.",
    "most_likely_here": "The model's most likely tokens at this position.",
}


def subtitle(result: Plausibility) -> str:
    """What the colored text shows, in a line below its title."""
    if result.method == "causal":
        return "each token predicted from the tokens before it; below it, its surprisal in bits"
    masked = "alone" if result.by == "token" else "with the rest of its word"
    return f"each token masked {masked}; below it, its surprisal in bits"


def headline(result: Plausibility) -> str:
    """How plausible the text is, and its most surprising token."""
    if not result.judged:
        return "No token of the text could be judged."
    tokens = [row for row in result.tokens.to_dict("records") if row["judged"]]
    worst = max(tokens, key=lambda row: row["bits"])
    name, value = (
        ("perplexity", result.perplexity)
        if result.perplexity is not None
        else ("pseudo-perplexity", result.pseudo_perplexity)
    )
    return (
        f"The text has a {name} of {value:.2f}; its most surprising token is “{worst['token']}” "
        f"({worst['bits']:.1f} bits, rank {worst['rank']:,})."
    )


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


def measures(result: Plausibility) -> str:
    """What the two values for the whole text mean."""
    causal = result.method == "causal"
    likelihood, perplexity = (
        ("log-likelihood", "perplexity") if causal else ("pseudo-log-likelihood", "pseudo-perplexity")
    )
    seen = "predicted from the tokens before it" if causal else "judged with all others visible"
    models = ", and between models with the same tokenizer" if causal else ""
    return (
        f"The {likelihood} is the sum of the tokens' log probabilities, each {seen}. Closer to zero is more plausible, "
        f"and longer texts have lower values. The {perplexity} is exp of its negative mean: the model is as uncertain "
        f"as if it chose each token from this many equally likely ones. It can be compared between texts of different "
        f"lengths{models}."
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
