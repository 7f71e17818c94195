"""Sentences about what a checkpoint holds."""

from __future__ import annotations

# What each head answers, for readers who do not know its class.
HEADS = {
    "masked_lm": ("Masked LM", "Which token belongs at the mask?"),
    "causal_lm": ("Causal LM", "Which token comes next?"),
    "next_sentence": ("Next sentence", "Does the second sentence follow the first?"),
    "sequence_classification": ("Sequence classification", "Which label, or number, for a text?"),
    "token_classification": ("Token classification", "Which label for each token?"),
    "question_answering": ("Question answering", "Where in the text is the answer?"),
    "multiple_choice": ("Multiple choice", "Which of the endings fits best?"),
}
