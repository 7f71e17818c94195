"""Choose the head that is run: the one that was asked for, or the one that config.json names."""

from __future__ import annotations

from inspector.analyses.heads.result import default_head, named_head
from inspector.errors import NotInCheckpointError
from inspector.models.build import TASKS, task_class
from inspector.models.checkpoint import Checkpoint
from inspector.results.checkpoint import HEADS

EXPECTED = {
    "masked_lm": "a sentence",
    "causal_lm": "how a text begins",
    "next_sentence": "a sentence, and a second one that may follow it",
    "sequence_classification": "a text",
    "token_classification": "a sentence",
    "question_answering": "a question, and a second text that holds the answer",
    "multiple_choice": "how a text begins, and its endings",
}


def choose_head(checkpoint: Checkpoint, wanted: str | None) -> tuple[str, list[str]]:
    """Choose a head whose weights the file holds.

    Args:
        wanted: One of HEADS, or None.

    Returns:
        The head, and a warning where config.json names one that the file lacks.

    Raises:
        NotInCheckpointError: If the file lacks its weights, or those of every head.
    """
    present = [head for head in HEADS if checkpoint.heads[head] == "present"]
    if wanted is not None:
        if wanted not in present:
            raise NotInCheckpointError(_absent(checkpoint, TASKS[wanted][1], present))
        return wanted, []
    architecture = str(next(iter(checkpoint.config_values.get("architectures") or ()), ""))
    chosen = default_head(architecture, checkpoint.heads)
    if chosen is None:
        raise NotInCheckpointError(_absent(checkpoint, "task head", present))
    named = named_head(architecture)
    if named in (None, chosen):
        return chosen, []
    return chosen, [
        f"config.json names {architecture}, and the file lacks that head's weights: the {TASKS[chosen][1]} is shown, "
        "which it holds."
    ]


def _absent(checkpoint: Checkpoint, what: str, present: list[str]) -> str:
    if not present and checkpoint.config_values.get("is_encoder_decoder"):
        task_class(checkpoint.config, "seq2seq_lm")  # says it where the decoder cannot be read either
        return (
            f"{checkpoint.name} is an encoder-decoder model, and its language-model head is not run here: the lens "
            "reads its decoder."
        )
    names = " and ".join(TASKS[head][1] for head in present)
    instead = f"It holds a {names}" if names else "Open a checkpoint that was trained for a task"
    return (
        f"{checkpoint.name} has no {what}: its file lacks the weights of one, and a head filled with random numbers "
        f"would answer nonsense, so none is run. {instead}."
    )
