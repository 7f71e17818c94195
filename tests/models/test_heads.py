"""The table of families against transformers' own classes."""

from __future__ import annotations

import pytest
from transformers import AutoConfig

from inspector.analyses.overview.compute import overview
from inspector.models.families import FAMILIES
from inspector.models.heads import heads_by_building
from inspector.results.checkpoint import HEADS
from tests.conftest import silent
from tests.families import MODELS, WITHOUT_HEAD, random_model

MIXTURES = [f"{name}ForCausalLM" for name in ("Mixtral", "Qwen2Moe", "Qwen3Moe", "DeepseekV3")]
EVERY = sorted([*MODELS, *WITHOUT_HEAD, *MIXTURES])


@pytest.mark.parametrize("name", EVERY)
def test_table_agrees_with_building_every_class(open_model, name):
    checkpoint = open_model(name)
    names = [tensor.name for tensor in checkpoint.manifest.tensors]
    assert checkpoint.heads == heads_by_building(checkpoint.config, names)
    assert tuple(checkpoint.heads) == HEADS


@pytest.mark.parametrize("model_type", sorted(FAMILIES))
def test_tying_by_default_is_the_config_class_own(model_type):
    assert FAMILIES[model_type].tied_by_default == AutoConfig.for_model(model_type).tie_word_embeddings


@pytest.mark.parametrize("name", sorted([*MODELS, *MIXTURES]))
def test_ties_are_the_class_own(name):
    model = random_model(name)
    family = FAMILIES[model.config.model_type]
    assert dict(family.ties) == type(model)._tied_weights_keys
    names = [key for key, _ in model.named_parameters(remove_duplicate=False)]
    assert family.embedding in names


@pytest.mark.parametrize("name", EVERY)
def test_overview_counts_what_the_model_lists(open_model, name):
    result = overview(open_model(name), progress=silent)
    model = random_model(name)
    assert result.unique_parameters == sum(p.numel() for p in model.parameters())
    listed = [p for _, p in model.named_parameters(remove_duplicate=False)]
    assert result.listed_parameters == sum(p.numel() for p in listed)
    assert result.nbytes_in_memory == sum(p.nbytes for p in model.parameters())
    assert (result.vocab_rows, result.layers) == (60, 2)
    assert result.d_model == 32
