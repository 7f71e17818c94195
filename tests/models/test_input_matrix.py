"""The input matrix of every family is the one that the loaded class looks tokens up in."""

from __future__ import annotations

import json
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file

from inspector.analyses.embeddings.compute import embeddings
from inspector.analyses.overview.compute import overview
from inspector.errors import NotInCheckpointError
from inspector.models.weightless.outline import build_outline
from tests.conftest import silent
from tests.families import ENCODER_DECODER, MODELS, RENAMED, UNLISTED, UNLISTED_MASKED, WITHOUT_HEAD, random_model

FAMILIES = MODELS | ENCODER_DECODER | UNLISTED | UNLISTED_MASKED | RENAMED | WITHOUT_HEAD
BESIDE = ("shared.weight", "encoder.embed_tokens.weight", "decoder.embed_tokens.weight", "lm_head.weight")
TIES = {"tied": True, "untied": False}


def loaded_matrix(folder: Path, architecture: str) -> torch.Tensor:
    """What transformers' own loader puts into the input embedding."""
    return getattr(transformers, architecture).from_pretrained(folder).get_input_embeddings().weight.detach()


def store(folder: Path, architecture: str, names: tuple[str, ...], **changes: Any) -> Path:
    """Save a model whose file holds these of its four matrices, each with numbers of its own."""
    model = random_model(architecture, **changes)
    model.save_pretrained(folder)
    file = folder / "model.safetensors"
    held = {name: each for name, each in load_file(file).items() if not name.endswith(BESIDE)}
    generator = torch.Generator().manual_seed(1)
    matrices = {name: each for name, each in model.state_dict().items() if name.endswith(names)}
    new = {name: torch.randn(each.shape, generator=generator) for name, each in matrices.items()}
    save_file(held | new, file, {"format": "pt"})
    config = folder / "config.json"
    config.write_text(json.dumps(json.loads(config.read_text()) | changes))
    return folder


@pytest.mark.parametrize("architecture", sorted(FAMILIES))
def test_it_is_what_the_loaded_class_holds(open_model, tmp_path, architecture):
    checkpoint = open_model(architecture)
    assert torch.equal(checkpoint.embedding_matrix(), loaded_matrix(tmp_path / architecture, architecture))
    assert checkpoint.embedding_shape == checkpoint.embedding.shape


@pytest.mark.parametrize("tied", TIES)
@pytest.mark.parametrize("names", [names for count in (1, 2, 3) for names in combinations(BESIDE, count)], ids=str)
@pytest.mark.parametrize("architecture", sorted(set(ENCODER_DECODER) - {"T5EncoderModel"}))
def test_any_part_of_the_matrices_may_be_stored(tmp_path, open_path, architecture, names, tied):
    folder = store(tmp_path / "model", architecture, names, tie_word_embeddings=TIES[tied])
    checkpoint = open_path(folder)
    right = loaded_matrix(folder, architecture)
    held = {name: each for name, each in load_file(folder / "model.safetensors").items() if torch.equal(each, right)}
    if held:
        assert checkpoint.embedding.name in held
    else:  # the loader made random numbers
        with pytest.raises(NotInCheckpointError, match=f"in which {architecture} looks tokens up"):
            checkpoint.embedding_matrix()


def test_an_untied_marian_looks_up_in_its_encoder(tmp_path, open_path):
    changes: dict[str, Any] = {"share_encoder_decoder_embeddings": False, "decoder_vocab_size": 44}
    model = random_model("MarianMTModel", tie_word_embeddings=False, **changes)
    model.save_pretrained(tmp_path / "marian")
    checkpoint = open_path(tmp_path / "marian")
    assert embeddings(checkpoint, progress=silent).tensor == "model.encoder.embed_tokens.weight"
    assert torch.equal(checkpoint.embedding_matrix(), model.get_input_embeddings().weight)
    assert overview(checkpoint, progress=silent).vocab_rows == model.config.vocab_size != 44


@pytest.mark.parametrize("architecture", ["BartForCausalLM", "MBartForCausalLM", "PegasusForCausalLM"])
def test_half_of_two_looks_up_in_its_own(tmp_path, open_path, architecture):
    whole = architecture.replace("CausalLM", "ConditionalGeneration")
    model = getattr(transformers, architecture)(random_model(whole).config)
    model.save_pretrained(tmp_path / "half")
    assert torch.equal(open_path(tmp_path / "half").embedding_matrix(), loaded_matrix(tmp_path / "half", architecture))


@pytest.mark.parametrize("architecture", ["LlamaForCausalLM", "BertForMaskedLM"])
def test_an_output_matrix_is_no_input_matrix(tmp_path, open_path, architecture):
    """Untied, and the file lacks the input matrix: a loader makes random numbers."""
    folder = tmp_path / "model"
    model = random_model(architecture, tie_word_embeddings=False)
    model.save_pretrained(folder)
    own = next(name for name, each in model.named_parameters() if each is model.get_input_embeddings().weight)
    kept = {name: each for name, each in load_file(folder / "model.safetensors").items() if name != own}
    save_file(kept, folder / "model.safetensors", {"format": "pt"})
    with pytest.raises(NotInCheckpointError, match=f"lacks {own}, in which {architecture} looks tokens up"):
        embeddings(open_path(folder), progress=silent)


@pytest.mark.parametrize("equal", [True, False])
def test_two_that_the_file_holds_are_tied_where_the_loader_ties_them(tmp_path, open_path, equal):
    """Neither has the name of the matrix that both are tied to."""
    both = ("encoder.embed_tokens.weight", "decoder.embed_tokens.weight")
    folder = store(tmp_path / "model", "T5ForConditionalGeneration", both)
    held = load_file(folder / "model.safetensors")
    if equal:
        held[both[1]] = held[both[0]].clone()
        save_file(held, folder / "model.safetensors", {"format": "pt"})
    loaded = transformers.T5ForConditionalGeneration.from_pretrained(folder)
    model, _ = build_outline(open_path(folder), transformers.T5ForConditionalGeneration)
    assert model.all_tied_weights_keys == loaded.all_tied_weights_keys
    held_by = [model.get_parameter(name) for name in both]
    assert (held_by[0] is held_by[1]) is equal
