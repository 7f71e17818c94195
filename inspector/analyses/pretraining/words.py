"""Sentences about the pre-training objective."""

from __future__ import annotations

from inspector.analyses.heads.result import KEPT, MASKED, REPLACED
from inspector.analyses.pretraining.result import Pretraining
from inspector.text import percent_text, plural

NO_NEXT_SENTENCE = "{name} has no next-sentence head: the objective is the masked-LM loss alone, on both texts."
WHY_MASKING = "How does masking choose its tokens?"
MASKING = (
    "Of the ordinary tokens, a share is chosen (15 % in BERT). Of the chosen ones 80 % become the mask token, 10 % a "
    "random token and 10 % stay as they are (Devlin et al. 2019), so that the model cannot trust what it sees. The "
    "label of a chosen token is its original id; every other position has the label -100, which the loss ignores: "
    "special tokens, padding and all tokens that were not chosen. The masked-LM loss is the mean cross-entropy over "
    "the chosen tokens, the next-sentence loss that of the two scores of the first position, and the objective is "
    "their sum. Both are in nats."
)

MASKED_LM_LOSS = "Mean cross-entropy over the chosen tokens, in nats."


def headline(result: Pretraining) -> str:
    """The loss, and what it is the mean of."""
    return f"The loss is {result.loss:.4f}: {chosen(result)}"


def losses(result: Pretraining) -> dict[str, str]:
    """Each part of the objective, in nats."""
    found = {"Masked LM": f"{result.masked_lm_loss:.4f} nats, the mean over {plural(result.chosen, 'chosen token')}"}
    if result.next_sentence_loss is not None:
        found["Next sentence"] = f"{result.next_sentence_loss:.4f} nats"
    return {**found, "Together": f"{result.loss:.4f} nats, as the model itself returns", "Ran on": result.device}


def chosen(result: Pretraining) -> str:
    """How many tokens were chosen, and what the next-sentence head answers."""
    counts = ", ".join(f"{result.counts[kind]} {kind}" for kind in (MASKED, REPLACED, KEPT) if result.counts[kind])
    text = f"{result.chosen} of {plural(len(result.tokens), 'token')} chosen: {counts}."
    if result.is_next is None:
        return text
    return (
        f"{text} Next sentence: label {result.next_sentence_label}; the head's probability that it follows is "
        f"{percent_text(result.is_next)}."
    )
