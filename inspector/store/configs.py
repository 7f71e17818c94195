"""Rebuild config.json from what a configuration may say: plain settings, no code, no paths."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from inspector.errors import CheckpointError
from inspector.store.names import is_text
from inspector.store.readers.ggml import SIZES
from inspector.store.readers.jsons import read_json
from inspector.text import quoted, some

MAX_NBYTES = 20_000_000  # label maps of 20,000 classes fit
MAX_TEXT = 2_000
MAX_LIST = 10_000
MAX_LABELS = 100_000
MAX_CONFIG_DEPTH = 3

KEY = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,79}")
IDENTIFIER = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,79}")

# Code, other places to load from, and ways to run a model that are ours to choose.
DROPPED = re.compile(
    r"auto_map|.*attn_implementation.*|experts_implementation|torchscript|custom_.*|gguf_file"
    r"|quantization|quantization_config|compression_config|.*name_or_path|.*_(path|file|files|dir|url|repo|hub)"
    r"|trust_remote_code|use_kernels?|backbone|use_timm_backbone|use_pretrained_backbone"
    r"|(use_)?return_dict|output_(hidden_states|attentions)|chunk_size_feed_forward"
    r"|attribute_map|sub_configs|keys_to_ignore_at_inference|has_no_defaults_at_init|base_model_\w+"
)
# Public methods of transformers' PreTrainedConfig: a setting of that name would replace one.
METHODS = frozenset(
    {
        "convert_rope_params_to_dict",
        "default_config_fields",
        "dict_dtype_to_str",
        "from_dict",
        "from_json_file",
        "from_pretrained",
        "get_config_dict",
        "get_mtp_config",
        "get_text_config",
        "push_to_hub",
        "register_for_auto_class",
        "save_pretrained",
        "serialize_explicit_per_layer_config",
        "standardize_rope_params",
        "to_dict",
        "to_diff_dict",
        "to_json_file",
        "to_json_string",
        "update",
        "update_from_string",
        "validate",
        "validate_architecture",
        "validate_layer_type",
        "validate_output_attentions",
        "validate_rope",
        "validate_token_ids",
    }
)
ACTIVATIONS = frozenset(
    {
        "gelu",
        "gelu_10",
        "gelu_accurate",
        "gelu_fast",
        "gelu_new",
        "gelu_python",
        "gelu_python_tanh",
        "gelu_pytorch_tanh",
        "hardswish",
        "laplace",
        "leaky_relu",
        "linear",
        "mish",
        "prelu",
        "quick_gelu",
        "relu",
        "relu2",
        "relu6",
        "sigmoid",
        "silu",
        "sqrtsoftplus",
        "swish",
        "tanh",
        "xielu",
    }
)
ACTIVATION_KEYS = frozenset(
    {
        "hidden_act",
        "hidden_activation",
        "activation_function",
        "activation",
        "act_fn",
        "afn",
        "dense_act_fn",
        "classifier_activation",
        "summary_activation",
    }
)
PRECISION_KEYS = frozenset({"dtype", "torch_dtype"})  # looked up in torch, whatever they name
ESSENTIAL = frozenset(
    {
        "d_ff",
        "d_kv",
        "d_model",
        "embedding_size",
        "head_dim",
        "hidden_size",
        "intermediate_size",
        "layer_norm_eps",
        "layer_norm_epsilon",
        "max_position_embeddings",
        "n_embd",
        "n_head",
        "n_layer",
        "num_attention_heads",
        "num_heads",
        "num_hidden_layers",
        "num_key_value_heads",
        "num_layers",
        "pad_token_id",
        "position_embedding_type",
        "rms_norm_eps",
        "rope_theta",
        "tie_word_embeddings",
        "type_vocab_size",
        "vocab_size",
    }
)
LABELS = frozenset({"id2label", "label2id"})
ROPE = frozenset({"rope_parameters", "rope_scaling"})
BLOCKS = "blocks"  # of GGUF files: a tensor's name -> the type that its header gives
METHOD = "quant_method"
LEFT_ALONE = ("ignore", "modules_to_not_convert")  # modules that are not quantized
MAX_MODULES, MAX_PATTERN = 200_000, 1_000  # of them; characters of one
INFINITE = {"Infinity": math.inf, "-Infinity": -math.inf}  # JSON has no such numbers
FLOAT = "__float__"  # transformers' way to write them: an object of this key
STACKS = "num_hidden_layers"  # of which LXMERT gives a number for each of its stacks
PER_LAYER = "per_layer_config"  # layer's number -> what is different there
PRECISIONS = frozenset({"auto", "bfloat16", "float16", "float32", "float64", "float8_e4m3fn", "float8_e5m2"})


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 < value < 1 << 31


def _are_groups(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(k, str) and _is_count(v) for k, v in value.items())


def _are_blocks(value: Any) -> bool:
    return isinstance(value, dict) and all(is_text(k) and isinstance(v, str) and v in SIZES for k, v in value.items())


def _are_modules(value: Any) -> bool:
    named = isinstance(value, list) and len(value) <= MAX_MODULES
    return named and all(isinstance(each, str) and len(each) <= MAX_PATTERN and is_text(each) for each in value)


# Of quantization_config: what of it is kept, and what it must be.
FACTS: dict[str, Callable[[Any], bool]] = {
    "bits": _is_count,
    "group_size": _is_count,
    BLOCKS: _are_blocks,
    "groups": _are_groups,  # a module's name -> the group size of its own; MLX writes it another way
    "checkpoint_format": lambda value: isinstance(value, str) and bool(IDENTIFIER.fullmatch(value)),
    METHOD: lambda value: isinstance(value, str) and bool(IDENTIFIER.fullmatch(value)),
    **dict.fromkeys(LEFT_ALONE, _are_modules),
    "weight_block_size": lambda value: isinstance(value, list) and len(value) == 2 and all(map(_is_count, value)),
}
MLX = "quantization"  # where MLX says it
QUANTIZED = frozenset({"quantization_config", MLX})
CUSTOM_CODE = (
    "config.json refers to custom code (auto_map), which never runs here: transformers' own "
    "architecture is used instead."
)
NESTED = re.compile(r"[a-z_]+_config|encoder|decoder|generator")


@dataclass(frozen=True, slots=True)
class RebuiltConfig:
    """What is kept of a config.json."""

    settings: dict[str, Any]
    quantization: dict[str, Any]  # those of FACTS that it gives
    warnings: tuple[str, ...]  # about what was left out


def rebuild_config(path: Path) -> RebuiltConfig:
    """Read config.json and keep what is a plain setting.

    Raises:
        CheckpointError: If it is no configuration, or would replace code of the library.
    """
    config = read_json(path, "config.json", limit=MAX_NBYTES)
    if not isinstance(config, dict):
        raise CheckpointError("config.json contains no settings: check that it belongs to a model.")
    dropped: set[str] = set()
    kept = _settings(config, dropped, depth=1)
    return RebuiltConfig(kept, _quantization(config), _warnings(config, dropped))


def keep_settings(config: dict[str, Any]) -> dict[str, Any]:
    """What is a plain setting of a configuration; nothing more of one that was rebuilt before.

    Raises:
        CheckpointError: If it would replace code of the library.
    """
    return _settings(config, set(), depth=1)


def _quantization(config: dict[str, Any]) -> dict[str, Any]:
    """How codes are to be read; no library is ever told."""
    said = config.get("quantization_config", config.get(MLX))
    if not isinstance(said, dict):
        return {}
    facts = {key: said[key] for key, fits in FACTS.items() if key in said.keys() - {BLOCKS} and fits(said[key])}
    own = {name: each["group_size"] for name, each in said.items() if isinstance(each, dict) and "group_size" in each}
    return facts | {"groups": own} if own and _are_groups(own) else facts


def _warnings(config: dict[str, Any], dropped: set[str]) -> tuple[str, ...]:
    warnings = []
    if "auto_map" in config:
        warnings.append(CUSTOM_CODE)
    for key in sorted(QUANTIZED & config.keys())[-1:]:
        warnings.append(
            f"config.json declares quantized weights ({key}): tensors are listed as they are stored, and dequantized "
            "when they are read, if their format is supported."
        )
    rest = sorted(key for key in dropped - {"auto_map", *QUANTIZED} if not key.startswith("_"))
    if rest:
        names = some([quoted(key, 40) for key in rest], 5)
        warnings.append(f"config.json: ignored {names} (the app reads plain settings only).")
    return tuple(warnings)


def _settings(config: dict[str, Any], dropped: set[str], *, depth: int) -> dict[str, Any]:
    kept = {}
    for key, value in config.items():
        if key in METHODS:
            raise CheckpointError(
                f"config.json sets {key!r}, which is a method of the configuration class, not a "
                "setting: remove that line."
            )
        if not KEY.fullmatch(key) or DROPPED.fullmatch(key):
            dropped.add(key)
            continue
        _refuse_wrong_names(key, value)
        misplaced = (key in LABELS and not isinstance(value, dict)) or (
            key in PRECISION_KEYS and not _is_precision(value)
        )
        plain = None if misplaced else _plain(key, value, dropped, depth)
        if plain is None and value is not None:
            _refuse_default(key, value)
            dropped.add(key)
        else:
            kept[key] = plain
    return kept


def _plain(key: str, value: Any, dropped: set[str], depth: int) -> Any:
    if is_scalar(value):
        return value
    if isinstance(value, list):
        value = _write_infinite(value)
        return value if _is_plain_list(value, levels=3) else None
    return _plain_object(key, value, dropped, depth) if isinstance(value, dict) else None


def _plain_object(key: str, value: dict[str, Any], dropped: set[str], depth: int) -> Any:
    if key in LABELS:
        return _labels(key, value)
    if key in ROPE:
        return _rope(value)
    if key == PER_LAYER:
        return _per_layer(value, dropped, depth)
    if (key not in ESSENTIAL or key == STACKS) and _are_numbers(value):
        return value
    if NESTED.fullmatch(key) and depth < MAX_CONFIG_DEPTH:
        return _settings(value, dropped, depth=depth + 1)
    return None


def _are_numbers(value: dict[str, Any]) -> bool:
    """Whether an object gives numbers by name, as DeepSeek-V4's rates of compression."""
    return 0 < len(value) <= MAX_LIST and all(
        KEY.fullmatch(name) and type(number) in {int, float} and is_scalar(number) for name, number in value.items()
    )


