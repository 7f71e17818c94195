"""Choose the head that is run: the one that was asked for, or the one that config.json names."""

from __future__ import annotations

from inspector.analyses.heads import words
from inspector.analyses.heads.result import default_head, named_head
from inspector.errors import NotInCheckpointError
from inspector.models.build import TASKS, task_class
from inspector.models.checkpoint import StagedCheckpoint
from inspector.results.checkpoint import HEADS


def choose_head(checkpoint: StagedCheckpoint, wanted: str | None) -> tuple[str, list[str]]:
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
    return chosen, [words.INSTEAD_OF.format(named=architecture, shown=TASKS[chosen][1])]


def _absent(checkpoint: StagedCheckpoint, what: str, present: list[str]) -> str:
    if not present and checkpoint.config_values.get("is_encoder_decoder"):
        task_class(checkpoint.config, "seq2seq_lm")  # says it where the decoder cannot be read either
        return words.ENCODER_DECODER.format(name=checkpoint.name)
    return words.no_head(checkpoint.name, what, [TASKS[head][1] for head in present])
