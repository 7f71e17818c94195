"""What was measured on the sentences, and why nothing was."""

from __future__ import annotations

NO_ROW = "There is no row that could fill up a batch, so nothing was measured."
NO_CONFIG = "{name} has no config.json, so no model can be run."
NO_TOKENIZER = "There is no tokenizer, so no text can be read and nothing was measured."
NO_TEXT = "Enter a text, one sentence per line, to measure it."
NO_HEAD = (
    "{name} has no language-model head, so it has no loss that could push on a row: nothing was measured, since a "
    "random head's gradient would mean nothing."
)
NOT_IN_ONE_PLACE = (
    "A backward pass needs all weights of {name} in one place, and they do not fit in one: choose another device, or "
    "set INSPECTOR_MODEL_MB higher."
)
NOT_SHARED = (
    "The encoder and the decoder of {name} look tokens up in matrices of their own, and the shared one is not used: "
    "nothing was measured."
)
NO_MASK = "The tokenizer of {name} has no mask token, so its loss cannot be asked for."
NOTHING_ASKED = "The sentences hold no token that the loss could ask for: write longer ones."
DOES_NOT_RUN = "The loss of {model} does not run on these sentences alone ({error}): nothing was measured."
TOO_LARGE = (
    "A backward pass through {name} needs about {needed:,.1f} GB here, and {allowed:,.1f} GB may be used: give fewer "
    "or shorter sentences, or set INSPECTOR_WORKER_MB higher."
)
# What the model is asked, as the start of a sentence
ASKED = {
    "causal_lm": "Every token is to be guessed from those before it",
    "seq2seq_lm": "The decoder is to write what the encoder reads, token by token",
    "masked_lm": "15 % of the ordinary tokens were replaced by {mask} and are to be guessed",
}
STARTED_WITH_PADDING = " The decoder is started with padding, so its look-up reads that row as well."
NO_CONTROL = "The control with a fresh model was left out. {why}"


def asked(how: str, positions: int, padding: int) -> str:
    """What the loss was taken over."""
    return f"{how}: {positions:,} positions, beside {padding:,} of padding, whose labels are ignored."


def averaged(sentences: int, positions: int, reader: str) -> str:
    """What the means were taken over."""
    return (
        f"{sentences:,} sentences padded together to {positions:,} positions; the {reader} reads them with their "
        "attention mask, so only the averaging differs."
    )
