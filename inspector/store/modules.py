"""Stage what sentence-transformers says of how a checkpoint is loaded: from allow-listed keys."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from inspector.store.names import MODULES, SENTENCE_CONFIGS
from inspector.store.readers.jsons import read_json

MAX_NBYTES = 1_000_000
MAX_MODULES = 100
MAX_LENGTH = 10**9  # tokens
TYPE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,79}(\.[A-Za-z_][A-Za-z0-9_]{0,79}){0,9}")
TASK = re.compile(r"[a-z][a-z-]{0,39}")


def stage_modules(files: Mapping[str, Path], folder: Path) -> None:
    """Write modules.json and the settings of its transformer into the staged folder, as far as they are plain.

    Raises:
        CheckpointError: If one of the files is no JSON, or too large.
    """
    modules = _modules(read_json(files[MODULES], MODULES, limit=MAX_NBYTES))
    if not modules:
        return
    (folder / MODULES).write_text(json.dumps(modules, indent=2), encoding="utf-8")
    for name in SENTENCE_CONFIGS:  # in the order in which the library looks for them
        if name in files and (settings := _settings(read_json(files[name], name, limit=MAX_NBYTES))):
            (folder / name).write_text(json.dumps(settings, indent=2), encoding="utf-8")
            return


def _modules(listed: Any) -> list[dict[str, str]]:
    """The type of each module, in order; none if the file is not what the library writes."""
    if not isinstance(listed, list) or len(listed) > MAX_MODULES:
        return []
    types = [each.get("type") if isinstance(each, dict) else None for each in listed]
    plain = [each for each in types if isinstance(each, str) and TYPE.fullmatch(each)]
    return [{"type": each} for each in plain] if len(plain) == len(types) else []


def _settings(said: Any) -> dict[str, Any]:
    if not isinstance(said, dict):
        return {}
    length, lower, task = (said.get(key) for key in ("max_seq_length", "do_lower_case", "transformer_task"))
    kept = {
        "max_seq_length": length if type(length) is int and 0 < length <= MAX_LENGTH else None,
        "do_lower_case": lower if isinstance(lower, bool) else None,
        "transformer_task": task if isinstance(task, str) and TASK.fullmatch(task) else None,
    }
    return {key: value for key, value in kept.items() if value is not None}
