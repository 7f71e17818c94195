"""Recognize an adapter, as PEFT and its relatives write it: a change of a model, without the model."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from inspector.store.readers.jsons import read_json

CONFIG = "adapter_config.json"
MAX_NBYTES = 1_000_000
MOST, LONGEST = 100_000, 500  # of a number, of entries; characters of a name
MODEL = re.compile(r"[\w.-]{1,96}(?:/[\w.-]{1,96})?")  # a hub id, or the one name of an old one or of a demo
FILE = re.compile(r"(?:pytorch_)?adapter(?:_model)?[.-].*")
ACTIVATED = "alora_invocation_tokens"  # setting of a LoRA that acts only after them
WRAPPED = "base_model.model."  # how PEFT's names begin
UNMERGED = ".base_layer."  # in PEFT's names of the base's own weights that an adapter changes
# What PEFT calls the parts of each kind of adapter; others also write lora.down, lora_up.
PART = re.compile(
    r"(?:^|[._])((?:lora|dora|ia3|hada|lokr|vera|boft|oft|hra|vblora|fourierft|randlora)[._]\w+"
    r"|prompt_embeddings|prefix_embeddings)(?=[._]|$)"
)
MERGED = {
    "LORA": "a LoRA",
    "DORA": "a DoRA",
    "ADALORA": "an AdaLoRA",
    "LOHA": "a LoHa",
    "LOKR": "a LoKr",
    "VERA": "a VeRA",
    "IA3": "an IA3",
    "OFT": "an OFT",
    "BOFT": "a BOFT",
}
# These become no weights of a model, but inputs of its layers.
INPUTS = {"PREFIX_TUNING": "a prefix-tuning", "PROMPT_TUNING": "a prompt-tuning", "P_TUNING": "a p-tuning"}
NAMED = MERGED | INPUTS | {"PEFT": "a PEFT"}
# Of an adapter without its settings: what a part's name begins with -> kind.
BY_PART = {"lora": "LORA", "hada": "LOHA", "lokr": "LOKR", "vera": "VERA", "ia3": "IA3"}
ALONE = "This is {kind} ({signs}), not a whole model: {step}."
TOGETHER = "This is a model with {kind} ({signs}) that was not merged into it: merge it, and open the result."
MERGE = (
    "put it on its base model, on the command line with --adapter and in the app on Overview, or open the base model "
    "itself"
)
OPEN_BASE = "open its base model"


def is_adapter_file(name: str) -> bool:
    """Whether a weight file is called as adapters are."""
    return FILE.fullmatch(name) is not None


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and 0 <= value < MOST


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and 0 < len(value) <= LONGEST and value.isprintable()


def _are_names(value: Any) -> bool:
    return _is_name(value) or (isinstance(value, list) and len(value) <= MOST and all(map(_is_name, value)))


def _is_pattern(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and len(value) <= MOST
        and all(map(_is_name, value))
        and all(map(_is_number, value.values()))
    )


def _is_switch(value: Any) -> bool:
    return type(value) is bool


def _are_ids(value: Any) -> bool:
    return isinstance(value, list) and all(type(each) is int for each in value)


def _is_model(value: Any) -> bool:
    return isinstance(value, str) and MODEL.fullmatch(value) is not None


# What of the settings decides how the adapter is merged -> whether a value of it is kept.
KEPT: dict[str, Callable[[Any], bool]] = {
    "base_model_name_or_path": _is_model,  # a path says where somebody keeps things
    **dict.fromkeys(("r", "lora_alpha", "alpha"), _is_number),
    **dict.fromkeys(("rank_pattern", "alpha_pattern"), _is_pattern),
    **dict.fromkeys(("use_dora", "use_rslora", "fan_in_fan_out", "lora_bias"), _is_switch),
    ACTIVATED: _are_ids,
    **dict.fromkeys(("target_modules", "modules_to_save", "target_parameters", "init_lora_weights"), _are_names),
}


def read_adapter_config(path: Path) -> dict[str, Any]:
    """Keep what adapter_config.json says of the adapter's kind, and of how it is merged.

    Raises:
        CheckpointError: If it is no JSON, or too large.
    """
    content = read_json(path, CONFIG, limit=MAX_NBYTES)
    kind = content.get("peft_type") if isinstance(content, dict) else None
    if not isinstance(kind, str) or not re.fullmatch(r"[A-Za-z0-9_]{1,40}", kind):
        return {}
    return {"peft_type": kind} | {
        name: content[name] for name, is_kept in KEPT.items() if name in content and is_kept(content[name])
    }


def describe_adapter(files: Sequence[str], names: Iterable[str], config: Mapping[str, Any] | None) -> str:
    """Say what a checkpoint is whose weights are an adapter's, alone or not merged; "" for every other one.

    Args:
        files: Names of the weight files.
        names: Of all tensors.
        config: What is kept of adapter_config.json; None where there is none.
    """
    called, parts, together = all(map(is_adapter_file, files)), set(), False
    for name in names:
        found = PART.search(name)
        if not (found or name.startswith(WRAPPED) or (called and config is not None)):
            return ""
        together = together or (UNMERGED in name and not called)
        if found:
            parts.add(found[1])
    if not (parts or called):
        return ""
    telling = [" and ".join(sorted(parts)[:2]) + " in the names"] if parts else []
    signs = [*([CONFIG] if config is not None else []), *telling, *(files[:1] if called else ())]
    said = _type(config or {}, parts)
    kind = f"{NAMED[said]} adapter" if said in NAMED else f"an adapter of type {said}"
    template = TOGETHER if together else ALONE
    merges = said in MERGED and not (config or {}).get(ACTIVATED)
    return template.format(kind=kind, signs=", ".join(signs), step=MERGE if merges else OPEN_BASE)


def _type(config: Mapping[str, Any], parts: Iterable[str]) -> str:
    """What kind of adapter it is, as PEFT writes it: as its settings say, or else its names."""
    said = str(config.get("peft_type", "")).upper()
    magnitudes = any("magnitude" in part for part in parts)
    if not said:
        said = next((kind for begin, kind in BY_PART.items() if any(p.startswith(begin) for p in parts)), "PEFT")
    return "DORA" if said == "LORA" and (config.get("use_dora") or magnitudes) else said
