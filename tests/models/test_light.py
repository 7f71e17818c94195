"""Loading in little time gives what loading in transformers' own way gives."""

from __future__ import annotations

import os
from contextlib import nullcontext
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file
from transformers import PreTrainedModel, core_model_loading
from transformers.core_model_loading import WeightConverter, dot_natural_key

from inspector.models import build
from inspector.models.checkpoint import StagedCheckpoint
from inspector.models.transformers_patches import SYNCHRONOUS, light_loading, natural_key
from inspector.models.weightless.outline import MANY_NAMES, build_outline
from tests.families import ENCODER_DECODER, MODELS, RENAMED, UNLISTED, random_model, save_checkpoint

EXPERTS = {"DeepseekV3ForCausalLM": {"n_routed_experts": 12}, "MixtralForCausalLM": {"num_local_experts": 12}}
FAMILIES = MODELS | ENCODER_DECODER | UNLISTED | RENAMED
part = st.one_of(
    st.sampled_from(["layers", "0", "10", "9", "a1", "a10", "b2b3", "", "²", "٣"]), st.text("ab0.19", max_size=4)
)


def outlined(
    checkpoint: StagedCheckpoint, model_class: type[PreTrainedModel], loading: Any, many: int = MANY_NAMES
) -> list[Any]:
    """What is known of a model that was built without numbers; its tensors are merged if there are more than `many`."""
    checkpoint = StagedCheckpoint(checkpoint.manifest, settings=checkpoint.settings)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(build, "light_loading", loading)
        try:
            build_outline(checkpoint, model_class, many=many)  # what is kept of the first serves the second
            model, missing = build_outline(checkpoint, model_class, many=many)
        except Exception as error:
            return [type(error).__name__, str(error)]
    every = [*model.named_parameters(remove_duplicate=False), *model.named_buffers(remove_duplicate=False)]
    first: dict[int, str] = {}
    return [
        sorted(missing),
        [(name, each.dtype, tuple(each.shape), each.device.type, each.requires_grad) for name, each in every],
        [first.setdefault(id(each), name) for name, each in every],
        sorted(model.all_tied_weights_keys.items()),
    ]


@pytest.mark.parametrize("family", sorted(FAMILIES))
@pytest.mark.parametrize("damage", ["whole", "lacking", "reshaped"])
def test_a_class_is_built_as_transformers_builds_it(tmp_path, open_path, family, damage):
    model = random_model(family, **EXPERTS.get(family, {}))
    folder = save_checkpoint(model, tmp_path / "model")
    if damage != "whole":
        file = folder / "model.safetensors"
        tensors = load_file(file)
        name = sorted(tensors)[len(tensors) // 2]
        shape = tensors.pop(name).shape
        if damage == "reshaped":
            tensors[name] = torch.zeros((*shape[:-1], shape[-1] + 1))
        save_file(tensors, file, metadata={"format": "pt"})
    checkpoint = open_path(folder)
    plain = outlined(checkpoint, type(model), lambda **_: nullcontext())
    assert outlined(checkpoint, type(model), light_loading) == plain
    assert outlined(checkpoint, type(model), light_loading, many=0) == plain
    assert SYNCHRONOUS not in os.environ


@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_a_class_loads_what_its_loader_would_make(tmp_path, open_path, monkeypatch, family):
    model = random_model(family, **EXPERTS.get(family, {}))
    checkpoint = open_path(save_checkpoint(model, tmp_path / "model"))
    given: list[int] = []
    build_model = build.build_model

    def noted(model_class: Any, config: Any, state: Any, **options: Any) -> Any:
        given.append(len(state))
        return build_model(model_class, config, state, **options)

    monkeypatch.setattr(build, "build_model", noted)
    build_outline(checkpoint, type(model), many=0)
    assert len(given) == 1
    assert family not in EXPERTS or given[0] < len(checkpoint.tensors)


@given(st.lists(st.lists(part, min_size=1, max_size=4).map(".".join), max_size=8))
def test_names_are_sorted_as_transformers_sorts_them(names):
    try:
        expected = sorted(names, key=dot_natural_key)
    except ValueError:  # a superscript two is a digit, and no number
        with pytest.raises(ValueError, match="invalid literal"):
            sorted(names, key=natural_key)
    else:
        assert sorted(names, key=natural_key) == expected


def test_nothing_stays_changed(monkeypatch):
    monkeypatch.setenv(SYNCHRONOUS, "0")
    with pytest.raises(KeyError), light_loading(meta=True):  # noqa: PT012 - in the middle of it
        assert os.environ[SYNCHRONOUS] == "1"
        raise KeyError
    assert os.environ[SYNCHRONOUS] == "0"
    assert core_model_loading.dot_natural_key is dot_natural_key
    assert "__deepcopy__" not in vars(WeightConverter)
    with light_loading(meta=False):
        assert os.environ[SYNCHRONOUS] == "0"