def _per_layer(layers: dict[str, Any], dropped: set[str], depth: int) -> dict[str, Any] | None:
    """Settings of single layers, by their numbers."""
    fine = all(re.fullmatch(r"\d{1,5}", number) and isinstance(value, dict) for number, value in layers.items())
    if not fine or len(layers) > MAX_LIST:
        return None
    return {number: _settings(value, dropped, depth=depth + 1) for number, value in layers.items()}


def _is_precision(value: Any) -> bool:
    return value is None or (isinstance(value, str) and value.removeprefix("torch.") in PRECISIONS)


def _refuse_default(key: str, value: Any) -> None:
    """Refuse to leave out what decides the model's numbers: the library's default would take its place."""
    if key in ESSENTIAL:
        raise CheckpointError(f"config.json sets {key} to {quoted(str(value)[:80])}, which cannot be used: correct it.")


def _refuse_wrong_names(key: str, value: Any) -> None:
    if (key in ACTIVATION_KEYS and isinstance(value, str)) and value.lower() not in ACTIVATIONS:
        raise CheckpointError(
            f"config.json sets {key} to {quoted(value)}, which is not an activation function of "
            "transformers: compare config.json with its source. A model with code of its own may have one."
        )
    named = value if key == "architectures" and isinstance(value, list) else [value]
    if key in {"model_type", "architectures"} and any(
        name not in (None, "") and not (isinstance(name, str) and IDENTIFIER.fullmatch(name)) for name in named
    ):
        raise CheckpointError(
            f"config.json sets {key} to {quoted(str(value))}, which is not the name of an architecture: correct it."
        )


