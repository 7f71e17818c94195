"""Sentences about how similar texts are."""

from __future__ import annotations

from collections.abc import Sequence

from inspector.analyses.similarity.result import Similarity
from inspector.text import plural, shorten, some

TOO_FEW = "Give two texts or more: the first is compared with each of the others."
NO_POOLING = (
    "{name} states no pooling (it has no modules.json), so nothing says how a text becomes one vector: name the "
    "pooling yourself, such as mean."
)
CUT = "A text of {tokens:,} tokens was cut to {longest:,}, as sentence-transformers does ({said})."
BIAS = "(bias)"  # in the place of a token
PAIRS_LEFT_OUT = "Pairs of tokens are listed only where there is room: at most {most:,} of all texts."
NO_PADDING = (
    "What padding would do is not shown: the tokenizer names no padding token, or the texts leave no room for padding."
)
MEANINGS = {
    "part": "Part of the score; all parts add up to it. With padding: what pairs with a padded position bring.",
    "alone": "Each text runs alone, without padding.",
    "masked": "Padded together; model and pooling are given the attention mask.",
    "pooled_over_padding": "Padded together; the model is given the attention mask, and the pooling is not.",
    "unmasked": "Padded together; neither is given the attention mask.",
}
TITLE, SCORES = "Pairs of tokens", "Similarity"
EXAMPLES = ("A dog runs in the park.", "A puppy is playing outside.", "The bank raised interest rates.")
WHY = (
    (
        "Why do the cells add up to the score?",
        "Pooling is a sum over tokens: a mean gives each token the same weight, and of a maximum each dimension is one "
        "token's. Linear layers and the division by the length keep the sum, so the product of two sums is the sum of "
        "all products of two tokens.",
    ),
    (
        "Why does a forgotten attention mask change the score?",
        "Without it, positions of padding count as tokens: the model attends to them, and the pooling takes them in. "
        "The same text then has another vector in each batch.",
    ),
)
MEASURE_NAMES = {
    "cosine": "cosine similarity",
    "dot": "dot product",
    "euclidean": "negative Euclidean distance",
    "manhattan": "negative Manhattan distance",
}
SHORT = 40  # characters of a text in a sentence or a label


def no_prompt(name: str, prompts: Sequence[str]) -> str:
    """A prompt that the checkpoint does not state."""
    known = f"it states {some([*prompts], 6)}" if prompts else "it states none"
    return f"There is no prompt {name[:40]!r} in this checkpoint: {known}."


def named_pooling(result: Similarity) -> str:
    """What is to be said of a pooling that was named; "" of one that the checkpoint states."""
    if result.declared_pooling is None:
        return (
            f"The checkpoint states no pooling: {result.pooling} was named by you, and another pooling gives another "
            "score."
        )
    if result.pooling != result.declared_pooling:
        return f"The checkpoint states {result.declared_pooling} pooling; {result.pooling} was named by you instead."
    return ""


def headline(result: Similarity) -> str:
    """The score, and what brings most of it."""
    measure = MEASURE_NAMES[result.measure]
    best = result.scores.loc[result.scores["score"].idxmax()]
    if len(result.scores) > 1:
        text = shorten(result.texts[int(best["second"])], SHORT)
        return f"Most similar of {plural(len(result.scores), 'text')}: “{text}”, {measure} {best['score']:.4f}."
    said = f"The {measure} of the two texts is {best['score']:.4f}"
    if not len(result.pairs):
        return f"{said}."
    top = result.pairs.loc[result.pairs["part"].idxmax()]
    return f"{said}; the largest part, {top['part']:.4f}, is of “{top['first_token']}” × “{top['second_token']}”."


def facts(result: Similarity) -> dict[str, str]:
    """How the vectors and the score were made."""
    measure = MEASURE_NAMES[result.measure]
    found = {
        "Pooling": result.pooling if result.pooling == result.declared_pooling else f"{result.pooling} (named by you)",
        "Score": measure if result.declared_measure else f"{measure} (not stated: the library's own)",
        "Runs": " → ".join(result.modules),
        "Normalized": "yes" if result.modules[-1] == "Normalize" else "no",
        "Dimensions": f"{result.dimensions:,}",
    }
    if result.prompt:
        found["Prompt"] = repr(shorten(result.prompt, SHORT)) + ("" if result.include_prompt else ", not pooled")
    return found


def why_no_pairs(result: Similarity) -> str:
    """Why no token has a part of the score."""
    if result.measure in ("euclidean", "manhattan"):
        return f"The {MEASURE_NAMES[result.measure]} is no sum over pairs of tokens, so no part of it is shown."
    return (
        "A Dense module with an activation follows the pooling, so the score is no exact sum over pairs of tokens, and "
        "no part of it is shown."
    )


def padding(result: Similarity) -> str:
    """What a forgotten attention mask does to the first score."""
    if not len(result.padding):
        return NO_PADDING
    row = result.padding.iloc[0]
    said = (
        f"Padded together ({result.padding_side}), the score is {row['masked']:.4f} with the attention mask and "
        f"{row['unmasked']:.4f} without it; each text alone gives {row['alone']:.4f}"
    )
    if row["part"] != row["part"] or row["part"] is None:
        return f"{said}."
    return f"{said}. Pairs with a position of padding bring {row['part']:.4f} of the score without the mask."


def settings(result: Similarity) -> dict[str, str]:
    """What the checkpoint states, and where the model ran."""
    return {
        "Pooling that is stated": result.declared_pooling or "none",
        "Score that is stated": result.declared_measure or "none",
        "Prompts that are stated": some(result.prompts, 6) if result.prompts else "none",
        "Prompt before each text": repr(result.prompt) if result.prompt else "none",
        "Tokens of the prompt are pooled": "yes" if result.include_prompt else "no",
        "Ran on": f"{result.device}, {result.dtype}, {result.milliseconds:.0f} ms",
    }


def adds_up(result: Similarity, second: int) -> str:
    """What the map of pairs shows."""
    score = dict(zip(result.scores["second"], result.scores["score"], strict=True))[second]
    return f"“{short(result.texts[0])}” down, “{short(result.texts[second])}” across; the cells add up to {score:.4f}"


def against(result: Similarity) -> str:
    """What the bars show."""
    return f"{MEASURE_NAMES[result.measure].capitalize()} with “{short(result.texts[0])}”"


def short(text: str) -> str:
    """A text that has room in a line."""
    return shorten(text, SHORT)
