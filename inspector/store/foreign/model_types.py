"""The model type of a config.json that names none: from the class that it names, or from the tensors' names.

The library that transformers came from wrote no model_type until the end of 2019, and no architectures before that.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any

from inspector.text import quoted

# What a class of transformers is called after what it is a model of, as far as it begins with a capital.
TASK = re.compile(r"(For[A-Z]|LMHead|WithLMHead|DoubleHeads|Model|PreTrained|Encoder).*")
# Classes -> model type, where that is not the same in small letters.
SPELLED = {
    "OpenAIGPT": "openai-gpt",
    "XLMRoberta": "xlm-roberta",
    "XLMRobertaXL": "xlm-roberta-xl",
    "DebertaV2": "deberta-v2",
    "RoFormer": "roformer",
    "BigBird": "big_bird",
    "GPTNeo": "gpt_neo",
    "GPTNeoX": "gpt_neox",
    "ModernBert": "modernbert",
}
# A setting that decides on the numbers and has no name elsewhere, and names that a file of that time has, whatever
# the head, and no other model's.
BY_NAMES = {
    "bert": (
        "num_attention_heads",
        "bert.embeddings.token_type_embeddings.weight",
        "bert.embeddings.LayerNorm.weight",
        "bert.encoder.layer.0.attention.output.LayerNorm.weight",
    ),
    "gpt2": ("n_head", "wte.weight", "wpe.weight", "h.0.attn.c_attn.weight", "h.0.mlp.c_fc.weight", "ln_f.weight"),
}
GPT2 = "transformer."


def guess_model_type(config: Mapping[str, Any], names: Collection[str]) -> tuple[str, str]:
    """The model type that a config.json without one belongs to, and a sentence that says why.

    Args:
        config: The settings, without a model type.
        names: Of the tensors, without what wrappers put into them.

    Returns:
        Two empty texts if nothing tells.
    """
    said = config.get("architectures")
    if isinstance(said, list) and len(said) == 1 and isinstance(said[0], str):
        stem = TASK.sub("", said[0])
        if stem and stem != said[0]:
            return _found(SPELLED.get(stem, stem.lower()), f"by the class that it names, {said[0]}")
    held = {re.sub(r"LayerNorm\.gamma$", "LayerNorm.weight", name.removeprefix(GPT2)) for name in names}
    for model_type, (setting, *needed) in BY_NAMES.items():
        if setting in config and held.issuperset(needed):
            return _found(model_type, f"by its tensors' names, such as {quoted(needed[-1])}")
    return "", ""


def _found(model_type: str, why: str) -> tuple[str, str]:
    return model_type, f"config.json names no model_type: it is read as {quoted(model_type)}, {why}."
