"""What was measured on the sentences, and why nothing was."""

from __future__ import annotations

from inspector.text import plural

NO_ROW = "There is no row to pad a batch with, so nothing was measured."
NO_CONFIG = "{name} has no config.json, so no model can run."
NO_TOKENIZER = "There is no tokenizer, so no text can be read and nothing was measured."
NO_TEXT = "Enter a text, one sentence per line, to measure it."
NO_HEAD = (
    "{name} has no language-model head, so it has no loss that could push on a row. Nothing was measured, because the "
    "gradient of a random head is meaningless."
)
NOT_IN_ONE_PLACE = (
    "A backward pass needs all weights of {name} on one device, and they do not fit: choose another device, or raise "
    "INSPECTOR_MODEL_MB."
)
NOT_SHARED = (
    "The encoder and the decoder of {name} look tokens up in their own matrices and do not use the shared one, so "
    "nothing was measured."
)
NO_MASK = "The tokenizer of {name} has no mask token, so its loss cannot be computed."
NOTHING_ASKED = "The sentences have no token that the model could predict: enter longer ones."
DOES_NOT_RUN = "The loss of {model} does not run on these sentences alone: nothing was measured."
TOO_LARGE = (
    "A backward pass through {name} needs about {needed:,.1f} GB here, but only {allowed:,.1f} GB may be used: enter "
    "fewer or shorter sentences, or raise INSPECTOR_WORKER_MB."
)
# What the model is asked, as the start of a sentence
ASKED = {
    "causal_lm": "The model predicts every token from those before it",
    "seq2seq_lm": "The decoder reproduces the encoder's input, token by token",
    "masked_lm": "15 % of the ordinary tokens were replaced by {mask}, and the model predicts them",
}
STARTED_WITH_PADDING = " The decoder starts with padding, so its look-up reads that row as well."
ON_THE_RIGHT = (
    "The tokenizer pads on the left, but this measurement pads on the right: with padding before a sentence, a model "
    "may count its positions from the padding, and a causal one would predict the first token from padding."
)
NO_CONTROL = "The control with a fresh model was left out. {why}"


def asked(how: str, positions: int, padding: int) -> str:
    """What the loss was taken over."""
    return f"{how}: {plural(positions, 'position')}, plus {padding:,} of padding, whose labels are ignored."


def averaged(sentences: int, positions: int, reader: str) -> str:
    """What the means were taken over."""
    return (
        f"{plural(sentences, 'sentence')} padded together to {plural(positions, 'position')}; the {reader} reads them "
        "with their attention mask, so only the averaging differs."
    )
