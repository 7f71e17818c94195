"""Read every layer's hidden state as tokens: dot product, cosine, and the head's true logits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch

from inspector.analyses import Progress
from inspector.errors import NotInCheckpointError, RequestError
from inspector.models.checkpoint import Checkpoint
from inspector.models.running import Forward, Loaded, apply_head, forward, memory_guard
from inspector.results import Lens

LARGEST_K = 100
LOGITS = "logits"
NOTES = {
    "dot": "h · eᵢ: the hidden state times every input embedding, nothing else.",
    "cosine": "The same with both lengths divided out: direction alone.",
    LOGITS: "What the model's own head answers: its transform or final norm, then the unembedding "
    "and its bias. At the last layer these are the model's logits.",
}


@dataclass(frozen=True, slots=True)
class _Ladder:
    """All that turns one layer's hidden states into scores."""

    loaded: Loaded
    checkpoint: Checkpoint
    embedding: torch.Tensor | None  # (vocab, d_model) in float32; None where sizes differ
    norms: torch.Tensor | None  # (vocab,)
    finite: torch.Tensor  # (vocab,) of bool
    has_head: bool

    @property
    def rungs(self) -> tuple[str, ...]:
        geometric = ("dot", "cosine") if self.embedding is not None else ()
        return (*geometric, *((LOGITS,) if self.has_head else ()))


def lens(
    checkpoint: Checkpoint,
    *,
    progress: Progress,
    text: str,
    k: int = 5,
    layers: Sequence[int] | None = None,
    device: str = "auto",
    dtype: str = "auto",
) -> Lens:
    """Ask at every layer and position which tokens the hidden state is nearest to.

    The true logits of an inner layer are the logit lens (nostalgebraist 2020): the head of the last
    layer applied early. "dot" and "cosine" compare with the *input* embeddings.

    Args:
        checkpoint: With weights for at least the base model.
        progress: Told what is being done.
        text: What the model reads.
        k: Tokens kept for each cell, 1..100.
        layers: Which hidden states, 0 = embeddings; None: all.
        device: "auto", "cpu", "cuda" or "mps".
        dtype: "auto", "float32", "bfloat16" or "float16".

    Raises:
        NotInCheckpointError: If the file lacks the base model or a tokenizer.
        RequestError: If a parameter does not fit.
    """
    if not 1 <= k <= LARGEST_K:
        raise RequestError(f"k is {k}: ask for 1 to {LARGEST_K} tokens.")
    encoded = checkpoint.require_tokens().encode(text)
    checkpoint.check_ids(encoded.ids)
    task = _task(checkpoint)
    progress(None, "Loading the model")
    loaded = checkpoint.load(task, device=device, dtype=dtype)  # type: ignore[arg-type]
    ladder, warnings = _ladder(checkpoint, loaded, has_head=task != "base")
    progress(None, "Running the model")
    run = forward(
        loaded,
        torch.tensor([encoded.ids]),
        torch.tensor([encoded.type_ids]),
        head=ladder.has_head,
        every_layer=True,
    )
    chosen = _chosen(layers, len(run.hidden_states))
    cells, error, largest = [], None, 1.0
    for number, layer in enumerate(chosen):
        progress(number / len(chosen), f"Layer {layer}")
        with memory_guard(loaded), torch.inference_mode():
            scores = _scores(ladder, run, layer)
            cells += [_top(values, rung, layer, k) for rung, values in scores.items()]
        if run.logits is not None and layer == len(run.hidden_states) - 1 and LOGITS in scores:
            truth = run.logits[0].float()
            mine = scores[LOGITS][:, : truth.shape[1]]
            error = (mine - truth).masked_fill(~torch.isfinite(mine), 0).abs().max().item()
            largest = max(1.0, truth[torch.isfinite(truth)].abs().max().item())
    return Lens(
        tokens=encoded.tokens,
        rungs=ladder.rungs,
        cells=_name(pd.concat(cells, ignore_index=True), checkpoint),
        max_abs_error=error,
        warnings=tuple(warnings),
        rung_notes={rung: NOTES[rung] for rung in ladder.rungs},
        layers=("embeddings", *(str(layer) for layer in range(1, len(run.hidden_states)))),
        tolerance=None if error is None else 8 * torch.finfo(loaded.dtype).eps * largest,
        device=str(loaded.device),
        dtype=str(loaded.dtype).removeprefix("torch."),
        milliseconds=run.milliseconds,
    )


