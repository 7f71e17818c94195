"""What does pre-training ask of the model: masked tokens, the next sentence, and their losses."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any

import pandas as pd
import torch
from torch.nn.functional import cross_entropy

from inspector.analyses.heads.result import KEPT, MASKED, NOT_CHOSEN, REPLACED
from inspector.analyses.pretraining.request import PretrainRequest
from inspector.analyses.pretraining.result import Pretraining
from inspector.analyses.pretraining.words import NO_NEXT_SENTENCE
from inspector.errors import NotInCheckpointError, RequestError
from inspector.models.checkpoint import StagedCheckpoint
from inspector.models.damage import damaged
from inspector.models.inputs import IGNORED, HeadInput, HeadRun, arguments, encode_all, run_head
from inspector.models.loading import load
from inspector.models.running import Loaded
from inspector.progress import Progress
from inspector.request import answers

# Of the chosen tokens, 80 % become [MASK], 10 % a random token, 10 % stay (Devlin et al. 2019).
MASK_SHARE, RANDOM_SHARE = 0.8, 0.1
NEXT_LABEL = "next_sentence_label"


@dataclass(frozen=True, slots=True)
class Masking:
    """What masking made of one sequence; lists are (positions,)."""

    what: list[str]  # MASKED, REPLACED, KEPT or NOT_CHOSEN
    before: list[int]
    after: list[int]
    labels: list[int]  # the id before, or IGNORED


@answers(PretrainRequest)
def pretrain(checkpoint: StagedCheckpoint, request: PretrainRequest, *, progress: Progress) -> Pretraining:
    """Mask a text as BERT's pre-training does, and take the losses of its objective.

    Args:
        checkpoint: With a masked-LM head; with a next-sentence head too, both are asked.
        request: The texts, the next-sentence label, and how many tokens are chosen: at least one.

    Raises:
        NotInCheckpointError: If there is no masked-LM head, no tokenizer or no mask token.
        CheckpointError: If the model answers with NaN or infinity.
        RequestError: If there is nothing to mask in the text.
    """
    _require_head(checkpoint)
    text, pair = request.text, request.pair
    if not text.strip():
        raise RequestError("There is no text: type a sentence to mask.", option="text")
    both = checkpoint.heads["next_sentence"] == "present"
    asked = both and bool(pair.strip())
    given = encode_all(checkpoint, [(text, pair if pair.strip() else None)])
    masking = mask_tokens(checkpoint, given, share=request.share, seed=request.seed)
    task = "pretraining" if both else "masked_lm"
    loaded = load(checkpoint, task, device=request.device, dtype=request.dtype, progress=progress)
    progress(None, "Running the model")
    label = (0 if request.follows else 1) if asked else None
    run = _run(loaded, given, masking, label)
    if run.broken():
        raise damaged(checkpoint.name, loaded)
    warnings = list(loaded.notes)
    if pair.strip() and not both:
        warnings.append(NO_NEXT_SENTENCE.format(name=checkpoint.name))
    logits = run.fields["prediction_logits" if both else "logits"][0]
    tokens = _frame(checkpoint, masking, logits)
    kinds = tokens["what"].tolist()
    next_logits = run.fields["seq_relationship_logits"] if asked else None
    return Pretraining(
        architecture=type(loaded.model).__name__,
        share=request.share,
        seed=request.seed,
        tokens=tokens,
        chosen=len(kinds) - kinds.count(NOT_CHOSEN),
        counts={kind: kinds.count(kind) for kind in (MASKED, REPLACED, KEPT)},
        masked_lm_loss=cross_entropy(logits, torch.tensor(masking.labels)).item(),
        next_sentence_label=label,
        next_sentence_loss=None if next_logits is None else cross_entropy(next_logits, torch.tensor([label])).item(),
        is_next=None if next_logits is None else next_logits[0].softmax(dim=0)[0].item(),
        loss=run.fields["loss"].item(),
        output=run.output,
        device=str(loaded.device),
        dtype=loaded.precision,
        warnings=tuple(warnings),
    )


def mask_tokens(checkpoint: StagedCheckpoint, given: HeadInput, *, share: float, seed: int) -> Masking:
    """Choose ordinary tokens at random, and mask, replace or keep each.

    Raises:
        NotInCheckpointError: If the tokenizer has no mask token.
        RequestError: If the text has no ordinary token.
    """
    tokens = checkpoint.require_tokens()
    mask = tokens.role("mask")[1]
    if mask is None:
        raise NotInCheckpointError(f"The tokenizer of {checkpoint.name} has no mask token: nothing can be masked.")
    encoding = given.encodings[0]
    before = list(encoding.ids)
    ordinary = tokens.ordinary(encoding)
    if not ordinary:
        raise RequestError("The text has no ordinary token to mask: type a word or a sentence.")
    draw = torch.Generator().manual_seed(seed)
    count = max(1, round(share * len(ordinary)))
    order = torch.randperm(len(ordinary), generator=draw)[:count]
    chosen = sorted(ordinary[place] for place in order.tolist())
    fates = torch.rand(count, generator=draw).tolist()
    words = torch.randint(min(tokens.size, checkpoint.embedding.shape[0]), (count,), generator=draw).tolist()
    what, after, labels = [NOT_CHOSEN] * len(before), before.copy(), [IGNORED] * len(before)
    for place, fate, word in zip(chosen, fates, words, strict=True):
        labels[place] = before[place]
        what[place], after[place] = _fate(fate, before[place], mask, word)
    return Masking(what, before, after, labels)


def _fate(drawn: float, before: int, mask: int, word: int) -> tuple[str, int]:
    """What becomes of a chosen token, for a number drawn from 0..1."""
    if drawn < MASK_SHARE:
        return MASKED, mask
    if drawn < MASK_SHARE + RANDOM_SHARE:
        return REPLACED, word
    return KEPT, before


def _require_head(checkpoint: StagedCheckpoint) -> None:
    checkpoint.refuse_adapter()
    if checkpoint.heads["masked_lm"] != "present":
        raise NotInCheckpointError(
            f"{checkpoint.name} has no masked-LM head: its file lacks the weights for one, and a head filled with "
            "random numbers would return nonsense, so there is no pre-training loss to show."
        )


def _run(loaded: Loaded, given: HeadInput, masking: Masking, label: int | None) -> HeadRun:
    inputs: dict[str, Any] = arguments(loaded, given)
    inputs["input_ids"] = torch.tensor([masking.after], device=loaded.device)
    inputs["labels"] = torch.tensor([masking.labels], device=loaded.device)
    if label is not None:
        inputs[NEXT_LABEL] = torch.tensor([label], device=loaded.device)
        return run_head(loaded, inputs)
    if NEXT_LABEL not in inspect.signature(loaded.model.forward).parameters:
        return run_head(loaded, inputs)
    run = run_head(loaded, inputs)  # a class with both heads has no loss for one label alone
    logits = run.fields["prediction_logits"]
    return run.with_loss(cross_entropy(logits[0], torch.tensor(masking.labels)))


def _frame(checkpoint: StagedCheckpoint, masking: Masking, logits: torch.Tensor) -> pd.DataFrame:
    """The labels table; see results.Pretraining.tokens."""
    tokens = checkpoint.require_tokens()
    log_probability = logits.log_softmax(dim=1)
    best = logits.argmax(dim=1).tolist()
    rows = []
    for place, label in enumerate(masking.labels):
        ignored = label == IGNORED
        score = float("nan") if ignored else float(log_probability[place, label])
        rows.append(
            {
                "position": place,
                "before_id": masking.before[place],
                "before": tokens.visible(masking.before[place]),
                "what": masking.what[place],
                "after_id": masking.after[place],
                "after": tokens.visible(masking.after[place]),
                "label": label,
                "loss": -score,
                "probability": float(torch.tensor(score).exp()),
                "prediction": "" if ignored else tokens.visible(best[place]),
            }
        )
    return pd.DataFrame(rows)
