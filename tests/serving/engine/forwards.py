"""What small random models compute, to the bit."""

from __future__ import annotations

from hashlib import sha256

import torch

from tests.families import ENCODER_DECODER, MODELS, VOCAB, random_model


def digests() -> dict[str, str]:
    """A hash of the hidden states and logits of each family."""
    found = {}
    tokens = torch.arange(8).remainder(VOCAB - 8).add(8).view(1, -1)
    for architecture in (*MODELS, *ENCODER_DECODER):
        model = random_model(architecture)
        inputs = {"decoder_input_ids": tokens} if model.config.is_encoder_decoder else {}
        with torch.no_grad():
            outputs = model(tokens, output_hidden_states=True, **inputs)
        digest = sha256()
        for each in outputs.to_tuple():
            for tensor in each if isinstance(each, tuple) else (each,):
                if isinstance(tensor, torch.Tensor):
                    digest.update(tensor.float().contiguous().numpy().tobytes())
        found[architecture] = digest.hexdigest()
    return found
