"""The question: what do the static embeddings look like?"""

from __future__ import annotations

from dataclasses import dataclass

from inspector.request import Request, option


@dataclass(frozen=True)
class EmbeddingsRequest(Request):
    """Options of `embeddings`; k and metric matter where a token is named."""

    verb = "embeddings"

    token: str | None = option(
        None, 'Token whose nearest neighbors are listed, as text or "id 37"', label="Find tokens"
    )
    k: int = option(10, "Neighbors to list", label="Nearest tokens", least=1, most=1_000)
    metric: str = option(
        "cosine", "How neighbors in the original space are measured", choices=("cosine", "dot", "euclidean")
    )
