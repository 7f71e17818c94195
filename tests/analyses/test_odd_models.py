"""Models that are built unlike others: an answer, or a sentence that says why there is none."""

from __future__ import annotations

import pytest
import torch
import transformers

from inspector.analyses.heads.compute import heads
from inspector.analyses.lens.compute import lens
from inspector.analyses.masked_lm.compute import predict
from inspector.analyses.padding.compute import padding
from inspector.errors import NotInCheckpointError
from inspector.models.loading import load
from tests.conftest import silent
from tests.families import ENCODER, save_checkpoint

TEXT = "w1 w2 w3 w4 w5 w6"


def save_odd(folder, architecture, **sizes):
    model_class = getattr(transformers, architecture)
    torch.manual_seed(0)
    model = model_class(model_class.config_class(**sizes)).eval()
    return save_checkpoint(model, folder / architecture)


def test_an_output_layer_that_is_never_called(tmp_path, open_path):
    """MobileBERT multiplies with two matrices at once: the logits are the model's own."""
    sizes = ENCODER | {"embedding_size": 16, "intra_bottleneck_size": 16, "true_hidden_size": 16,
                       "num_feedforward_networks": 2}  # fmt: skip
    folder = save_odd(tmp_path, "MobileBertForMaskedLM", **sizes)
    checkpoint = open_path(folder)
    result = lens(checkpoint, progress=silent, text=TEXT, k=60, device="cpu", dtype="float32")
    model = transformers.MobileBertForMaskedLM.from_pretrained(folder).eval()
    with torch.inference_mode():
        logits = model(torch.tensor([checkpoint.tokens.encode(TEXT).ids])).logits[0]
    cells = result.cells.query("rung == 'logits'").sort_values(["position", "token_id"])
    assert cells["score"].tolist() == pytest.approx(logits.flatten().tolist(), abs=1e-4)
    assert result.taken_from_model
    assert any("does not call its output layer as a module" in each for each in result.warnings)


@pytest.mark.parametrize("architecture", ["BartForConditionalGeneration", "MBartForConditionalGeneration"])
def test_padding_of_an_untied_encoder_decoder_says_why_nothing_is_measured(open_model, architecture):
    result = padding(open_model(architecture, tie_word_embeddings=False), progress=silent, text=TEXT)
    assert result.gradient is None
    assert "no pass reads the shared matrix" in result.verdict


def test_padding_of_an_output_matrix_of_another_width(tmp_path, open_path):
    sizes = ENCODER | {"input_embedding_size": 16, "output_embedding_size": 24}
    result = padding(open_path(save_odd(tmp_path, "RemBertForMaskedLM", **sizes)), progress=silent,
                     text=TEXT)  # fmt: skip
    assert result.gradient is not None
    assert not result.gradient.tied


def test_a_model_that_pools_its_states_is_run(tmp_path, open_path):
    sizes = {"vocab_size": 60, "block_sizes": [1, 1, 1], "num_decoder_layers": 1, "d_model": 32,
             "n_head": 2, "d_head": 16, "d_inner": 48}  # fmt: skip
    folder = save_odd(tmp_path, "FunnelForMaskedLM", **sizes)
    loaded = load(open_path(folder), "masked_lm")
    assert type(loaded.model).__name__ == "FunnelForMaskedLM"


def test_a_nested_config_that_names_no_model_type(tmp_path, open_path):
    """As MPT's attn_config is saved."""
    sizes = {"vocab_size": 60, "d_model": 32, "n_heads": 2, "n_layers": 2, "max_seq_len": 64}
    folder = save_odd(tmp_path, "MptForCausalLM", **sizes)
    assert '"model_type": ""' in (folder / "config.json").read_text()
    checkpoint = open_path(folder)
    result = lens(checkpoint, progress=silent, text=TEXT, k=60, device="cpu", dtype="float32")
    model = transformers.MptForCausalLM.from_pretrained(folder).eval()
    with torch.inference_mode():
        logits = model(torch.tensor([checkpoint.tokens.encode(TEXT).ids])).logits[0]
    cells = result.cells.query("rung == 'logits'").sort_values(["position", "token_id"])
    assert cells["score"].tolist() == pytest.approx(logits.flatten().tolist(), abs=1e-4)


@pytest.mark.parametrize("architecture", ["T5ForConditionalGeneration", "MarianMTModel"])
def test_an_encoder_decoder_is_not_told_that_its_head_is_missing(open_model, architecture):
    with pytest.raises(NotInCheckpointError, match="is an encoder-decoder model") as refused:
        heads(open_model(architecture), progress=silent, text=TEXT)
    assert "lacks" not in str(refused.value)


def test_an_encoder_decoder_is_not_told_that_it_is_an_encoder_alone(open_model):
    with pytest.raises(NotInCheckpointError, match="is an encoder-decoder model: it generates text and has no"):
        predict(open_model("T5ForConditionalGeneration"), progress=silent, text="w1 [MASK]")
