"""Words of the Task heads page."""

from __future__ import annotations

from collections.abc import Mapping

from inspector.analyses.heads.result import HeadAnswer
from inspector.analyses.overview.words import HEADS
from inspector.text import literal, shape_text

# head -> what each field of its output holds
FIELDS = {
    "masked_lm": {"logits": "one score per vocabulary token, at every position"},
    "causal_lm": {"logits": "one score per vocabulary token, at every position: the last one says what comes next"},
    "next_sentence": {"logits": "label 0: the second text follows; label 1: it does not"},
    "sequence_classification": {"logits": "one score per label"},
    "token_classification": {"logits": "one score per label, at every position"},
    "question_answering": {
        "start_logits": "how well an answer starts at each position",
        "end_logits": "how well an answer ends at each position",
    },
    "multiple_choice": {"logits": "one score per choice"},
}
AXES = {
    "masked_lm": "batch × positions × vocabulary",
    "causal_lm": "batch × positions × vocabulary",
    "next_sentence": "batch × 2",
    "sequence_classification": "batch × labels",
    "token_classification": "batch × positions × labels",
    "question_answering": "batch × positions",
    "multiple_choice": "batch × choices",
}
OTHER = "internal state, not an answer"
LABEL_KINDS = {
    "softmax": "One label is right: a softmax over the labels.",
    "sigmoid": "Each label for itself (problem_type is multi_label_classification): a sigmoid "
    "each, so that the scores need not sum to 100 %.",
    "regression": "A regression: the number itself, nothing applied. With one label and no "
    "problem_type, transformers' loss is the squared error; its pipeline would show the sigmoid "
    "of this number.",
}
ABSENT = "Not in this file, so not run: a head filled with random numbers would answer nonsense. It lacks: "
MASKING = """
Of the ordinary tokens, a share is **chosen** (15 % in BERT). Of the chosen ones 80 % become the
mask token, 10 % a random token and 10 % stay as they are (Devlin et al. 2019), so that the model
cannot trust what it sees. The **label** of a chosen token is its id before; every other position
has the label **-100**, which the loss ignores: special tokens, padding and all that was not chosen.
The masked-LM loss is the mean cross-entropy over the chosen tokens, the next-sentence loss that of
the two scores of the first position, and the objective is their **sum**. Both are in nats.
"""
CHOICES = (
    "Each ending follows the text in a sequence of its own. The sequences are padded to one length "
    "and go through the model together, as input_ids of shape {shape} (batch × choices × "
    "positions). The head gives each a score; a softmax over the choices makes them probabilities."
)
SPAN = (
    "Start and end each have a softmax over the second text's tokens{null}. A span's score is the "
    "product. A span is legal if it lies inside the second text, does not end before it starts, "
    "and has at most {longest} tokens."
)
BATCH = (
    "All sequences in a batch have the same length: shorter ones are padded on the {side}, and the "
    "model ignores the padding, where the attention mask is 0."
)


def absent_line(heads: Mapping[str, str]) -> str:
    """Name the heads that the file lacks; "" where there is none."""
    lacking = [HEADS[head][0] for head, state in heads.items() if state == "absent"]
    return f"{ABSENT}**{', '.join(lacking)}**." if lacking else ""


def output_rows(answer: HeadAnswer) -> str:
    """The output's fields and shapes as a Markdown table."""
    known = FIELDS[answer.head]
    rows = "\n".join(
        f"| {literal(name)} | {literal(shape_text(shape))} | {_axes(answer.head, name)} | {known.get(name, OTHER)} |"
        for name, shape in answer.output.items()
    )
    return f"| Field | Shape | Axes | What it holds |\n|---|---|---|---|\n{rows}"


def _axes(head: str, name: str) -> str:
    return AXES[head] if name in FIELDS[head] else "–"
