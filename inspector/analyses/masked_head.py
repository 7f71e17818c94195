"""What every question to a masked-LM head needs: the head, a mask token, finite answers."""

from __future__ import annotations

from inspector.errors import NotInCheckpointError
from inspector.models.checkpoint import Checkpoint


def require_head(checkpoint: Checkpoint) -> None:
    """Refuse a checkpoint without a masked-LM head.

    Raises:
        NotInCheckpointError: If the file lacks any weight of the head.
    """
    if checkpoint.heads["masked_lm"] == "present":
        return
    if checkpoint.heads["causal_lm"] == "present":
        raise NotInCheckpointError(
            f"{checkpoint.name} is a causal language model: it predicts the next token and has no "
            "masked-LM head. Its Vocabulary lens shows what it predicts at every position."
        )
    raise NotInCheckpointError(
        f"{checkpoint.name} has no MLM head: its file holds the encoder alone, and a head filled "
        "with random numbers would answer nonsense, so nothing is predicted. Open the checkpoint "
        "that it was pre-trained as, or look at its Embeddings and Vocabulary lens."
    )


def require_mask(checkpoint: Checkpoint) -> tuple[str, int]:
    """The mask token as it is typed, and its id.

    Raises:
        NotInCheckpointError: If the checkpoint has no tokenizer, or that has no mask token.
    """
    token, index = checkpoint.require_tokens().role("mask")
    if token is None or index is None:
        raise NotInCheckpointError(
            f"The tokenizer of {checkpoint.name} has no mask token: nothing can be masked."
        )
    return token, index


def not_finite(checkpoint: Checkpoint) -> str:
    """The warning that answers are NaN or infinite."""
    return (
        f"{checkpoint.name} answers with NaN or infinity here: its weights are damaged, and no "
        "ranking can be read from them."
    )
