"""Tell what tensors are from their names alone."""

from __future__ import annotations

from inspector.store.manifest import TensorInfo

# Tables that old files store although no training ever changes them.
BUFFERS = (
    ".position_ids",
    ".attn.masked_bias",
    ".rotary_emb.inv_freq",
    ".embeddings.token_type_ids",
)


def is_buffer(tensor: TensorInfo) -> bool:
    """Whether a stored tensor is a constant table and no parameter."""
    mask = tensor.name.endswith(".attn.bias") and len(tensor.shape) == 4
    return mask or f".{tensor.name}".endswith(BUFFERS)
