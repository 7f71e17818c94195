"""The losses of the demo training, batch by batch."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor
from torch.nn import functional
from transformers import BertForPreTraining, GPT2LMHeadModel

from tools.train_demos.batches import IGNORED, IntArray, PairBatch


def bert_losses(model: BertForPreTraining, batch: PairBatch) -> tuple[Tensor, Tensor]:
    """Compute the MLM loss, its head applied at masked positions only, and the NSP loss.

    Args:
        model: The model.
        batch: Masked sequences.

    Returns:
        Mean MLM cross-entropy, and mean NSP cross-entropy (zero for a batch of singles).
    """
    attention = torch.from_numpy(batch.attention_mask)
    output = model.bert(
        input_ids=torch.from_numpy(batch.input_ids),
        attention_mask=None if bool(attention.all()) else attention,
        token_type_ids=torch.from_numpy(batch.token_type_ids),
    )
    labels = torch.from_numpy(batch.labels)
    chosen = labels != IGNORED
    scores = model.cls.predictions(output.last_hidden_state[chosen])
    mlm = functional.cross_entropy(scores, labels[chosen])
    if batch.is_random is None:
        return mlm, torch.zeros(())
    relation = model.cls.seq_relationship(output.pooler_output)
    return mlm, functional.cross_entropy(relation, torch.from_numpy(batch.is_random))


def bert_steps(
    model: BertForPreTraining, batches: Iterator[tuple[PairBatch, PairBatch]], nsp_weight: float
) -> Iterator[float]:
    """Leave the gradient of one batch of singles and one of pairs in the model, step by step.

    Args:
        model: The model.
        batches: Singles and pairs.
        nsp_weight: What the NSP loss counts against the MLM loss.

    Yields:
        The mean MLM loss of the two batches.
    """
    for singles, pairs in batches:
        mlm_singles, _ = bert_losses(model, singles)
        mlm_singles.backward()
        mlm_pairs, nsp = bert_losses(model, pairs)
        (mlm_pairs + nsp_weight * nsp).backward()
        yield (mlm_singles.item() + mlm_pairs.item()) / 2


def gpt2_steps(model: GPT2LMHeadModel, batches: Iterator[IntArray]) -> Iterator[float]:
    """Leave the gradient of one batch of windows in the model, step by step.

    Args:
        model: The model.
        batches: Token ids, (windows, positions).

    Yields:
        The mean cross-entropy per token.
    """
    for batch in batches:
        ids = torch.from_numpy(batch)
        scores = model(input_ids=ids, use_cache=False).logits[:, :-1]
        loss = functional.cross_entropy(scores.flatten(0, 1), ids[:, 1:].flatten())
        loss.backward()
        yield loss.item()
