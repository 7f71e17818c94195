"""The analysis's inputs and labels, and transformers' own model for them."""

from __future__ import annotations

from typing import Any

import torch
from transformers import AutoModelForCausalLM, AutoModelForMaskedLM

from inspector.analyses.padding.compute_batch import PaddedBatch, encode_batch, label_next, mask_some
from inspector.analyses.padding.request import PaddingRequest
from inspector.models.checkpoint import StagedCheckpoint
from tests.families import MODELS, words

TEXT = "w1 w2 w3\nw4 w5 w6 w7 w8 w9 w10\nw11 w12 ##a w13 w14"
PAD, MASK = 0, 4  # rows of the tests' tokenizer
SEQ2SEQ = ("T5ForConditionalGeneration", "MT5ForConditionalGeneration",
           "BartForConditionalGeneration", "MBartForConditionalGeneration", "MarianMTModel",
           "PegasusForConditionalGeneration")  # fmt: skip
CAUSAL = {name for name in MODELS if "Causal" in name or "LMHead" in name}


def batch_of(checkpoint: StagedCheckpoint, text: str) -> PaddedBatch:
    return encode_batch(checkpoint, PaddingRequest(text=text).sentences, pad_id=PAD)


def labeled(checkpoint: StagedCheckpoint, architecture: str) -> tuple[dict[str, Any], torch.Tensor]:
    """The inputs and labels of the analysis, for the truth's own backward pass."""
    batch = batch_of(checkpoint, TEXT)
    if architecture in CAUSAL:
        labels = label_next(batch)
    else:
        ordinary = torch.arange(len(words())) >= 8
        batch, labels = mask_some(batch, ordinary, mask_id=MASK)
    return {"input_ids": batch.ids, "attention_mask": batch.mask}, labels


def truth(folder: Any, architecture: str) -> Any:
    """The saved model, as transformers itself loads it."""
    auto: Any = AutoModelForCausalLM if architecture in CAUSAL else AutoModelForMaskedLM
    return auto.from_pretrained(folder, attn_implementation="eager").eval()


def experiment(result: Any, name: str) -> Any:
    frame: Any = result.row.experiments
    return frame[frame["experiment"] == name].iloc[0]
