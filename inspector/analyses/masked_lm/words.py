"""Sentences about a mask's answer, and about two checkpoints' answers."""

from __future__ import annotations

from inspector.analyses.masked_lm.result import Prediction
from inspector.text import bytes_text, percent_text, plural

JOINT_UP_TO = "Joint answers are available for up to {masks} masks."
WHY_HOW = "How does the model predict a mask?"
HOW = (
    "The text goes through the encoder once. At each mask the head turns the hidden state into one logit per token "
    "(dense layer, activation, LayerNorm, product with the word embeddings, bias), and a softmax over the whole "
    "vocabulary turns the logits into probabilities, even if only some words are compared."
)

NO_MASK = "The text has no mask, so there is nothing to predict."
WHOLE_VOCABULARY = "The comparison below covers the whole vocabulary instead."
OTHERS_OPEN = "every other mask left open"
JOINT = {  # column of the joint answers -> what its numbers mean
    "probability": "For all masks together: each mask is filled given those already filled, and the probabilities are "
    "multiplied.",
    "log_probability": "Natural logarithm of the joint probability.",
    "independent": "Sum of the log probabilities of the same tokens, each scored with every other mask left open. If "
    "it is larger than the joint one, the tokens fit their places better than each other.",
    "pseudo_log_likelihood": "For the finished sentence: each of these tokens is masked in turn with the others filled "
    "in, and the log probabilities are added. It does not depend on the filling order.",
}
WORDS = {  # the same of whole words
    "tokens": "The word's tokens, one mask per token.",
    "probability": "Product over the word's tokens, each predicted from those before it. A word of two tokens takes "
    "two masks, so compare words with the same number of tokens.",
}


def headline(prediction: Prediction) -> str:
    """The most likely token of each mask."""
    best = [mask.predictions.iloc[0] for mask in prediction.masks]
    if len(best) == 1:
        return f"The mask is most likely “{best[0]['token']}”, {percent_text(best[0]['probability'])}."
    tokens = ", ".join(f"“{row['token']}” ({percent_text(row['probability'])})" for row in best)
    if not prediction.joint:
        return f"The masks, each alone, are most likely {tokens}."
    together = " ".join(prediction.joint[0].tokens)
    return f"The {len(best)} masks together are most likely “{together}”; each alone: {tokens}."


def ran(prediction: Prediction) -> str:
    """Where and how the pass was run, and with how many other requests."""
    others = f"run together with {plural(prediction.batch - 1, 'other')} in one padded batch"
    return "; ".join(
        (
            f"Forward pass: {prediction.milliseconds:.1f} ms on {prediction.device}",
            prediction.note or prediction.dtype,
            f"{bytes_text(prediction.memory_nbytes)} of memory",
            *([others] if prediction.batch > 1 else []),
        )
    )


def joint(order: str) -> str:
    """How several masks were filled together."""
    way = "from left to right" if order == "left" else "the most confident mask first"
    return (
        f"A beam search fills the masks {way}, each given those already filled. The best answers for each mask alone "
        "may not fit together."
    )


def no_head(name: str) -> str:
    """Why a second checkpoint is not asked."""
    return (
        f"{name} has no masked-LM head in its file, so it predicts nothing: a head filled with random numbers would "
        "return nonsense."
    )


def rewritten(name: str) -> str:
    """What became of clicked tokens that another tokenizer does not have."""
    return (
        f"{name} splits this text into different tokens, so each token that you clicked is replaced by one of its "
        "mask tokens."
    )


def split_apart(here: int, there: int) -> str:
    """How two tokenizers split the same text."""
    return f"The texts have {here} and {there} tokens: the two tokenizers split them differently outside the masks."


def masks_apart(here: int, there: int) -> str:
    """Why two answers are not set side by side."""
    return f"One has {here} masks and the other {there}, so they cannot be shown side by side."


def shared(count: int, names: tuple[str, str], listed: tuple[int, int]) -> str:
    """How many tokens two checkpoints both list."""
    return (
        f"{count} of the {listed[0]} tokens of {names[0]} are among the {listed[1]} of {names[1]}. Rows are joined by "
        "token text; an empty cell means that the token is not listed."
    )
