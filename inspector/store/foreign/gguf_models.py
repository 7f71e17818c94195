"""The models that GGUF files are, by their metadata: the settings and names that transformers has for them.

What llama.cpp's convert_hf_to_gguf.py did to names and numbers is undone, for the architectures of FAMILIES.
https://github.com/ggml-org/llama.cpp, convert_hf_to_gguf.py, src/llama-model.cpp and gguf-py/gguf/constants.py.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from inspector.store.foreign.gguf_settings import (
    EPSILON,
    FREQUENCIES,
    KNOWN,
    THETA,
    Metadata,
    NoModelError,
    ReadNumbers,
    Sizes,
    rotary_positions,
)
from inspector.store.manifests.columns import TensorInfo
from inspector.text import quoted

TOKEN_EMBEDDING, OUTPUT = "token_embd.weight", "output.weight"
WHOLE = {
    TOKEN_EMBEDDING: "model.embed_tokens.weight",
    "output_norm.weight": "model.norm.weight",
    OUTPUT: "lm_head.weight",
    FREQUENCIES: FREQUENCIES,  # a part of the settings, not of the model
}
IN_LAYER = re.compile(r"blk\.(0|[1-9]\d{0,4})\.(\w+)\.(weight|bias)")
PARTS = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
TWO_NORMS = {"ffn_norm": "post_attention_layernorm"}
FOUR_NORMS = {
    "post_attention_norm": "post_attention_layernorm",
    "ffn_norm": "pre_feedforward_layernorm",
    "post_ffw_norm": "post_feedforward_layernorm",
}
HEAD_NORMS = {"attn_q_norm": "self_attn.q_norm", "attn_k_norm": "self_attn.k_norm"}
HEADS = {"q_proj": "num_attention_heads", "k_proj": "num_key_value_heads"}
IDS = {"bos_token_id": "bos_token_id", "padding_token_id": "pad_token_id"}
ENDS = ("eos_token_id", "eot_token_id", "eom_token_id")  # of a text, a turn, a message: llama.cpp stops at each
SAID = (
    "The GGUF file is read as {class_name}: settings are made from its metadata, and tensors have the names of that "
    "class, so {theirs} is {mine}."
)
NOT_READ_AS_MODEL = "No model is built from the GGUF file, and its tensors keep their names: {why}."


@dataclass(frozen=True, slots=True)
class GgufFamily:
    """How a GGUF file of one architecture becomes a model of transformers."""

    model_type: str
    class_name: str
    parts: Mapping[str, str]  # of a layer, beside PARTS
    swapped: bool = False  # rows of q and k: the two halves that a rotation joins lie side by side
    raised: bool = False  # norms have 1 added, which the model adds by itself
    biases: tuple[tuple[str, str], ...] = ((".attn_q.bias", "attention_bias"),)  # ends of names -> a setting
    more: Callable[[Metadata, Sizes, dict[str, Any]], dict[str, Any]] | None = None  # settings of its own
    known: Collection[str] = ()  # keys that `more` reads


@dataclass(frozen=True, slots=True)
class GgufModel:
    """A GGUF file as a model of transformers."""

    names: dict[str, str]  # in the file -> the model's own
    config: dict[str, Any]
    said: str  # what was done, in a sentence


def read_as_model(metadata: Mapping[str, Any], tensors: Sequence[TensorInfo], read: ReadNumbers) -> GgufModel:
    """Find the names and settings of the model that a GGUF file is.

    Args:
        metadata: As the header gives it.
        tensors: With the shapes of the numbers that they stand for.
        read: Reads a short tensor of float32.

    Raises:
        NoModelError: If it is none that is known here.
    """
    architecture = metadata.get("general.architecture")
    family = FAMILIES.get(architecture) if isinstance(architecture, str) else None
    if family is None or not isinstance(architecture, str):
        raise NoModelError(f"models of its architecture, {quoted(str(architecture), 40)}, are not built here")
    prefix = f"{architecture}."
    unknown = (key for key in metadata if key.startswith(prefix) and key.removeprefix(prefix) not in KNOWN)
    if key := next((key for key in unknown if key.removeprefix(prefix) not in family.known), None):
        raise NoModelError(f"its metadata has {quoted(key, 60)}, which may change what it computes")
    held = {tensor.name: tensor for tensor in tensors}
    names = {name: _own_name(name, family) for name in held}
    if TOKEN_EMBEDDING not in held or len(held[TOKEN_EMBEDDING].shape) != 2:
        raise NoModelError(f"it has no matrix {quoted(TOKEN_EMBEDDING)}")
    config = _config(family, Metadata(metadata, architecture), held, read)
    theirs = next((name for name in names if IN_LAYER.fullmatch(name)), TOKEN_EMBEDDING)
    said = SAID.format(class_name=family.class_name, theirs=quoted(theirs), mine=quoted(names[theirs]))
    return GgufModel(names, config, said)


def swapped_heads(config: Mapping[str, Any], name: str) -> int:
    """In how many heads the rows of a GGUF file's tensor are to be put back in order; 0: they are in order.

    Args:
        config: Of the model that the file is read as.
        name: The model's own.
    """
    family = BY_TYPE.get(config.get("model_type", ""))
    setting = HEADS.get(name.rpartition(".")[0].rpartition(".")[2])
    if family is None or not family.swapped or setting is None:
        return 0
    heads = config.get(setting)
    return heads if type(heads) is int and heads > 0 else 0


def is_raised(config: Mapping[str, Any], name: str) -> bool:
    """Whether a GGUF file has a tensor with 1 added; arguments as `swapped_heads`."""
    family = BY_TYPE.get(config.get("model_type", ""))
    return family is not None and family.raised and name.endswith("norm.weight")


def _own_name(name: str, family: GgufFamily) -> str:
    if name in WHOLE:
        return WHOLE[name]
    found = IN_LAYER.fullmatch(name)
    part = {**PARTS, **family.parts}.get(found[2]) if found else None
    if found is None or part is None:
        raise NoModelError(f"{family.class_name} has no place for its tensor {quoted(name, 60)}")
    return f"model.layers.{found[1]}.{part}.{found[3]}"


def _config(
    family: GgufFamily, metadata: Metadata, held: Mapping[str, TensorInfo], read: ReadNumbers
) -> dict[str, Any]:
    sizes = Sizes.of(metadata)
    if sizes.layers > len(held):  # settings list what each layer is
        raise NoModelError(f"its metadata tells of {sizes.layers:,} layers, and it has {len(held):,} tensors")
    ids = {setting: _id(metadata, key) for key, setting in IDS.items()}
    ends = [*dict.fromkeys(each for key in ENDS if (each := _id(metadata, key)) is not None)]
    config: dict[str, Any] = {
        "model_type": family.model_type,
        "architectures": [family.class_name],
        **sizes.settings,
        "rms_norm_eps": metadata.needed_number(EPSILON),
        "vocab_size": held[TOKEN_EMBEDDING].shape[0],
        "tie_word_embeddings": OUTPUT not in held,
        "rope_parameters": rotary_positions(metadata, sizes, held.get(FREQUENCIES), read),
        **ids,
        "eos_token_id": ends if len(ends) > 1 else next(iter(ends), None),
        **{setting: any(name.endswith(ending) for name in held) for ending, setting in family.biases},
    }
    return config | (family.more(metadata, sizes, config["rope_parameters"]) if family.more else {})


def _id(metadata: Metadata, key: str) -> int | None:
    told = metadata.values.get(f"tokenizer.ggml.{key}")
    return told if type(told) is int and 0 <= told < 1 << 31 else None


def _gemma2(metadata: Metadata, sizes: Sizes, rope: dict[str, Any]) -> dict[str, Any]:
    del rope
    said: dict[str, Any] = {each: metadata.number(each) for each in SOFT_CAPS}
    said["sliding_window"] = metadata.whole("attention.sliding_window")
    return _attention_scale(sizes, largest=46) | {key: value for key, value in said.items() if value is not None}


def _gemma3(metadata: Metadata, sizes: Sizes, rope: dict[str, Any]) -> dict[str, Any]:
    """Five of six layers look at a window, with rotary positions of their own; the sixth at everything."""
    theta = metadata.number("rope.freq_base") or 1_000_000.0
    inside = {"rope_type": "default", "rope_theta": metadata.number("rope.freq_base_swa") or THETA}
    layers = range(1, sizes.layers + 1)
    return {
        **_attention_scale(sizes, largest=62),
        "sliding_window": metadata.needed("attention.sliding_window"),
        "layer_types": ["sliding_attention" if layer % 6 else "full_attention" for layer in layers],
        "final_logit_softcapping": metadata.number("final_logit_softcapping"),
        "rope_parameters": {"sliding_attention": inside, "full_attention": rope | {"rope_theta": theta}},
    }


def _attention_scale(sizes: Sizes, *, largest: int) -> dict[str, Any]:
    """By what attention scores are divided: no file says it, and llama.cpp tells the largest model by its layers."""
    scalar = sizes.width // sizes.heads if sizes.layers == largest else sizes.head
    return {"hidden_activation": "gelu_pytorch_tanh", "query_pre_attn_scalar": scalar}


SOFT_CAPS = ("attn_logit_softcapping", "final_logit_softcapping")
FAMILIES = {
    "llama": GgufFamily(
        "llama",
        "LlamaForCausalLM",
        TWO_NORMS,
        swapped=True,
        biases=((".attn_q.bias", "attention_bias"), (".ffn_gate.bias", "mlp_bias")),
    ),
    "qwen2": GgufFamily("qwen2", "Qwen2ForCausalLM", TWO_NORMS, biases=()),
    "qwen3": GgufFamily("qwen3", "Qwen3ForCausalLM", TWO_NORMS | HEAD_NORMS),
    "gemma": GgufFamily("gemma", "GemmaForCausalLM", TWO_NORMS, raised=True),
    "gemma2": GgufFamily(
        "gemma2",
        "Gemma2ForCausalLM",
        FOUR_NORMS,
        raised=True,
        more=_gemma2,
        known=(*SOFT_CAPS, "attention.sliding_window"),
    ),
    "gemma3": GgufFamily(
        "gemma3_text",
        "Gemma3ForCausalLM",
        FOUR_NORMS | HEAD_NORMS,
        raised=True,
        more=_gemma3,
        known=("attention.sliding_window", "final_logit_softcapping", "rope.freq_base_swa"),
    ),
}
BY_TYPE = {family.model_type: family for family in FAMILIES.values()}
