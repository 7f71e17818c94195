"""Follow the tokens of one hidden state up the ladder: what each step of the head does to them."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import torch

from inspector.analyses.ladder.request import LadderRequest
from inspector.analyses.ladder.result import Climb
from inspector.errors import RequestError
from inspector.models.checkpoint import StagedCheckpoint
from inspector.models.reading.frames import NO_SCORE
from inspector.models.reading.layers import choose_layers, layer_names
from inspector.models.reading.lens_run import LensRun, prepare
from inspector.models.reading.readout import Readout, read, top_tokens
from inspector.models.reading.scores import LOGITS, NOTES, step_names
from inspector.models.running import memory_guard
from inspector.progress import Progress
from inspector.request import answers


@answers(LadderRequest)
def climb(checkpoint: StagedCheckpoint, request: LadderRequest, *, progress: Progress) -> Climb:
    """Say how far each step moves the tokens that matter for one hidden state.

    The way goes from direction alone (cosine) over the norms of the embeddings (dot) and the head's
    own modules to the logits; h · eᵢ = |h| |eᵢ| cos, so cosine and dot rank alike exactly if all
    |eᵢ| are equal.

    Raises:
        NotInCheckpointError: If the file lacks the base model or a tokenizer.
        RequestError: If a parameter does not fit.
    """
    run = prepare(
        checkpoint,
        progress=progress,
        text=request.text,
        pins=request.pins,
        decoder_text=request.decoder_text,
        device=request.device,
        dtype=request.dtype,
    )
    count = len(run.forward.hidden_states)
    layer, position = request.layer, request.position
    layer = choose_layers([layer if layer >= 0 else count + layer], count, option="layer")[0]
    place = position if position >= 0 else len(run.tokens) + position
    if not 0 <= place < len(run.tokens):
        raise RequestError(
            f"There is no position {position}: this text has 0 to {len(run.tokens) - 1}.", option="position"
        )
    hidden = run.forward.hidden_states[layer][0, place : place + 1]
    with memory_guard(run.loaded), torch.inference_mode():
        ids, reads = _read_rungs(run, hidden, layer == count - 1, place, request.k)
        geometry = _geometry(run, hidden[0], ids, reads)
    tokens = checkpoint.require_tokens()
    names = {index: tokens.visible(index) for index in ids.tolist()}
    way = [(rung, step) for rung, step in step_names(run.scorer) if rung in reads]
    geometry.insert(0, "token", [names[index] for index in geometry["token_id"].tolist()])
    return Climb(
        layer=layer,
        position=place,
        token=run.tokens[place],
        rungs=tuple(rung for rung, _ in way),
        hidden_norm=torch.linalg.vector_norm(hidden.float()).item(),
        ranks=_ranks(way, reads, ids, names),
        geometry=geometry,
        warnings=run.warnings,
        layers=layer_names(count),
        rung_notes={rung: NOTES[rung] for rung, _ in way},
    )


def _read_rungs(
    run: LensRun, hidden: torch.Tensor, last: bool, place: int, k: int
) -> tuple[torch.Tensor, dict[str, Readout]]:
    """Tokens at the top of any step and pinned ones, ids ascending; and their place at each."""
    kept = {rung: scores.clone() for rung, scores in run.score(hidden, slice(place, place + 1), last=last)}
    tops = []
    for scores in kept.values():
        ids, best = top_tokens(scores, min(k, scores.shape[1]))
        tops.append(ids[best > NO_SCORE].cpu())
    ids = torch.cat([*tops, run.pins]).unique()
    reads = {
        rung: read(scores, k=1, pins=ids.to(scores.device), softmax=rung != "cosine") for rung, scores in kept.items()
    }
    return ids, reads


def _ranks(
    way: Sequence[tuple[str, str]], reads: dict[str, Readout], ids: torch.Tensor, names: dict[int, str]
) -> pd.DataFrame:
    rows = []
    for place, index in enumerate(ids.tolist()):
        before: int | None = None
        for rung, step in way:
            found = reads[rung]
            rank = int(found.pinned_ranks[0, place])
            rows.append(
                {
                    "token": names[index],
                    "token_id": index,
                    "rung": rung,
                    "rank": rank,
                    "score": float(found.pinned_scores[0, place]),
                    "probability": float(found.pinned_probabilities[0, place]),
                    "step": step,
                    "change": 0 if before is None else before - rank,
                }
            )
            before = rank
    return pd.DataFrame(rows)


def _geometry(run: LensRun, hidden: torch.Tensor, ids: torch.Tensor, reads: dict[str, Readout]) -> pd.DataFrame:
    embedding = run.loaded.input_embedding[ids.to(hidden.device)].float()
    norms = torch.linalg.vector_norm(embedding, dim=1)
    nothing = torch.full((len(ids),), torch.nan)
    dots = reads["dot"].pinned_scores[0] if "dot" in reads else nothing
    cosines = reads["cosine"].pinned_scores[0] if "cosine" in reads else nothing
    unembedding = run.scorer.unembedding
    bias = unembedding.bias if unembedding else None
    logits = reads.get(LOGITS)
    return pd.DataFrame(
        {
            "token_id": ids.numpy(),
            "norm": norms.cpu().numpy(),
            "cosine": cosines.cpu().numpy(),
            "dot": dots.cpu().numpy(),
            "bias": (nothing if bias is None else bias[ids.to(bias.device)].float().cpu()).numpy(),
            "logit": (nothing if logits is None else logits.pinned_scores[0].cpu()).numpy(),
            "probability": (nothing if logits is None else logits.pinned_probabilities[0].cpu()).numpy(),
            "pinned": [index in run.pins.tolist() for index in ids.tolist()],
        }
    )
