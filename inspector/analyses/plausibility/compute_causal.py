"""Judge every token by what a causal model predicts from the tokens before it: one pass over the text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from tokenizers import Encoding

from inspector.analyses.plausibility.compute_reading import (
    TokenReading,
    Totals,
    alternative_frame,
    judge,
    token_frame,
    warnings,
)
from inspector.analyses.plausibility.request import PlausibilityRequest
from inspector.analyses.plausibility.result import Plausibility
from inspector.errors import NotInCheckpointError, RequestError
from inspector.models.checkpoint import StagedCheckpoint
from inspector.models.loading import load
from inspector.models.reading.readout import block_states
from inspector.models.running import LARGE_LOGITS, Forward, Loaded, forward, memory_guard
from inspector.progress import Progress

ROUNDING = 8  # units in the last place by which a state may differ from its twin in the same pass


def judge_causal(
    checkpoint: StagedCheckpoint,
    request: PlausibilityRequest,
    *,
    progress: Progress,
    by_blocks_from: int = LARGE_LOGITS,
) -> Plausibility:
    """Judge token i by the model's own logits at position i - 1.

    Every token but the first is judged, special ones too, as in the loss of transformers, whose exponential is
    the perplexity.

    Args:
        checkpoint: With the head of a causal language model.
        request: A text of at least two tokens.
        by_blocks_from: Numbers, from which on logits are not all made at once where that can be.

    Raises:
        NotInCheckpointError: If there is no tokenizer, or the model sees later tokens.
        RequestError: If nothing is to be judged, or the text does not fit the model.
    """
    if request.by != PlausibilityRequest.by:
        raise RequestError(
            f"Masked unit applies only to masked language models: {checkpoint.name} reads a text from left to right "
            "and masks nothing.",
            option="by",
        )
    tokens = checkpoint.require_tokens()
    encoding = tokens.encoding(request.text)
    checkpoint.check_ids(tuple(encoding.ids), encoding.type_ids)
    if len(encoding.ids) == 1:
        raise RequestError(
            "The text has one token, but a causal language model judges each token from those before it: type more.",
            option="text",
        )
    loaded = load(checkpoint, "causal_lm", device=request.device, dtype=request.dtype, progress=progress)
    progress(None, "Running the model")
    run = _run(checkpoint, loaded, encoding, by_blocks_from)
    readings: dict[int, TokenReading] = {}
    size = block_states(checkpoint.embedding.shape[0], loaded.device)
    for found in _read(loaded, run, encoding.ids, size, k=request.k):
        readings |= found
        progress(len(readings) / (len(encoding.ids) - 1), f"Judging {len(encoding.ids) - 1:,} tokens")
    totals = Totals.of(readings, checkpoint, loaded)
    marks = tokens.special_ids - {tokens.role("unk")[1]}
    special = [
        bool(added) or index in marks for added, index in zip(encoding.special_tokens_mask, encoding.ids, strict=True)
    ]
    return Plausibility(
        text=request.text,
        by=request.by,
        device=str(loaded.device),
        dtype=loaded.precision,
        milliseconds=run.milliseconds,
        tokens=token_frame(tokens, encoding, readings, special=special),
        judged=len(readings),
        pseudo_log_likelihood=None,
        pseudo_perplexity=None,
        method="causal",
        log_likelihood=totals.log_likelihood,
        perplexity=totals.perplexity,
        alternatives=alternative_frame(tokens, readings),
        warnings=(*loaded.notes, *checkpoint.length_notes(len(encoding.ids)), *warnings(tokens, encoding, readings)),
    )


def _run(checkpoint: StagedCheckpoint, loaded: Loaded, encoding: Encoding, by_blocks_from: int) -> Forward:
    """Run the text once.

    Of a family that is not in the table, nobody knows that it reads from left to right. A second line in the same
    pass, with another last token, shows whether what comes later changes what is before.

    Raises:
        NotInCheckpointError: If it does.
    """
    ids = torch.tensor([encoding.ids])
    type_ids = torch.tensor([encoding.type_ids])
    if checkpoint.family is None:
        changed = ids.clone()
        changed[0, -1] = (changed[0, -1] + 1) % checkpoint.embedding.shape[0]
        ids, type_ids = torch.cat([ids, changed]), torch.cat([type_ids, type_ids])
    run = forward(loaded, ids, type_ids, head=True, by_blocks_from=by_blocks_from)
    if len(ids) > 1 and _differs(run.hidden_states[-1][:, :-1], loaded.dtype):
        raise NotInCheckpointError(
            f"{checkpoint.name} reads later tokens before it predicts a token "
            f"({checkpoint.config_values.get('model_type')} models attend in both directions), so the text has no "
            "perplexity."
        )
    return run


def _differs(states: torch.Tensor, dtype: torch.dtype) -> bool:
    """Whether two lines of states, (2, positions, d_model), differ by more than rounding."""
    with torch.inference_mode():
        one, other = states.float()
        apart = torch.linalg.vector_norm(one - other, dim=1) / torch.linalg.vector_norm(one, dim=1)
        return bool((apart > max(1e-4, ROUNDING * torch.finfo(dtype).eps)).any().item())


def _read(loaded: Loaded, run: Forward, ids: Sequence[int], size: int, *, k: int) -> Iterator[dict[int, TokenReading]]:
    """Read the model's own logits a block of positions at a time: readings of the tokens after them."""
    for begin in range(0, len(ids) - 1, size):
        places = range(begin + 1, min(begin + 1 + size, len(ids)))
        with memory_guard(loaded), torch.inference_mode():
            logits: Any = run.logits_of(slice(places.start - 1, places.stop - 1))
            found = judge(logits[0].to(loaded.device, torch.float32, copy=True), [ids[place] for place in places], k=k)
        yield dict(zip(places, found, strict=True))
