"""Random checkpoints with a task's head."""

from __future__ import annotations

from typing import Any

import torch

from inspector.analyses.heads.compute import heads
from inspector.models.checkpoint import StagedCheckpoint
from tests.conftest import silent
from tests.families import MODELS

TEXT, PAIR = "w1 w2a w3 w30", "w4 w5b w6 w7 w8"
SIZES = {
    "Bert": MODELS["BertForMaskedLM"],
    "Roberta": MODELS["RobertaForMaskedLM"],
    "DistilBert": MODELS["DistilBertForMaskedLM"],
    "Albert": MODELS["AlbertForMaskedLM"],
    "Electra": MODELS["ElectraForMaskedLM"],
    "GPT2": MODELS["GPT2LMHeadModel"],
    "Llama": MODELS["LlamaForCausalLM"],
}
run_heads: Any = heads  # what a result holds depends on the head
TAGS = {0: "O", 1: "B-PER", 2: "I-PER", 3: "B-LOC", 4: "I-LOC"}
ALL = tuple(SIZES)
ENCODERS = ALL[:5]


class Case:
    """A random checkpoint, opened by the app and built by transformers."""

    def __init__(self, checkpoint: StagedCheckpoint, model: Any, tokenizer: Any) -> None:
        self.checkpoint, self.model, self.tokenizer = checkpoint, model, tokenizer

    def ask(self, text: str = TEXT, **options: Any) -> Any:
        return run_heads(self.checkpoint, progress=silent, text=text, device="cpu", **options)

    def output(self, *texts: str, **more: Any) -> Any:
        """Transformers' own tokenizer and forward pass."""
        inputs = self.tokenizer(*texts, return_tensors="pt")
        if getattr(self.model.config, "type_vocab_size", 0) < 2:
            inputs.pop("token_type_ids", None)
        with torch.inference_mode():
            return self.model(**inputs, **more)


def close(found: Any, wanted: Any) -> bool:
    return torch.allclose(
        torch.as_tensor(found, dtype=torch.float32),
        torch.as_tensor(wanted, dtype=torch.float32), atol=2e-5, rtol=1e-4,
    )  # fmt: skip


LONG = " ".join(["w1"] * 600)
