"""Mistral's consolidated.safetensors and params.json, as its own library (mistral-inference) reads them.

Rotary positions turn numbers side by side there, and those of two halves in transformers: rows of q and k have
another order. https://github.com/mistralai/mistral-inference, args.py, transformer.py and rope.py.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any

from inspector.store.foreign.wrappers import ANYWHERE
from inspector.text import quoted

# In params.json -> in transformers' config.json
SIZES = {"dim": "hidden_size", "hidden_dim": "intermediate_size", "n_layers": "num_hidden_layers",
         "n_heads": "num_attention_heads", "n_kv_heads": "num_key_value_heads", "head_dim": "head_dim",
         "vocab_size": "vocab_size"}  # fmt: skip
LONGEST = ("max_position_embeddings", "max_seq_len")
POSITIONS = 32_768  # where params.json says nothing, as transformers' conversion has it
# Where it has no rope_theta. With a sliding window, the versions that had such models (7B 0.1) took the second.
THETA, THETA_WITH_WINDOW = 1_000_000.0, 10_000.0
# What changes no number beside those: its name for the whole, and what SIZES, LONGEST and the rest read
KNOWN = frozenset({*SIZES, *LONGEST, "norm_eps", "rope_theta", "sliding_window", "tied_embeddings", "model_type"})
WHOLE = {
    "tok_embeddings.weight": "model.embed_tokens.weight",
    "norm.weight": "model.norm.weight",
    "output.weight": "lm_head.weight",
}
IN_LAYER = re.compile(r"layers\.(0|[1-9]\d{0,4})\.(\w+(?:\.\w+)?)\.weight")
PARTS = {
    "attention_norm": "input_layernorm",
    "ffn_norm": "post_attention_layernorm",
    "attention.wq": "self_attn.q_proj",
    "attention.wk": "self_attn.k_proj",
    "attention.wv": "self_attn.v_proj",
    "attention.wo": "self_attn.o_proj",
    "feed_forward.w1": "mlp.gate_proj",
    "feed_forward.w2": "mlp.down_proj",
    "feed_forward.w3": "mlp.up_proj",
}
TURNED = {"attention.wq": "num_attention_heads", "attention.wk": "num_key_value_heads"}
SAID = (
    "The files are in Mistral's own format: they are read as MistralForCausalLM, settings from params.json, rows of q "
    "and k in the order of transformers, and {theirs} is {mine}."
)
NO_THETA = " params.json has no rope_theta: it is read as {theta:,.0f}, as {library}."
LIBRARY = "Mistral's library does"
EARLIER = "earlier versions of Mistral's library do with a sliding window (later ones: 1,000,000)"
NOT_READ = (
    "params.json and the names of the tensors are as Mistral's or Meta's library writes them, but no model is built "
    "from it: {why}."
)


def mistral_names(names: Collection[str]) -> dict[str, str]:
    """What every tensor is called in transformers; empty if one is not Mistral's."""
    found = {name: _own_name(name) for name in names}
    return found if found and all(found.values()) and {*names} >= {"tok_embeddings.weight", "norm.weight"} else {}


def why_not(params: Mapping[str, Any]) -> str:
    """Why params.json cannot be a configuration of transformers' Mistral; "" if it can."""
    if strange := sorted(key for key, value in params.items() if key not in KNOWN and value):
        return f"it sets {quoted(strange[0], 60)}, which may change what the model computes"
    if missing := next((key for key in SIZES if type(params.get(key)) is not int or not 0 < params[key] < 1 << 31), ""):
        return f"its {quoted(missing)} is not a size"
    window = params.get("sliding_window")
    if window is not None and (type(window) is not int or window <= 0):
        return "its 'sliding_window' is not a size"
    numbers = {key: params.get(key) for key in ("norm_eps", "rope_theta")}
    if wrong := next((key for key, value in numbers.items() if not (value is None or _is_positive(value))), ""):
        return f"its {quoted(wrong)} is not a positive number"
    return ""


def mistral_config(params: Mapping[str, Any], names: Collection[str]) -> dict[str, Any]:
    """The settings of transformers' Mistral that compute the same.

    Args:
        params: Of which `why_not` says nothing.
        names: As the files have them.
    """
    longest = next((params[key] for key in LONGEST if type(params.get(key)) is int), POSITIONS)
    return {
        "model_type": "mistral",
        "architectures": ["MistralForCausalLM"],
        **{ours: params[theirs] for theirs, ours in SIZES.items()},
        "max_position_embeddings": longest,
        "rms_norm_eps": params.get("norm_eps") or 1e-5,
        "rope_parameters": {"rope_type": "default", "rope_theta": _theta(params)},
        "sliding_window": params.get("sliding_window"),
        "tie_word_embeddings": "output.weight" not in names,
        "bos_token_id": None,
        "eos_token_id": None,
        "pad_token_id": None,
    }


def describe_mistral(params: Mapping[str, Any], names: Mapping[str, str]) -> str:
    """How the files are read.

    Args:
        params: Of which `why_not` says nothing.
        names: `mistral_names`.
    """
    theirs, mine = next((a, b) for a, b in names.items() if "wq" in a or a == "norm.weight")
    said = SAID.format(theirs=quoted(theirs), mine=quoted(mine))
    if params.get("rope_theta"):
        return said
    return said + NO_THETA.format(theta=_theta(params), library=EARLIER if params.get("sliding_window") else LIBRARY)


def turned_heads(config: Mapping[str, Any], name: str, name_in_file: str) -> int:
    """In how many heads the rows of a tensor are to be put into transformers' order; 0: they are in it.

    Args:
        config: As transformers has it.
        name: Of the tensor in transformers.
        name_in_file: With what wrappers put in front of it, and into it.
    """
    inner = ".".join(part for part in name_in_file.split(".") if part not in ANYWHERE)
    found = IN_LAYER.fullmatch("layers." + inner.rpartition("layers.")[2])
    known = found and config.get("model_type") == "mistral" and _own_name(found[0]) == name
    setting = TURNED.get(found[2]) if found and known else None
    heads = config.get(setting) if setting else 0
    return heads if type(heads) is int and heads > 0 else 0


def _is_positive(value: Any) -> bool:
    return type(value) in (int, float) and 0 < value < 1e30


def _theta(params: Mapping[str, Any]) -> float:
    return float(params.get("rope_theta") or (THETA_WITH_WINDOW if params.get("sliding_window") else THETA))


def _own_name(name: str) -> str:
    found = IN_LAYER.fullmatch(name)
    part = PARTS.get(found[2]) if found else None
    return f"model.layers.{found[1]}.{part}.weight" if found and part else WHOLE.get(name, "")
