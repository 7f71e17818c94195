"""Settings and the levels that they come from, compared with what transformers' classes read."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import transformers
from safetensors.torch import load_file, save_file

from inspector.analyses.checks.compute import check
from inspector.analyses.sharing.compute import sharing
from inspector.models.checkpoint import StagedCheckpoint
from inspector.store.readers.levels import ConfigSetting, read_setting, stated, text_levels
from tests.conftest import silent
from tests.families import save_checkpoint
from tests.models.vision_language import VISION_LANGUAGE

FLAG = "tie_word_embeddings"
TIED = ("gemma3", "llava", "qwen3_vl")
Open = Callable[[Path], StagedCheckpoint]


def rewrite(folder: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    path = folder / "config.json"
    values = json.loads(path.read_text())
    change(values)
    path.write_text(json.dumps(values))


@pytest.mark.parametrize(
    ("values", "found"),
    [
        ({"pad_token_id": 3}, ConfigSetting(3, "")),
        ({"text_config": {"pad_token_id": 3}}, ConfigSetting(3, "text_config")),
        ({"pad_token_id": 1, "text_config": {"pad_token_id": 3}}, ConfigSetting(3, "text_config")),
        ({"pad_token_id": 1, "text_config": {"pad_token_id": None}}, ConfigSetting(1, "")),
        ({"llm_config": {"pad_token_id": 3}, "vision_config": {"pad_token_id": 4}}, ConfigSetting(3, "llm_config")),
        ({"language_config": {"pad_token_id": 0}}, ConfigSetting(0, "language_config")),
        ({"thinker_config": {"text_config": {"pad_token_id": 3}}}, ConfigSetting(3, "thinker_config.text_config")),
        ({"decoder": {"pad_token_id": 3}, "encoder": {"pad_token_id": 4}}, ConfigSetting(3, "decoder")),
        ({"generator": {"pad_token_id": 3}}, ConfigSetting(3, "generator")),
        ({"odd_config": {"vocab_size": 9, "pad_token_id": 3}}, ConfigSetting(3, "odd_config")),
        ({"vocab_size": 9, "odd_config": {"vocab_size": 9, "pad_token_id": 3}}, ConfigSetting(None)),
        ({"vision_config": {"pad_token_id": 4}}, ConfigSetting(None)),
        ({}, ConfigSetting(None)),
    ],
)
def test_a_file_says_a_setting_in_the_part_that_reads_text(values, found):
    assert read_setting(values, "pad_token_id") == found


def test_every_level_that_says_something_is_known():
    values = {"pad_token_id": 1, "a_config": {"pad_token_id": 2, "decoder": {"pad_token_id": 0}}, "b_config": {}}
    assert stated(values, "pad_token_id") == {"": 1, "a_config": 2, "a_config.decoder": 0}


@pytest.mark.parametrize("name", sorted(transformers.CONFIG_MAPPING))
def test_a_built_configuration_leads_to_its_text(name):
    """The part is transformers' own answer, wherever it is one of the configuration's parts."""
    try:
        config = transformers.CONFIG_MAPPING[name]()
        wanted = config.get_text_config()
    except Exception:  # some need arguments, or have a text on both sides
        config = wanted = transformers.BertConfig()
    level, part = list(text_levels(config))[-1]
    for each in filter(None, level.split(".")):
        config = getattr(config, each)
    assert config is part
    assert part is wanted or part.get_text_config() is not wanted


@pytest.fixture(scope="module")
def saved(tmp_path_factory) -> Callable[[str], Path]:
    """Each model once; who changes it copies it first."""
    folders: dict[str, Path] = {}

    def save(name: str) -> Path:
        if name not in folders:
            folders[name] = save_checkpoint(VISION_LANGUAGE[name](), tmp_path_factory.mktemp("model"))
        return folders[name]

    return save


@pytest.fixture
def folder(tmp_path, saved) -> Callable[[str], Path]:
    return lambda name: Path(shutil.copytree(saved(name), tmp_path / name))


def set_flag(values: dict[str, Any], top: bool | None, below: bool | None) -> None:
    for level, value in ((values, top), (values["text_config"], below)):
        level.pop(FLAG, None)
        if value is not None:
            level[FLAG] = value


@pytest.mark.parametrize("below", [None, True, False])
@pytest.mark.parametrize("top", [None, True, False])
@pytest.mark.parametrize("name", TIED)
def test_the_level_is_named_that_ties_and_the_one_that_the_class_reads(folder, open_path, name, top, below):
    path = folder(name)
    rewrite(path, lambda values: set_flag(values, top, below))
    state = load_file(path / "model.safetensors")
    state = {name: tensor for name, tensor in state.items() if not name.endswith("lm_head.weight")}
    save_file(state, path / "model.safetensors", {"format": "pt"})
    loaded: Any = transformers.AutoModelForImageTextToText.from_pretrained(path, output_loading_info=True)
    model, info = loaded
    checkpoint = open_path(path)
    group = next(each for each in sharing(checkpoint, progress=silent).groups if "lm_head.weight" in each.names)
    assert (group.verdict == "tied") == (not info["missing_keys"])
    if group.verdict == "tied":
        against = top is None and below is False
        assert ("to false in text_config" in group.reason) == against
        return
    true_below = "config.json sets tie_word_embeddings to true in text_config and "
    begins = {
        (None, True): f"{true_below}nothing above; transformers' class reads the top level, whose default is false",
        (False, True): f"{true_below}to false at the top; transformers' class reads the top level",
        (None, None): f"config.json does not set tie_word_embeddings, whose default in {type(model.config).__name__}",
    }
    begins[None, False] = begins[None, None]
    assert group.reason.startswith(begins.get((top, below), "config.json sets tie_word_embeddings to false, but"))
    weights = next(each for each in check(checkpoint, values="none", progress=silent).checks if "Heads" in each.name)
    assert (weights.severity, weights.found) == ("critical", 1)
    advice = weights.next_step.startswith("Set tie_word_embeddings to true at the top of config.json, as it is in text")
    assert advice == group.reason.endswith("Set tie_word_embeddings to true at the top.") == (below is True)


@pytest.mark.parametrize("stated", ["both", "below"])
@pytest.mark.parametrize("name", TIED)
def test_the_padding_id_of_the_text_is_the_embeddings(folder, open_path, name, stated):
    path = folder(name)
    rewrite(path, lambda values: values.update({"pad_token_id": 3} if stated == "both" else {}))
    model = transformers.AutoModelForImageTextToText.from_pretrained(path)
    checkpoint = open_path(path)
    assert checkpoint.setting("pad_token_id") == ConfigSetting(model.get_input_embeddings().padding_idx, "text_config")
    found = next(each for each in check(checkpoint, progress=silent).checks if each.name == "Padding")
    assert found.detail == "config.json and the tokenizer pad with [PAD] (id 0), which has a row."


def test_a_padding_id_of_a_part_that_is_not_the_tokenizers(folder, open_path):
    path = folder("gemma3")
    rewrite(path, lambda values: values["text_config"].update(pad_token_id=5))
    found = next(each for each in check(open_path(path), progress=silent).checks if each.name == "Padding")
    assert found.detail.startswith("The padding id is 5 (from config.json in text_config), but the tokenizer pads with")


def test_the_rows_of_a_resized_text_are_told_with_their_level(folder, open_path):
    path = folder("gemma3")
    rewrite(path, lambda values: values["text_config"].update(vocab_size=61))
    assert any(
        said.startswith("config.json sets vocab_size to 61 in text_config, but the embedding matrix has 60 rows")
        for said in open_path(path).manifest.warnings
    )


def test_what_is_left_above_of_an_earlier_layout_counts_for_nothing(folder, open_path):
    path = folder("llava")
    rewrite(path, lambda values: values.update(vocab_size=59, pad_token_id=7))
    checkpoint = open_path(path)
    assert checkpoint.setting("vocab_size") == ConfigSetting(60, "text_config")
    assert not any("vocab_size" in said for said in checkpoint.manifest.warnings)
