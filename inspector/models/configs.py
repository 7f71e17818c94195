"""Turn config.json into the configuration that transformers builds of it; no torch is imported."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import transformers
from transformers import AutoConfig, PreTrainedConfig

from inspector.errors import CheckpointError
from inspector.store.configs import read_infinite


def build_config(config: Mapping[str, Any], name: str) -> PreTrainedConfig:
    """Turn a rebuilt config.json into transformers' config.

    Raises:
        CheckpointError: If this version of transformers does not know the model or a value.
    """
    values = read_infinite(config)
    model_type = values.pop("model_type", None)
    if model_type not in transformers.CONFIG_MAPPING:
        raise CheckpointError(
            f"{name} has model_type {model_type!r}, which transformers {transformers.__version__} does not support: "
            "only the headers can be shown."
        )
    try:
        return AutoConfig.for_model(model_type, **values)
    except Exception as error:
        raise CheckpointError(
            f"The config.json of {name} contains a value{_at(error)} that {model_type} models do not allow: compare it "
            "with the original model's."
        ) from error


def _at(error: Exception) -> str:
    """Where in config.json the value is that transformers refused, if it says so."""
    found = re.match(r"Validation error for field '(\w+)'", str(error))
    return f" of {found[1]}" if found else ""