def is_scalar(value: Any) -> bool:
    """Whether a JSON value is null, a truth value, a finite number or a short plain text."""
    if isinstance(value, str):
        return len(value) <= MAX_TEXT and "\0" not in value and is_text(value)
    if type(value) is int:
        return -(2**63) <= value < 2**63
    if isinstance(value, float):
        return math.isfinite(value)
    return value is None or isinstance(value, bool)


def _is_plain_list(values: list[Any], *, levels: int) -> bool:
    if len(values) > MAX_LIST:
        return False
    return all(
        is_scalar(value)
        or _is_infinite(value)
        or (isinstance(value, list) and levels > 1 and _is_plain_list(value, levels=levels - 1))
        for value in values
    )


def _is_infinite(value: Any) -> bool:
    """Whether a JSON value is a number without bounds, as transformers writes it."""
    return isinstance(value, dict) and value.keys() == {FLOAT} and value[FLOAT] in tuple(INFINITE)


def _write_infinite(values: list[Any]) -> list[Any]:
    """Write the infinite numbers of a list as transformers does, which is plain JSON."""
    written = {number: {FLOAT: name} for name, number in INFINITE.items()}
    return [
        _write_infinite(value)
        if isinstance(value, list)
        else written.get(value, value)
        if isinstance(value, float)
        else value
        for value in values
    ]


def read_infinite(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings with the infinite numbers of their lists as numbers, as transformers reads them."""
    return {key: _read_infinite(value) for key, value in settings.items()}


def _read_infinite(value: Any) -> Any:
    if isinstance(value, list):
        return [INFINITE[each[FLOAT]] if _is_infinite(each) else _read_infinite(each) for each in value]
    return read_infinite(value) if isinstance(value, dict) else value


def _labels(key: str, labels: dict[str, Any]) -> dict[str, Any] | None:
    if len(labels) > MAX_LABELS:
        raise CheckpointError(
            f"config.json lists {len(labels):,} labels in {key}, more than the limit of "
            f"{MAX_LABELS:,}: check that it belongs to a model."
        )
    wanted = (int, str) if key == "label2id" else (str,)
    fine = all(is_scalar(v) and isinstance(v, wanted) and is_text(k) for k, v in labels.items())
    if key == "id2label":
        fine = fine and all(re.fullmatch(r"\d{1,9}", k) for k in labels)
    return labels if fine else None


def _rope(rope: dict[str, Any]) -> dict[str, Any] | None:
    """Rotary settings: scalars and lists, or (by layer type) one more level of them."""
    for key, value in rope.items():
        inner = value.items() if isinstance(value, dict) else [(key, value)]
        for name, item in inner:
            plain = is_scalar(item) or (isinstance(item, list) and _is_plain_list(item, levels=1))
            if not KEY.fullmatch(name) or not plain:
                return None
    return rope
