"""Ask for a comparison, and compute its numbers in another way."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from inspector.analyses.compare.compute import compare
from tests.conftest import silent

EMBEDDING = "bert.embeddings.word_embeddings.weight"
DECODER = "cls.predictions.decoder.weight"
BIAS = "cls.predictions.bias"


def ask(first, second, **options) -> Any:
    return compare(first, progress=silent, other=second.manifest.fingerprint, **options)


def by_name(result):
    return {row["name"]: row for row in result.tensors.to_dict("records")}


def truth(a: torch.Tensor, b: torch.Tensor) -> tuple[float, float, float]:
    """Relative change, cosine and largest difference by NumPy in one go."""
    one, other = (t.double().flatten().numpy() for t in (a, b))
    norm = np.linalg.norm(one)
    return (
        float(np.linalg.norm(other - one) / norm),
        float(one @ other / norm / np.linalg.norm(other)),
        float(np.abs(other - one).max()),
    )
