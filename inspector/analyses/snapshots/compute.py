"""Read off the embedding matrix what can be followed over training steps."""

from __future__ import annotations

import hashlib

import numpy as np
import pandas as pd
import torch

from inspector.analyses.embeddings.result import RowNorms
from inspector.analyses.snapshots.request import VitalsRequest
from inspector.analyses.snapshots.result import Vitals
from inspector.models.checkpoint import StagedCheckpoint
from inspector.models.vocabulary.labels import find_row, measured_rows, not_finite_warning
from inspector.models.vocabulary.rows import BLOCK_NUMEL, RowFacts, blocks
from inspector.progress import Progress
from inspector.request import answers

SPECIAL = 6  # tokens that are followed where none is named


@answers(VitalsRequest)
def vitals(checkpoint: StagedCheckpoint, request: VitalsRequest, *, progress: Progress) -> Vitals:
    """Measure the input embedding matrix, (vocab, d_model); nothing else of the file is read.

    Args:
        request: Whose vectors and neighbors to return; without tokens, those of the first special
            tokens, which every snapshot of a run has. With the same seed the same rows are drawn
            from every matrix with as many rows.

    Raises:
        NotInCheckpointError: If there is no embedding matrix.
        RequestError: If a token is not in the vocabulary.
    """
    matrix, facts, vocabulary = measured_rows(checkpoint, progress)
    kinds = vocabulary["kind"].astype(str).tolist()
    chosen = [find_row(checkpoint, token, len(matrix), option="tokens") for token in request.tokens] or [
        row for row, kind in enumerate(kinds) if kind in ("padding", "special")
    ][:SPECIAL]
    drawn = np.random.default_rng(request.seed).permutation(len(matrix))[: request.sample]
    probes = np.array([*chosen, *drawn.tolist()], dtype=np.int64)
    progress(None, "Finding neighbors")
    k = request.k
    kept = facts.norms[facts.finite]
    pad = kinds.index("padding") if "padding" in kinds else None
    labels = vocabulary["token"].astype(str).tolist()
    return Vitals(
        name=checkpoint.name,
        fingerprint=checkpoint.manifest.fingerprint,
        tensor=checkpoint.embedding.name,
        rows=matrix.shape[0],
        columns=matrix.shape[1],
        vocabulary=hashlib.sha256("\0".join(labels).encode(errors="surrogatepass")).hexdigest(),
        norms=_norms(kept),
        pad_token=None if pad is None else labels[pad],
        pad_id=pad,
        pad_norm=None if pad is None else float(facts.norms[pad]),
        tokens=pd.DataFrame(
            {
                "token": pd.Series([labels[row] for row in chosen], dtype=str),
                "token_id": pd.Series(chosen, dtype=int),
                "norm": facts.norms[chosen].double().numpy(),
            }
        ),
        vectors=matrix[chosen].float().numpy().copy(),
        k=k,
        probes=probes,
        neighbours=nearest_cosine(matrix, torch.from_numpy(probes), k, facts=facts).numpy(),
        warnings=not_finite_warning(vocabulary, facts.finite),
    )


def nearest_cosine(
    matrix: torch.Tensor, queries: torch.Tensor, k: int, *, facts: RowFacts, numel: int = BLOCK_NUMEL
) -> torch.Tensor:
    """Find the nearest rows of some rows by cosine, in memory that does not grow with the matrix.

    Args:
        matrix: (rows, columns), of any floating dtype.
        queries: Row numbers, (queries,).
        facts: Of the rows. What is not finite or has no length is nobody's neighbor, and has
            none.
        numel: Numbers of the matrix that are compared at once.

    Returns:
        Row numbers, (queries, k), nearest first, the row itself left out; -1 where there are no
        more.
    """
    usable = facts.finite & ~facts.zero
    asking = _directions(matrix[queries].float())
    best = torch.full((len(queries), k), -torch.inf)
    found = torch.full((len(queries), k), -1, dtype=torch.long)
    for place, block in blocks(matrix, numel=numel):
        numbers = torch.arange(place.start, place.stop)
        cosines = asking @ _directions(block).T
        cosines[:, ~usable[place]] = -torch.inf
        cosines[queries[:, None] == numbers[None, :]] = -torch.inf
        best, order = torch.cat([best, cosines], dim=1).topk(k, dim=1)
        found = torch.cat([found, numbers.expand(len(queries), -1)], dim=1).gather(1, order)
    found[~torch.isfinite(best)] = -1
    found[~usable[queries]] = -1
    return found


def _directions(rows: torch.Tensor) -> torch.Tensor:
    """Rows of length 1; scaled first, since squares of very long or short rows are no float32."""
    scale = rows.abs().amax(dim=1, keepdim=True)
    scaled = rows / torch.where(scale > 0, scale, 1)
    lengths = torch.linalg.vector_norm(scaled, dim=1, keepdim=True)
    return torch.nan_to_num(scaled / torch.where(lengths > 0, lengths, 1))


def _norms(kept: torch.Tensor) -> RowNorms:
    """Shortest, middle and longest row; NaN where no row is finite."""
    if not len(kept):
        return RowNorms(float("nan"), float("nan"), float("nan"))
    return RowNorms(float(kept.min()), float(kept.median()), float(kept.max()))
