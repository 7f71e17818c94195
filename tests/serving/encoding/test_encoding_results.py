"""Every answer to every question comes through as it was and is believed, of the demos and of other families."""

from __future__ import annotations

import dataclasses
from importlib import import_module
from typing import Any

import numpy as np
import pandas as pd
import pytest

from inspector.catalog import CATALOG
from inspector.errors import InspectorError
from inspector.models.checkpoint import StagedCheckpoint
from inspector.serving.encoding import decode, encode
from inspector.serving.engine.manifest_check import Known, lies
from inspector.serving.engine.wire import RunRequest, result_class
from inspector.settings import read_settings
from inspector.store.opening import open_checkpoint
from inspector.store.reference import CheckpointRef
from tests.analyses.test_after_each_other import PARAMETERS
from tests.conftest import silent
from tests.families import random_model, save_checkpoint
from tests.merges import others

FAMILIES = (
    "MixtralForCausalLM",
    "T5ForConditionalGeneration",
    "BertForQuestionAnswering",
    "BertForSequenceClassification",
)


def opened(name: str, home) -> StagedCheckpoint:
    settings = read_settings({"INSPECTOR_HOME": str(home / "home")})
    reference = CheckpointRef("demo", name)
    if name in FAMILIES:
        reference = CheckpointRef("path", str(save_checkpoint(random_model(name), home / name)))
    manifest, _ = open_checkpoint(reference, settings=settings, progress=silent, restrict_paths=False)
    return StagedCheckpoint(manifest, settings=settings)


def same(one: Any, other: Any) -> None:
    """Values, types, dtypes and the order of keys."""
    assert type(one) is type(other) or isinstance(one, np.generic)
    if dataclasses.is_dataclass(one):
        for field in dataclasses.fields(one):
            same(getattr(one, field.name), getattr(other, field.name))
    elif isinstance(one, pd.DataFrame):
        pd.testing.assert_frame_equal(one, other)
    elif isinstance(one, np.ndarray):
        np.testing.assert_array_equal(one, other, strict=True)
    elif isinstance(one, dict):
        same(list(one.items()), list(other.items()))
    elif isinstance(one, tuple | list):
        assert len(one) == len(other)
        for a, b in zip(one, other, strict=True):
            same(a, b)
    else:
        assert one == other or repr(one) == repr(other) == "nan"


@pytest.mark.parametrize("name", ["demo-bert", "demo-gpt2", *FAMILIES])
def test_every_answer_comes_back_as_it_was(tmp_path, name):
    checkpoint = opened(name, tmp_path)
    answered, known = [], Known(checkpoint.manifest)
    for verb, analysis in CATALOG.items():
        parameters = PARAMETERS[verb] | others(verb, checkpoint)
        if "token" in parameters:
            parameters = {}
        module, _, function = analysis.function.partition(":")
        try:
            result = getattr(import_module(module), function)(checkpoint, progress=silent, **parameters)
        except InspectorError:  # a question that this family does not answer
            continue
        expected = result_class(RunRequest("", "", {}, result=analysis.result))
        same(result, decode(encode(result), expected))
        assert list(lies(result, known, known)) == []
        answered.append(verb)
    assert len(answered) >= 15, answered
