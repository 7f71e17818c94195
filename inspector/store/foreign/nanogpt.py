"""nanoGPT's ckpt.pt: GPT-2 with its matrices as torch's Linear keeps them, (out, in), where transformers has (in, out).

Its settings are `model_args`, beside the weights. https://github.com/karpathy/nanoGPT, model.py and train.py.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from inspector.store.manifests.columns import TensorInfo, Tensors

# In model_args -> in transformers' config.json
SETTINGS = {"n_layer": "n_layer", "n_head": "n_head", "n_embd": "n_embd", "block_size": "n_positions",
            "vocab_size": "vocab_size"}  # fmt: skip
TRANSPOSED = ("attn.c_attn.weight", "attn.c_proj.weight", "mlp.c_fc.weight", "mlp.c_proj.weight")
BIASED = (*TRANSPOSED, "ln_1.weight", "ln_2.weight", "ln_f.weight")
NAMES = frozenset({"transformer.wte.weight", "transformer.wpe.weight", "transformer.ln_f.weight", "lm_head.weight"})
SAID = (
    "The file is nanoGPT's: it is read as GPT2LMHeadModel, settings from its model_args, matrices transposed to "
    "(in, out), and GELU computed exactly, as nanoGPT does."
)
NO_BIAS = " It has no biases (bias=False), and they count as zeros."


def is_nanogpt(settings: Mapping[str, Any], names: Collection[str]) -> bool:
    """Whether `model_args` and names are those that nanoGPT's train.py saves."""
    numbers = [settings.get(key) for key in SETTINGS]
    return all(type(each) is int and 0 < each < 1 << 31 for each in numbers) and set(names) >= NAMES


def nanogpt_config(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of transformers' GPT-2 that compute the same."""
    return {
        "model_type": "gpt2",
        "architectures": ["GPT2LMHeadModel"],
        "activation_function": "gelu",
        **{ours: settings[theirs] for theirs, ours in SETTINGS.items()},
        "layer_norm_epsilon": 1e-5,
        "tie_word_embeddings": True,
        "bos_token_id": None,
        "eos_token_id": None,
    }


def transposed(tensors: Tensors) -> Tensors:
    """Headers that see the matrices of the linear layers the other way round; no number moves."""
    return Tensors.of(map(_turned, tensors)) if any(map(_is_turned, tensors)) else tensors


def _is_turned(tensor: TensorInfo) -> bool:
    return tensor.name.endswith(TRANSPOSED) and len(tensor.shape) == 2


def _turned(tensor: TensorInfo) -> TensorInfo:
    if not _is_turned(tensor):
        return tensor
    return tensor._replace(shape=tensor.shape[::-1], strides=tensor.strides[::-1])


def absent_biases(settings: Mapping[str, Any], tensors: Tensors) -> dict[str, tuple[int, ...]]:
    """The biases that the model was made without, and that GPT-2 has: name -> shape; none of one that has them.

    Args:
        settings: Its model_args: where they do not say that it has none, one that is not there is missing.
        tensors: Matrices as nanoGPT has them, (out, in).
    """
    if settings.get("bias") is not False:
        return {}
    wanted = ((name.removesuffix("weight") + "bias", name) for name in tensors.names if name.endswith(BIASED))
    return {bias: tensors.find(name).shape[:1] for bias, name in wanted if bias not in tensors.numbers}
