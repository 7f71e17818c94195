"""Predict masked tokens with the checkpoint's own head, or say that it has none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd
import torch

from inspector.analyses import Progress
from inspector.analyses.embeddings import find_row
from inspector.errors import NotInCheckpointError, RequestError
from inspector.models.checkpoint import Checkpoint
from inspector.models.ladder import build_ladder
from inspector.models.running import Loaded, forward, memory_guard
from inspector.models.tokens import Encoded, Tokens
from inspector.results import Joint, Mask, Prediction

LARGEST_K = 1_000
BEAM = 5  # joint answers kept
LARGEST_JOINT = 12  # masks up to which a joint answer is searched


def predict(
    checkpoint: Checkpoint,
    *,
    progress: Progress,
    text: str,
    k: int = 10,
    targets: Sequence[str] = (),
    device: str = "auto",
    dtype: str = "auto",
) -> Prediction:
    """Fill every mask of a text.

    Args:
        checkpoint: With a masked-LM head.
        progress: Told what is being done.
        text: With the tokenizer's mask token one or more times.
        k: Tokens for each mask, 1..1000.
        targets: Rank these tokens alone; probabilities stay those of the whole vocabulary.
        device: "auto", "cpu", "cuda" or "mps".
        dtype: "auto", "float32", "bfloat16" or "float16".

    Returns:
        For each mask its likeliest tokens, every other mask left open; and the likeliest joint
        answers, found by filling masks from left to right with a beam of five.

    Raises:
        NotInCheckpointError: If there is no masked-LM head, no tokenizer or no mask token.
        RequestError: If the text has no mask or does not fit the model.
    """
    if not 1 <= k <= LARGEST_K:
        raise RequestError(f"k is {k}: ask for 1 to {LARGEST_K:,} tokens.")
    _require_head(checkpoint)
    tokens = checkpoint.require_tokens()
    mask_token, mask_id = tokens.role("mask")
    if mask_token is None or mask_id is None:
        raise NotInCheckpointError(
            f"The tokenizer of {checkpoint.name} has no mask token: nothing can be masked."
        )
    encoded = tokens.encode(text)
    checkpoint.check_ids(encoded.ids)
    positions = tuple(place for place, index in enumerate(encoded.ids) if index == mask_id)
    if not positions:
        raise RequestError(f"The text has no {mask_token}: write it where a word is to be guessed.")
    wanted = [find_row(checkpoint, target, checkpoint.embedding.shape[0]) for target in targets]
    progress(None, "Loading the model")
    loaded = checkpoint.load("masked_lm", device=device, dtype=dtype)  # type: ignore[arg-type]
    progress(None, "Running the model")
    reader = _Reader(checkpoint, loaded, encoded, positions)
    logits, milliseconds = reader.logits(torch.tensor([encoded.ids]), positions)
    warnings = []
    if not torch.isfinite(logits).all():
        warnings.append(
            f"{checkpoint.name} answers with NaN or infinity here: its weights are damaged, and "
            "no ranking can be read from them."
        )
    joint: tuple[Joint, ...] = ()
    if len(positions) <= LARGEST_JOINT:
        joint = reader.joint(tokens, logits[0])
    else:
        warnings.append(f"Joint answers are searched for up to {LARGEST_JOINT} masks.")
    return Prediction(
        device=str(loaded.device),
        dtype=str(loaded.dtype).removeprefix("torch."),
        milliseconds=milliseconds,
        tokens=encoded.tokens,
        masks=tuple(
            Mask(position, _top(scores, tokens, k, wanted))
            for position, scores in zip(positions, logits[0], strict=True)
        ),
        joint=joint,
        warnings=tuple(warnings),
    )


def _require_head(checkpoint: Checkpoint) -> None:
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


@dataclass(frozen=True, slots=True)
class _Reader:
    """A text with masks and the model that reads it."""

    checkpoint: Checkpoint
    loaded: Loaded
    encoded: Encoded
    positions: tuple[int, ...]  # of the masks

    def logits(self, ids: torch.Tensor, positions: Sequence[int]) -> tuple[torch.Tensor, float]:
        """Logits at some positions of (batch, positions) ids.

        Where the head's modules are known it runs on those positions alone.

        Returns:
            (batch, positions, vocab) in float32, and the milliseconds of the base model.
        """
        type_ids = torch.tensor([self.encoded.type_ids]).expand(ids.shape)
        family = self.checkpoint.family
        ladder = build_ladder(self.loaded.model, family) if family else None
        if ladder is None:
            run = forward(self.loaded, ids, type_ids, head=True)
            if run.logits is None:
                raise NotInCheckpointError(f"{self.checkpoint.name} answers without logits.")
            return run.logits[:, positions].float(), run.milliseconds
        run = forward(self.loaded, ids, type_ids, head=False)
        with memory_guard(self.loaded), torch.inference_mode():
            hidden = run.hidden_states[-1][:, positions]
            logits = ladder.logits(hidden)
        return logits.float(), run.milliseconds

    def joint(self, tokens: Tokens, first: torch.Tensor) -> tuple[Joint, ...]:
        """Fill the masks from left to right, each given the earlier ones, keeping the best five.

        Args:
            tokens: For the answer's text.
            first: Logits with all masks open, (masks, vocab).
        """
        ids = torch.tensor([self.encoded.ids])
        totals = torch.zeros(1)
        log_probability = first[:1].log_softmax(dim=1).cpu()
        for number, position in enumerate(self.positions):
            if number:
                logits, _ = self.logits(ids, [position])
                log_probability = logits[:, 0].log_softmax(dim=1).cpu()
            sums = totals[:, None] + log_probability
            best = sums.flatten().topk(min(BEAM, sums.numel()))
            ids = ids[best.indices // sums.shape[1]].clone()
            ids[:, position] = best.indices % sums.shape[1]
            totals = best.values
        return tuple(
            Joint(tuple(tokens.visible(int(row[place])) for place in self.positions), total)
            for row, total in zip(ids, totals.tolist(), strict=True)
        )


def _top(scores: torch.Tensor, tokens: Tokens, k: int, wanted: Sequence[int]) -> pd.DataFrame:
    """The k likeliest tokens of one mask, or the wanted ones, likeliest first."""
    log_probability = scores.log_softmax(dim=0)
    if wanted:
        rows = torch.tensor(sorted(set(wanted), key=lambda row: -scores[row].item()))
    else:
        rows = scores.topk(min(k, len(scores))).indices.cpu()
    return pd.DataFrame(
        {
            "token": [tokens.visible(row) for row in rows.tolist()],
            "token_id": rows.numpy(),
            "probability": log_probability[rows.to(scores.device)].exp().cpu().numpy(),
            "logit": scores[rows.to(scores.device)].cpu().numpy(),
        }
    )
