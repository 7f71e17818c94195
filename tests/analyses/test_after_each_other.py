"""One worker answers every question after every other: no answer may depend on what came before."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest

from inspector.catalog import CATALOG
from inspector.errors import InspectorError
from inspector.models.checkpoint import StagedCheckpoint
from inspector.results.plain import to_json
from inspector.settings import read_settings
from inspector.store.opening import open_checkpoint
from inspector.store.reference import CheckpointRef
from tests.conftest import silent
from tests.families import random_model, save_checkpoint
from tests.merges import others

TEXT = "w1 w2 w3 ##a w30"
MASKED = "w1 w2 [MASK] w30"
ARCHITECTURES = [
    "BertForPreTraining",
    "BartForConditionalGeneration",
    "GPT2LMHeadModel",
    "MarianMTModel",
    "T5ForConditionalGeneration",
]
# verb -> what it is asked with; `other` and `padding` are the checkpoint itself
PARAMETERS: dict[str, dict[str, Any]] = {
    "overview": {},
    "adapter": {},
    "histogram": {},
    "sharing": {},
    "whatif": {"change": "untie", "text": TEXT},
    "classes": {"text": TEXT},
    "experts": {"text": TEXT},
    "embeddings": {"token": "w3"},
    "project": {},
    "tokens": {},
    "padding": {"text": TEXT},
    "lens": {"text": TEXT, "k": 2},
    "placement": {},
    "ladder": {"text": TEXT, "k": 2},
    "predict": {"text": MASKED, "k": 2},
    "plausibility": {"text": TEXT},
    "contrast": {"first": MASKED, "second": "w4 [MASK] w5"},
    "similarity": {"texts": (TEXT, "w4 w5"), "pooling": "mean"},
    "heads": {"text": MASKED, "k": 2, "new_tokens": 2},
    "pretrain": {"text": TEXT, "pair": "w7 w8"},
    "tokenize": {"texts": (TEXT,)},
    "training": {"steps": 10, "warmup_steps": 2},
    "compare": {},
    "base": {},
    "verify-merge": {},
    "vitals": {"k": 3, "sample": 20},
    "check": {},
}
APART = ("milliseconds", "seconds", "cached")  # what may differ


def ask(checkpoint: StagedCheckpoint, verb: str) -> Any:
    """The answer as JSON without its time, or the refusal's words."""
    module, _, name = CATALOG[verb].function.partition(":")
    parameters = PARAMETERS[verb] | others(verb, checkpoint)
    try:
        result = getattr(import_module(module), name)(checkpoint, progress=silent, **parameters)
    except InspectorError as error:
        return str(error)
    return {key: value for key, value in to_json(result).items() if key not in APART}


def differences(one: Any, other: Any, place: str) -> list[str]:
    """Where two answers differ, and their values there."""
    if isinstance(one, dict) and isinstance(other, dict) and one.keys() == other.keys():
        return [found for key in one for found in differences(one[key], other[key], f"{place}.{key}")]
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        return [
            found
            for number, pair in enumerate(zip(one, other, strict=True))
            for found in differences(*pair, f"{place}.{number}")
        ]
    return [] if one == other else [f"{place}: {one!r} after others, {other!r} alone"]


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_every_question_after_every_other(tmp_path, architecture):
    folder = save_checkpoint(random_model(architecture), tmp_path / "model")
    settings = read_settings({"INSPECTOR_HOME": str(tmp_path / "home")})
    manifest, _ = open_checkpoint(
        CheckpointRef("path", str(folder)), settings=settings, progress=silent,
        restrict_paths=False,
    )  # fmt: skip
    alone = {verb: ask(StagedCheckpoint(manifest, settings=settings), verb) for verb in PARAMETERS}
    used = StagedCheckpoint(manifest, settings=settings)
    order = (*PARAMETERS, *reversed(PARAMETERS))  # so each comes after each other
    assert [place for verb in order for place in differences(ask(used, verb), alone[verb], verb)] == []


def test_no_question_is_left_out():
    assert set(PARAMETERS) == set(CATALOG)
