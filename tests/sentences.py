"""Sentences that several files of tests expect, word for word: each is written here alone."""

from __future__ import annotations

DO_NOT_FIT = "one of the two is not whole, or belongs to another model: compare both with their source."
SURROGATE = "The text contains an unpaired surrogate: type or paste it again."
WEIGHTS_ONLY = "Save only the weights, with save_pretrained() or torch.save(model.state_dict(), …)."
NO_TOKENIZER_FILES = (
    "The tokenizer files (tokenizer.json) cannot be read: if AutoTokenizer.from_pretrained() cannot read them either, "
    "compare them with their source."
)
TWO_SETS = "There are two sets of weights: model.safetensors is read, and pytorch_model.bin is not. They may disagree."
DAMAGED_ENTRY = "This checkpoint's entry in the store is damaged: open it again."
DISK_FULL = "The disk of the store is full: delete uploads, or free some space."
GGUF_TOKENIZER = "The tokenizer in a GGUF file is not read: tokens are shown by their ids."
NO_TOKENIZER = "There is no tokenizer in this checkpoint: tokens are shown by their ids."
TIES_NOT_COMPARED = "Ties are not compared."
