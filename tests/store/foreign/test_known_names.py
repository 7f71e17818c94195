"""A file without config.json: which class its names are those of."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from inspector.store.foreign.known_names import FILE, _known, kind_of
from tests.conftest import Opener
from tests.families import ENCODER_DECODER, MODELS, RENAMED, UNLISTED_MASKED, random_model, save_checkpoint
from tools.known_names import classes_of, known_class

BUILT = ["bert", "gpt2", "llama", "t5", "mixtral", "gemma3_text"]
FAMILIES = [*MODELS, *(each for each in ENCODER_DECODER if each != "T5EncoderModel"), *UNLISTED_MASKED, *RENAMED]
LISTED = 3  # model types beside the first


@pytest.mark.parametrize("model_type", BUILT)
def test_the_file_tells_what_the_installed_library_builds(model_type: str) -> None:
    """Else `python -m tools.known_names` writes it anew."""
    known = {each.name: each for each in _known() if each.model_type == model_type}
    assert known == {each.__name__: known_class(model_type, each) for each in classes_of(model_type)}
    assert FILE.stat().st_size < 150_000


@pytest.mark.parametrize("architecture", FAMILIES)
def test_a_saved_family_is_found(architecture: str, tmp_path: Path, open_path: Opener) -> None:
    model = random_model(architecture)
    save_checkpoint(model, tmp_path, tokenizer=False)
    (tmp_path / "config.json").unlink()
    (tmp_path / "generation_config.json").unlink(missing_ok=True)
    warning = next(each for each in open_path(tmp_path).manifest.warnings if "names fit" in each)
    fits = warning.partition("To build")[0]
    assert model.config.model_type in fits or " more fit as well" in fits
    if architecture != "BertForPreTraining":  # whose second head no class of the table has
        found = re.search(r"\((\d+) of (\d+) kinds of names", fits)
        assert found
        assert found[1] == found[2]


def test_of_classes_alike_the_first_is_the_one_that_others_are_built_on() -> None:
    kinds = next(each.kinds for each in _known() if each.name == "MistralForCausalLM")
    alike = [each.name for each in _known() if each.kinds == kinds]
    assert alike[:2] == ["LlamaForCausalLM", "MistralForCausalLM"]
    assert len(alike) > 1 + LISTED


def test_names_that_no_class_has_are_no_guess(tmp_path: Path, open_path: Opener) -> None:
    save_file(
        {f"a.{number}.{part}": torch.ones(2) for number in range(3) for part in "abcdef"}, tmp_path / "x.safetensors"
    )
    assert not [each for each in open_path(tmp_path).manifest.warnings if "names fit" in each]


def test_numbers_and_old_names_do_not_count() -> None:
    assert (
        kind_of("bert.encoder.layer.11.output.LayerNorm.gamma", 1) == "bert.encoder.layer.*.output.LayerNorm.weight:1"
    )
    assert kind_of("0.auto_model.layers.0.experts.63.w1", 2) == "*.auto_model.layers.*.experts.*.w1:2"
