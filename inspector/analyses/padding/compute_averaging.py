"""Average the last hidden state over positions, padding counted and left out."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pandas as pd
import torch

from inspector.analyses.padding.compute_batch import PaddedBatch
from inspector.models.running import Loaded, has_output_layer, memory_guard, without_cache


def average(loaded: Loaded, batch: PaddedBatch) -> pd.DataFrame:
    """Compare the mean over all positions with the mean over those that hold a token.

    The model reads the batch with its attention mask both times: only the averaging differs. With
    n tokens and k positions of padding, plain = (n * mean of tokens + k * mean of padding) / (n+k).

    Args:
        loaded: The base model, or one with a head on it; of two stacks the encoder is taken.
        batch: Sentences padded together.

    Returns:
        The columns of `Padding.averaging`, a row a sentence; NaN where a sentence has no padding.
    """
    inputs: dict[str, Any] = replace(batch, decoder_ids=None).inputs(loaded.model, loaded.device)
    if loaded.model.config.is_encoder_decoder:
        model: Any = loaded.model.get_encoder()
    else:
        model = loaded.model.base_model
    every = model is loaded.model and has_output_layer(model)  # with a head there is no last_hidden_state
    with memory_guard(loaded), torch.inference_mode():
        output = model(**inputs, output_hidden_states=every, **without_cache(model))
        hidden = (output.hidden_states[-1] if every else output.last_hidden_state).double().cpu()
    mask = batch.mask.double()[:, :, None]
    tokens = mask.sum(dim=1)
    padding = (1 - mask).sum(dim=1)
    right = (hidden * mask).sum(dim=1) / tokens
    plain = hidden.mean(dim=1)
    of_padding = (hidden * (1 - mask)).sum(dim=1) / padding  # 0 / 0 is NaN: there is none
    difference = torch.linalg.vector_norm(plain - right, dim=1)
    length = torch.linalg.vector_norm(right, dim=1)
    return pd.DataFrame(
        {
            "sentence": batch.sentences,
            "tokens": tokens[:, 0].long().numpy(),
            "padding": padding[:, 0].long().numpy(),
            "cosine": torch.cosine_similarity(plain, right, dim=1).clamp(-1, 1).numpy(),
            "difference": difference.numpy(),
            "relative": (difference / length).numpy(),
            "padding_share": (padding / (tokens + padding))[:, 0].numpy(),
            "padding_norm": torch.linalg.vector_norm(of_padding, dim=1).numpy(),
        }
    )
