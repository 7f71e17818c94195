"""The padding row in the file, and in the model that transformers makes of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file

from inspector.analyses.padding.compute import padding
from inspector.analyses.padding.result import AS_IT_IS
from inspector.models.checkpoint import StagedCheckpoint
from inspector.models.loading import plan_for
from inspector.models.placing.streaming import stream_model
from inspector.results.plain import to_json
from tests.conftest import silent
from tests.families import (
    DECODER,
    ENCODER,
    ENCODER_DECODER,
    MODELS,
    RENAMED,
    UNLISTED,
    UNLISTED_MASKED,
    VOCAB,
    WITHOUT_HEAD,
    save_checkpoint,
)

FUNNEL = {"vocab_size": VOCAB, "block_sizes": [1, 1], "num_decoder_layers": 1, "d_model": 32, "n_head": 2, "d_head": 16,
          "d_inner": 48, "pad_token_id": 0}  # fmt: skip
YOUTU = DECODER | {"head_dim": 8, "q_lora_rank": 16, "kv_lora_rank": 16, "qk_rope_head_dim": 8, "qk_nope_head_dim": 8,
                   "v_head_dim": 16}  # fmt: skip
# Classes that set the row to zero after loading
ZEROING: dict[str, dict[str, Any]] = {"FunnelForMaskedLM": FUNNEL, "FunnelModel": FUNNEL, "YoutuForCausalLM": YOUTU}
# Classes with an initialization of their own that leave what was loaded as it is
LEAVING: dict[str, dict[str, Any]] = {
    "XLMWithLMHeadModel": {"vocab_size": VOCAB, "emb_dim": 32, "n_layers": 2, "n_heads": 2, "pad_index": 0},
    "IBertForMaskedLM": ENCODER | {"pad_token_id": 0},
    "LukeForMaskedLM": ENCODER | {"pad_token_id": 0, "entity_vocab_size": 10, "entity_emb_size": 16},
}
FAMILIES = MODELS | ENCODER_DECODER | UNLISTED | UNLISTED_MASKED | RENAMED | WITHOUT_HEAD | ZEROING | LEAVING


def save(folder: Path, architecture: str, **changes: Any) -> Path:
    """Save a model without a zero in it, the padding row included."""
    model_class = getattr(transformers, architecture)
    torch.manual_seed(0)
    model = model_class(model_class.config_class(**(FAMILIES[architecture] | changes))).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn(parameter.shape) * 0.2)
    return save_checkpoint(model, folder)


def loaded_norms(folder: Path, architecture: str) -> torch.Tensor:
    """Norms of the rows in what transformers' own loader makes of a file."""
    model = getattr(transformers, architecture).from_pretrained(folder)
    return torch.linalg.vector_norm(model.get_input_embeddings().weight.detach(), dim=1)


@pytest.mark.parametrize("architecture", sorted(FAMILIES))
def test_rows_that_a_class_sets_to_zero_are_found(tmp_path, open_path, architecture):
    folder = save(tmp_path / "model", architecture)
    checkpoint = open_path(folder)
    zero = (loaded_norms(folder, architecture) == 0).nonzero()[:, 0].tolist()
    assert list(checkpoint.zeroed_rows) == zero
    assert bool(zero) is (architecture in ZEROING)
    assert (checkpoint.embedding_matrix() != 0).any(dim=1).all()


@pytest.mark.parametrize("architecture", sorted(ZEROING))
def test_both_norms_are_told(tmp_path, open_path, architecture):
    folder = save(tmp_path / "model", architecture)
    checkpoint = open_path(folder)
    found = padding(checkpoint, progress=silent)
    stored = float(checkpoint.embedding_matrix()[0].norm())
    assert found.pad_id == 0
    assert found.norm == pytest.approx(stored)
    assert found.loaded_norm == loaded_norms(folder, architecture)[0] == 0
    assert to_json(found)["loaded_norm"] == 0
    assert found.loading == (
        f"In the file, the norm of this row is {stored:.3f}. In the model it is 0: {architecture} sets the row to zero "
        "after it has loaded the file."
    )
    assert found.verdict.startswith(
        f"{architecture} sets the padding vector to zero after loading it, but in the file it is not zero (norm "
    )


@pytest.mark.parametrize("architecture", ["BertForMaskedLM", "LlamaForCausalLM", "LukeForMaskedLM"])
def test_where_the_class_leaves_the_row_both_are_one(tmp_path, open_path, architecture):
    found = padding(open_path(save(tmp_path / "model", architecture)), progress=silent)
    assert (found.loaded_norm, found.loading) == (found.norm, "")
    assert found.verdict.startswith("The padding vector is not zero (norm ")


def test_a_row_that_is_zero_in_the_file_is_just_zero(tmp_path, open_path):
    folder = save(tmp_path / "model", "FunnelForMaskedLM")
    file = folder / "model.safetensors"
    held = load_file(file)
    held["funnel.embeddings.word_embeddings.weight"][0] = 0
    save_file(held, file, {"format": "pt"})
    found = padding(open_path(folder), progress=silent)
    assert (found.norm, found.loaded_norm, found.loading) == (0, 0, "")


def test_a_row_filled_from_the_output_matrix_is_not_set_to_zero(tmp_path, open_path):
    """A loader sets the random row to zero, and takes another matrix in its place afterwards."""
    folder = save(tmp_path / "model", "YoutuForCausalLM", tie_word_embeddings=True)
    file = folder / "model.safetensors"
    held = load_file(file)
    held["lm_head.weight"] = held.pop("model.embed_tokens.weight")
    save_file(held, file, {"format": "pt"})
    checkpoint = open_path(folder)
    assert checkpoint.embedding.name == "lm_head.weight"
    assert (loaded_norms(folder, "YoutuForCausalLM") > 0).all()
    assert checkpoint.zeroed_rows == ()


def test_gradients_are_told_with_the_norm_of_the_model_that_ran(tmp_path, open_path):
    checkpoint: StagedCheckpoint = open_path(save(tmp_path / "model", "YoutuForCausalLM"))
    text = "w1 w2 w3 w4 w5 w6 w7 w8\nw1 w2 w3 w4"
    found = padding(checkpoint, progress=silent, text=text, device="cpu", dtype="float32")
    own = found.experiments.query(f"experiment == '{AS_IT_IS}' and role == 'as padding'")
    assert own["row_norm"].tolist() == [0]
    assert found.norm is not None
    assert found.norm > 0


@pytest.mark.parametrize("tied", [True, False])
def test_a_streamed_model_has_the_row_that_a_loaded_one_has(tmp_path, open_path, tied):
    folder = save(tmp_path / "model", "YoutuForCausalLM", tie_word_embeddings=tied)
    checkpoint: StagedCheckpoint = open_path(folder)
    loaded: Any = transformers.YoutuForCausalLM.from_pretrained(folder)
    plan = plan_for(checkpoint, "causal_lm", device="stream", dtype="float32")
    streamed: Any = stream_model(checkpoint, "causal_lm", plan).model
    for own, theirs in ((streamed.get_input_embeddings(), loaded.get_input_embeddings()),
                        (streamed.get_output_embeddings(), loaded.get_output_embeddings())):  # fmt: skip
        assert torch.equal(own.weight, theirs.weight)
    assert (streamed.get_input_embeddings().weight[0] == 0).all()
