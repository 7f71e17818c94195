"""Stage what sentence-transformers says of how a checkpoint is loaded and run: from allow-listed keys."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from inspector.store.names import (
    MODULE_FOLDER,
    MODULES,
    SENTENCE_CONFIGS,
    SENTENCE_SETTINGS,
    is_config,
    is_of_module,
    is_text,
    shown_name,
)
from inspector.store.readers.jsons import read_json

MAX_NBYTES = 1_000_000
MAX_MODULES = 100
MAX_LENGTH = 10**9  # tokens
MAX_WORD, MAX_PROMPT, MAX_PROMPTS = 200, 10_000, 1_000  # characters of a setting and of a prompt; prompts
TYPE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,79}(\.[A-Za-z_][A-Za-z0-9_]{0,79}){0,9}")
TASK = re.compile(r"[a-z][a-z-]{0,39}")
# What the modules after the transformer are made with: pooling, a linear layer, division by the length.
POOLING = "pooling_mode_"
SETTINGS = frozenset(
    {
        *("embedding_dimension", "word_embedding_dimension", "pooling_mode", "include_prompt"),
        *(f"{POOLING}{each}_tokens" for each in ("max", "mean", "mean_sqrt_len", "weightedmean")),
        *(f"{POOLING}cls_token", f"{POOLING}lasttoken"),
        *("in_features", "out_features", "bias", "activation_function", "use_residual"),
        *("module_input_name", "module_output_name"),
    }
)


def stage_modules(files: Mapping[str, Path], folder: Path) -> None:
    """Write modules.json and the settings of all modules into the staged folder, as far as they are plain.

    Raises:
        CheckpointError: If one of the files is no JSON, or too large.
    """
    modules = _modules(read_json(files[MODULES], MODULES, limit=MAX_NBYTES))
    if not modules:
        return
    _write(folder / MODULES, modules)
    for name in sorted(files):
        if is_of_module(name) and is_config(name):
            said = read_json(files[name], shown_name(name), limit=MAX_NBYTES)
            _write(folder / name, {key: _plain(value) for key, value in _object(said).items() if key in SETTINGS})
    if SENTENCE_SETTINGS in files:
        said = read_json(files[SENTENCE_SETTINGS], SENTENCE_SETTINGS, limit=MAX_NBYTES)
        _write(folder / SENTENCE_SETTINGS, _whole(_object(said)))
    for name in SENTENCE_CONFIGS:  # in the order in which the library looks for them
        if name in files and (settings := _settings(read_json(files[name], name, limit=MAX_NBYTES))):
            _write(folder / name, settings)
            return


def _write(path: Path, content: Any) -> None:
    path.write_text(json.dumps(content, indent=2), encoding="utf-8")


def _modules(listed: Any) -> list[dict[str, str]]:
    """The type of each module, and its folder if that may be read; none if the file is not what the library writes."""
    if not isinstance(listed, list) or len(listed) > MAX_MODULES:
        return []
    found = [each for each in listed if isinstance(each, dict) and _is_match(TYPE, each.get("type"))]
    if len(found) < len(listed):
        return []
    return [
        {"type": each["type"]} | ({"path": each["path"]} if _is_match(MODULE_FOLDER, each.get("path")) else {})
        for each in found
    ]


def _is_match(pattern: re.Pattern[str], value: Any) -> bool:
    return isinstance(value, str) and pattern.fullmatch(value) is not None


def _object(said: Any) -> Mapping[str, Any]:
    return said if isinstance(said, dict) else {}


def _plain(value: Any) -> Any:
    """A setting as it was written, or null where it is none that the library writes: whoever uses it refuses that."""
    if isinstance(value, list):
        return [_plain(each) for each in value] if len(value) <= MAX_MODULES and all(map(_is_word, value)) else None
    return value if isinstance(value, bool) or _is_word(value) or _is_size(value) else None


def _is_word(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= MAX_WORD and is_text(value)


def _is_size(value: Any) -> bool:
    return type(value) is int and 0 < value <= MAX_LENGTH


def _whole(said: Mapping[str, Any]) -> dict[str, Any]:
    """The prompts, which of them is put before a text, and the score: what is not plain is null."""
    prompts = _object(said.get("prompts"))
    kept = {
        name: text
        for name, text in prompts.items()
        if _is_word(name) and isinstance(text, str) and len(text) <= MAX_PROMPT and is_text(text)
    }
    words = {key: _plain(said[key]) for key in ("default_prompt_name", "similarity_fn_name") if key in said}
    return words | ({"prompts": kept} if len(kept) == len(prompts) <= MAX_PROMPTS else {})


def _settings(said: Any) -> dict[str, Any]:
    length, lower, task = (_object(said).get(key) for key in ("max_seq_length", "do_lower_case", "transformer_task"))
    kept = {
        "max_seq_length": length if _is_size(length) else None,
        "do_lower_case": lower if isinstance(lower, bool) else None,
        "transformer_task": task if _is_match(TASK, task) else None,
    }
    return {key: value for key, value in kept.items() if value is not None}
