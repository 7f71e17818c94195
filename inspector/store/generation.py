"""Stage what says where a generated text ends: the ids of generation_config.json, and the chat template as text."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from inspector.errors import CheckpointError
from inspector.store.names import GENERATION, TEMPLATE, is_text
from inspector.store.readers.jsons import read_json

MAX_NBYTES = 1_000_000
MAX_IDS = 1_000
MAX_TEMPLATES = 20
KEPT = ("bos_token_id", "decoder_start_token_id", "eos_token_id", "pad_token_id")


def stage_generation(files: Mapping[str, Path], folder: Path) -> None:
    """Write both into the staged folder, as far as they are plain.

    Raises:
        CheckpointError: If the settings are no JSON, or one of the two is too large.
    """
    if GENERATION in files:
        said = read_json(files[GENERATION], GENERATION, limit=MAX_NBYTES)
        kept = {key: _ids(said.get(key)) for key in KEPT} if isinstance(said, dict) else {}
        kept = {key: value for key, value in kept.items() if value is not None}
        (folder / GENERATION).write_text(json.dumps(kept, indent=2), encoding="utf-8")
    if TEMPLATE in files:
        if (nbytes := files[TEMPLATE].stat().st_size) > MAX_NBYTES:
            raise CheckpointError(
                f"{TEMPLATE} has {nbytes:,} bytes, more than the limit of {MAX_NBYTES:,}: check that it is a chat "
                "template."
            )
        text = files[TEMPLATE].read_bytes().decode("utf-8", "replace")
        (folder / TEMPLATE).write_text(text, encoding="utf-8")


def _ids(value: Any) -> int | list[int] | None:
    """One id, or several."""
    if isinstance(value, list):
        return value if len(value) <= MAX_IDS and all(_is_id(each) for each in value) else None
    return value if _is_id(value) else None


def _is_id(value: Any) -> bool:
    return type(value) is int and 0 <= value < 2**31


def read_templates(value: Any) -> str | list[dict[str, str]] | None:
    """The templates of a tokenizer_config.json: one text, or several with their names."""
    if isinstance(value, list) and len(value) <= MAX_TEMPLATES:
        named = [_named(each) for each in value]
        return [each for each in named if each is not None] or None
    return value if _is_template(value) else None


def _named(value: Any) -> dict[str, str] | None:
    if not isinstance(value, dict) or not isinstance(value.get("name"), str) or not is_text(value["name"][:80]):
        return None
    return {"name": value["name"][:80], "template": value["template"]} if _is_template(value.get("template")) else None


def _is_template(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= MAX_NBYTES and is_text(value)
