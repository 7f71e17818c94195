"""Turn texts into what a head reads, run it once, and say what comes back."""

from __future__ import annotations

import dataclasses
import inspect
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from tokenizers import Encoding
from transformers.utils.generic import ModelOutput

from inspector.errors import RequestError
from inspector.models.checkpoint import StagedCheckpoint
from inspector.models.running import Loaded, memory_guard
from inspector.models.tokens import Tokens
from inspector.store.readers.levels import read_setting

IGNORED = -100  # label of a position that no loss of transformers counts


@dataclass(frozen=True, slots=True)
class HeadInput:
    """Token ids with their masks, all (sequences, positions)."""

    encodings: tuple[Encoding, ...]  # one a sequence, padded to one length
    ids: torch.Tensor
    attention: torch.Tensor
    types: torch.Tensor

    def tokens(self, tokens: Tokens) -> tuple[tuple[str, ...], ...]:
        """Visible forms, one tuple a sequence."""
        return tuple(tuple(map(tokens.visible, encoding.ids)) for encoding in self.encodings)


@dataclass(frozen=True, slots=True)
class HeadRun:
    """What one forward pass returned, on the CPU, floating point as float32."""

    fields: Mapping[str, torch.Tensor]  # of the output, those that are one tensor
    output: dict[str, tuple[int, ...]]
    output_class: str
    milliseconds: float

    def with_loss(self, loss: torch.Tensor) -> HeadRun:
        """The same with a loss."""
        output = {"loss": tuple(loss.shape), **self.output}
        return dataclasses.replace(self, fields={**self.fields, "loss": loss}, output=output)

    def broken(self) -> bool:
        """Whether any score makes no probability; minus infinity rules a choice out and is none of these."""
        scores = (value for name, value in self.fields.items() if name.endswith("logits"))
        return not all(bool(value.logsumexp(dim=-1).isfinite().all()) for value in scores)


def encode_all(checkpoint: StagedCheckpoint, texts: Sequence[tuple[str, str | None]]) -> HeadInput:
    """Tokenize texts or pairs and pad them to one length, on the side that the tokenizer names.

    Raises:
        NotInCheckpointError: If the checkpoint brings no tokenizer.
        RequestError: If a text is empty, too long or no Unicode text.
    """
    tokens = checkpoint.require_tokens()
    encodings = tuple(tokens.encoding(text, pair) for text, pair in texts)
    for encoding in encodings:
        checkpoint.check_ids(tuple(encoding.ids), encoding.type_ids)
    tokens.pad(encodings)
    return HeadInput(
        encodings,
        torch.tensor([encoding.ids for encoding in encodings]),
        torch.tensor([encoding.attention_mask for encoding in encodings]),
        torch.tensor([encoding.type_ids for encoding in encodings]),
    )


def arguments(loaded: Loaded, given: HeadInput, *, choices: bool = False) -> dict[str, Any]:
    """Arguments of the model's forward method, on its device.

    Args:
        choices: True: the sequences are choices of one question, (1, choices, positions).
    """
    takes = inspect.signature(loaded.model.forward).parameters
    found = {"input_ids": given.ids, "attention_mask": given.attention}
    if "token_type_ids" in takes and (read_setting(loaded.model.config, "type_vocab_size").value or 0) > 1:
        found["token_type_ids"] = given.types
    return {name: (value[None] if choices else value).to(loaded.device) for name, value in found.items()}


def run_head(loaded: Loaded, inputs: Mapping[str, Any]) -> HeadRun:
    """Run the whole model once, head included.

    Raises:
        WorkerError: If the device has too little memory.
        RequestError: If the model's own code refuses this input.
    """
    takes = inspect.signature(loaded.model.forward).parameters
    more = {"use_cache": False} if "use_cache" in takes else {}
    with memory_guard(loaded), torch.inference_mode():
        started = time.perf_counter()
        try:
            output: ModelOutput = loaded.model(**inputs, **more, return_dict=True)
        except (ValueError, IndexError, RuntimeError) as error:
            if isinstance(error, torch.OutOfMemoryError):
                raise
            raise RequestError(
                f"{type(loaded.model).__name__} does not accept this input: try another text."
            ) from error
        # Copying to the CPU waits for the device.
        fields = {name: _plain(value) for name, value in output.items() if isinstance(value, torch.Tensor)}
        milliseconds = 1000 * (time.perf_counter() - started)
    shapes = {name: tuple(value.shape) for name, value in fields.items()}
    return HeadRun(fields, shapes, type(output).__name__, milliseconds)


def _plain(value: torch.Tensor) -> torch.Tensor:
    value = value.detach()
    return (value.float() if value.is_floating_point() else value).cpu()
