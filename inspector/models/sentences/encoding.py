"""Run texts through a sentence encoder: each alone, and padded together with the attention mask or without."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from tokenizers import Encoding, normalizers

from inspector.errors import NotInCheckpointError, RequestError
from inspector.models.checkpoint import StagedCheckpoint
from inspector.models.damage import damaged
from inspector.models.running import Loaded, forward

EXTRA = 4  # positions of padding where all texts are equally long
MOST_POSITIONS = 8_192  # of a batch, padding included


@dataclass(frozen=True, slots=True)
class Padded:
    """What the model says of texts that were padded to one length."""

    mask: torch.Tensor  # (texts, positions): 1 for a token, 0 for padding
    told: torch.Tensor  # states of the last layer with the attention mask, (texts, positions, d_model)
    untold: torch.Tensor  # the same without: every position counts as a token


@dataclass(frozen=True, slots=True)
class Encodings:
    """Texts as token ids."""

    texts: tuple[Encoding, ...]
    prompt: int  # tokens of the prompt at the start of each, if they are left out of the pooling
    lengths: tuple[int, ...]  # tokens before the texts were cut


def encode(checkpoint: StagedCheckpoint, texts: Sequence[str], *, prompt: str, include_prompt: bool) -> Encodings:
    """Tokenize texts as sentence-transformers does: with a prompt, lowercased and cut if the settings say so.

    Raises:
        NotInCheckpointError: If the checkpoint brings no tokenizer.
        RequestError: If a text is empty or too long for the model, or nothing of it is left beside the prompt.
    """
    tokens, pipeline = checkpoint.require_tokens(), checkpoint.pipeline
    longest, _ = checkpoint.text_limit
    lowers = pipeline is not None and pipeline.lowers
    lowered = normalizers.Lowercase().normalize_str if lowers else str
    found, lengths = [], []
    for text in texts:
        whole = tokens.encoding(lowered(prompt + text))
        lengths.append(len(whole.ids))
        cut = longest is not None and len(whole.ids) > longest
        found.append(tokens.encoding(lowered(prompt + text), longest=longest) if cut else whole)
        checkpoint.check_ids(tuple(found[-1].ids), found[-1].type_ids)
    left_out = 0
    if prompt and not include_prompt:
        alone = tokens.encoding(lowered(prompt), longest=longest)
        left_out = len(alone.ids) - (alone.ids[-1] in tokens.special_ids)
    if any(len(each.ids) <= left_out for each in found):
        raise RequestError("The prompt fills the whole text: choose another prompt, or a longer text.", option="prompt")
    return Encodings(tuple(found), left_out, tuple(lengths))


def states_alone(
    checkpoint: StagedCheckpoint, loaded: Loaded, encodings: Encodings
) -> tuple[list[torch.Tensor], float]:
    """The states of the last layer of each text, (positions, d_model) on the CPU, and the milliseconds that they took.

    Raises:
        NotInCheckpointError: If the model has an encoder and a decoder.
        CheckpointError: If it answers with NaN.
    """
    _refuse_two_stacks(checkpoint, loaded)
    states, milliseconds = [], 0.0
    for each in encodings.texts:
        ids, types = torch.tensor([each.ids]), torch.tensor([each.type_ids])
        run = forward(loaded, ids, types, head=False)
        states.append(_finite(checkpoint, loaded, run.hidden_states[-1])[0])
        milliseconds += run.milliseconds
    return states, milliseconds


def states_padded(checkpoint: StagedCheckpoint, loaded: Loaded, encodings: Encodings) -> Padded | None:
    """Pad the texts to one length, and run them with the attention mask and without.

    Returns:
        The states; None where the tokenizer has no padding token, or there is no room for padding.
    """
    tokens = checkpoint.require_tokens()
    pad, lengths = tokens.role("pad")[1], [len(each.ids) for each in encodings.texts]
    width = max(lengths) + (EXTRA if min(lengths) == max(lengths) else 0)
    most = checkpoint.positions
    if pad is None or width * len(lengths) > MOST_POSITIONS or (most is not None and width > most):
        return None
    left = tokens.padding_side == "left"
    rows = {name: torch.full((len(lengths), width), fill) for name, fill in _fills(pad, tokens.pad_type_id).items()}
    for number, (each, length) in enumerate(zip(encodings.texts, lengths, strict=True)):
        place = slice(width - length, width) if left else slice(0, length)
        for name, values in (("ids", each.ids), ("types", each.type_ids), ("mask", each.attention_mask)):
            rows[name][number, place] = torch.tensor(values)
    checkpoint.check_ids(tuple(rows["ids"].unique().tolist()))
    told, untold = (
        _finite(
            checkpoint,
            loaded,
            forward(loaded, rows["ids"], rows["types"], head=False, attention=attention).hidden_states[-1],
        )
        for attention in (rows["mask"], torch.ones_like(rows["mask"]))
    )
    return Padded(rows["mask"], told, untold)


def _fills(pad: int, pad_type: int) -> dict[str, int]:
    return {"ids": pad, "types": pad_type, "mask": 0}


def _finite(checkpoint: StagedCheckpoint, loaded: Loaded, states: torch.Tensor) -> torch.Tensor:
    states = states.detach().cpu().double()
    if not states.isfinite().all():
        raise damaged(checkpoint.name, loaded)
    return states


def _refuse_two_stacks(checkpoint: StagedCheckpoint, loaded: Loaded) -> None:
    if "decoder_input_ids" in inspect.signature(loaded.model.base_model.forward).parameters:
        raise NotInCheckpointError(
            f"{checkpoint.name} has an encoder and a decoder, and sentence vectors are made of an encoder alone: there "
            "is no score to show."
        )
