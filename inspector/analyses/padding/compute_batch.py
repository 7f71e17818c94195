"""Sentences padded to one length, and the labels that a language model's loss takes for them."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch

from inspector.errors import RequestError
from inspector.models.checkpoint import StagedCheckpoint
from inspector.models.inputs import IGNORED
from inspector.store.readers.levels import read_setting

MOST_POSITIONS = 8_192  # padding included
EXTRA = 4  # positions of padding where all sentences are equally long
MASKED = 0.15  # share of the ordinary tokens that are masked: BERT's


@dataclass(frozen=True, slots=True)
class PaddedBatch:
    """Sentences as a model reads them together, padded on the right."""

    sentences: tuple[str, ...]
    ids: torch.Tensor  # (sentences, positions)
    mask: torch.Tensor  # likewise: 1 for a token, 0 for padding
    type_ids: torch.Tensor  # likewise: the segment
    decoder_ids: torch.Tensor | None = None  # likewise: what a decoder reads, where there is one

    @property
    def padding(self) -> int:
        """Positions that hold no token."""
        return int((self.mask == 0).sum())

    def inputs(self, model: torch.nn.Module, device: torch.device, *, masked: bool = True) -> dict[str, torch.Tensor]:
        """What the model's forward method takes.

        Args:
            model: Whose config says whether it knows segments.
            masked: False leaves the attention mask out.
        """
        inputs = {"input_ids": self.ids.to(device)}
        if masked:
            inputs["attention_mask"] = self.mask.to(device)
        if (read_setting(model.config, "type_vocab_size").value or 0) > 1:
            inputs["token_type_ids"] = self.type_ids.to(device)
        if self.decoder_ids is not None:
            inputs["decoder_input_ids"] = self.decoder_ids.to(device)
        return inputs


def encode_batch(checkpoint: StagedCheckpoint, sentences: tuple[str, ...], *, pad_id: int) -> PaddedBatch:
    """Tokenize sentences and pad them so that there is padding.

    Args:
        sentences: At least one.
        pad_id: What fills up the shorter ones; four positions more where all are equally long.

    Raises:
        RequestError: If they are too long.
    """
    encoded = [checkpoint.require_tokens().encode(sentence) for sentence in sentences]
    for each in encoded:
        checkpoint.check_ids(each.ids, each.type_ids)
    lengths = [len(each.ids) for each in encoded]
    width = max(lengths)
    if min(lengths) == width:
        width += EXTRA
    if checkpoint.positions is not None and width > checkpoint.positions:
        raise RequestError(
            f"The sentences fill all {checkpoint.positions:,} positions, so there is no room for padding: shorten them."
        )
    if width * len(sentences) > MOST_POSITIONS:
        raise RequestError(
            f"Padded together, the sentences have {width * len(sentences):,} positions; the limit is "
            f"{MOST_POSITIONS:,}. Enter fewer or shorter ones."
        )
    ids = torch.full((len(sentences), width), pad_id)
    mask, type_ids = torch.zeros_like(ids), torch.zeros_like(ids)
    for row, each in enumerate(encoded):
        ids[row, : len(each.ids)] = torch.tensor(each.ids)
        type_ids[row, : len(each.ids)] = torch.tensor(each.type_ids)
        mask[row, : len(each.ids)] = 1
    return PaddedBatch(sentences, ids, mask, type_ids)


def label_next(batch: PaddedBatch) -> torch.Tensor:
    """Labels of a causal loss, which shifts them itself: every token, no padding."""
    return batch.ids.masked_fill(batch.mask == 0, IGNORED)


def write_again(batch: PaddedBatch, *, start: int) -> tuple[PaddedBatch, torch.Tensor]:
    """Have a decoder write each sentence that the encoder reads, told at each step what was right.

    Args:
        start: The id that the decoder is given first.

    Returns:
        The batch with what the decoder reads, and the labels: every token, no padding.
    """
    begin = torch.full_like(batch.ids[:, :1], start)
    return replace(batch, decoder_ids=torch.cat([begin, batch.ids[:, :-1]], 1)), label_next(batch)


def mask_some(batch: PaddedBatch, ordinary: torch.Tensor, *, mask_id: int) -> tuple[PaddedBatch, torch.Tensor]:
    """Mask 15 % of each sentence's ordinary tokens, at least one where it has any.

    Args:
        ordinary: Which ids may be masked, (vocab,) of bool: no special ones.

    Returns:
        The masked batch and its labels, which are -100 everywhere else.
    """
    generator = torch.Generator().manual_seed(0)
    allowed = ordinary[batch.ids] & (batch.mask == 1)
    ids, labels = batch.ids.clone(), torch.full_like(batch.ids, IGNORED)
    for row, places in enumerate(allowed):
        candidates = places.nonzero()[:, 0]
        count = math.ceil(MASKED * len(candidates))
        chosen = candidates[torch.randperm(len(candidates), generator=generator)[:count]]
        labels[row, chosen] = ids[row, chosen]
        ids[row, chosen] = mask_id
    return replace(batch, ids=ids), labels