def _task(checkpoint: Checkpoint) -> str:
    """The head to climb to, or the base model alone."""
    if checkpoint.config_values.get("is_encoder_decoder"):
        raise NotInCheckpointError(
            f"{checkpoint.name} is an encoder–decoder model, whose decoder the lens does not read "
            "yet: Sharing and Embeddings work."
        )
    if checkpoint.family is None:
        return "base"
    present = [task for task in ("masked_lm", "causal_lm") if checkpoint.heads[task] == "present"]
    return present[0] if present else "base"


def _ladder(checkpoint: Checkpoint, loaded: Loaded, *, has_head: bool) -> tuple[_Ladder, list[str]]:
    embedding = loaded.input_embedding.float()
    finite = torch.isfinite(embedding).all(dim=1)
    warnings = []
    if not has_head:
        warnings.append(
            f"{checkpoint.name} has no language-model head that this lens knows, so there are no "
            "logits: a random head would answer nonsense."
        )
    if not finite.all():
        warnings.append(
            f"{int((~finite).sum())} embedding rows hold NaN or infinity and are left out, such as "
            f"{checkpoint.require_tokens().visible(int((~finite).nonzero()[0]))}."
        )
    width = getattr(loaded.model.config, "hidden_size", embedding.shape[1])
    if width != embedding.shape[1]:
        warnings.append(
            f"Hidden states are {width} wide and embeddings {embedding.shape[1]}: their dot "
            "product and cosine have no meaning before the head's transform, and are left out."
        )
        if not has_head:
            raise NotInCheckpointError(" ".join(warnings))
        return _Ladder(loaded, checkpoint, None, None, finite, has_head), warnings
    norms = torch.linalg.vector_norm(embedding, dim=1)
    return _Ladder(loaded, checkpoint, embedding, norms, finite, has_head), warnings


def _chosen(layers: Sequence[int] | None, count: int) -> list[int]:
    chosen = sorted(set(layers)) if layers else list(range(count))
    if outside := [layer for layer in chosen if not 0 <= layer < count]:
        raise RequestError(
            f"There is no layer {outside[0]}: this model has 0 (embeddings) to {count - 1}."
        )
    return chosen


def _scores(ladder: _Ladder, run: Forward, layer: int) -> Mapping[str, torch.Tensor]:
    """Scores of every token at one layer: rung -> (positions, vocab) in float32."""
    hidden = run.hidden_states[layer][0]
    scores: dict[str, torch.Tensor] = {}
    if ladder.embedding is not None and ladder.norms is not None:
        dots = hidden.float() @ ladder.embedding.T
        lengths = torch.linalg.vector_norm(hidden.float(), dim=1, keepdim=True)
        scores["dot"] = dots
        scores["cosine"] = dots / (lengths * ladder.norms).clamp_min(1e-12)
    if ladder.has_head and ladder.checkpoint.family:
        last = layer == len(run.hidden_states) - 1
        logits = apply_head(ladder.loaded, ladder.checkpoint.family, hidden[None], normed=last)
        scores[LOGITS] = logits[0].float()
    for values in scores.values():
        rows = min(values.shape[1], len(ladder.finite))
        values[:, :rows].masked_fill_(~ladder.finite[:rows], -torch.inf)
    return scores


def _top(values: torch.Tensor, rung: str, layer: int, k: int) -> pd.DataFrame:
    positions, vocab = values.shape
    best = values.topk(min(k, vocab), dim=1)
    kept = best.values.shape[1]
    probability = torch.full_like(best.values, torch.nan)
    if rung != "cosine":
        probability = (best.values - torch.logsumexp(values, dim=1, keepdim=True)).exp()
    return pd.DataFrame(
        {
            "layer": layer,
            "position": np.repeat(np.arange(positions), kept),
            "rung": rung,
            "rank": np.tile(np.arange(kept), positions),
            "token_id": best.indices.flatten().cpu().numpy(),
            "score": best.values.flatten().cpu().numpy(),
            "probability": probability.flatten().cpu().numpy(),
        }
    )


def _name(cells: pd.DataFrame, checkpoint: Checkpoint) -> pd.DataFrame:
    tokens = checkpoint.require_tokens()
    names = {index: tokens.visible(index) for index in cells["token_id"].unique().tolist()}
    cells.insert(4, "token", [names[index] for index in cells["token_id"].tolist()])
    return cells
