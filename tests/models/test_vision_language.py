"""Models that read images too: vocabulary, heads and names are those that transformers loads."""

from __future__ import annotations

import pytest
import torch

from inspector.analyses.checks.compute import check
from inspector.analyses.lens.compute import lens
from inspector.analyses.overview.compute import overview
from inspector.analyses.sharing.compute import sharing
from inspector.models.checkpoint import StagedCheckpoint
from inspector.settings import read_settings
from inspector.store.opening import open_checkpoint
from inspector.store.reference import CheckpointRef
from tests.conftest import silent
from tests.families import save_checkpoint
from tests.models.vision_language import VISION_LANGUAGE


@pytest.fixture(scope="module", params=sorted(VISION_LANGUAGE))
def both(request, tmp_path_factory):
    """A checkpoint, and the model that transformers loads from it."""
    torch.manual_seed(0)
    model = VISION_LANGUAGE[request.param]().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn(parameter.shape) * 0.1)
    folder = save_checkpoint(model, tmp_path_factory.mktemp("model") / request.param)
    settings = read_settings({"INSPECTOR_HOME": str(tmp_path_factory.mktemp("home"))})
    manifest, _ = open_checkpoint(
        CheckpointRef("path", str(folder)), settings=settings, progress=silent,
        restrict_paths=False,
    )  # fmt: skip
    return StagedCheckpoint(manifest, settings=settings), type(model).from_pretrained(folder).eval()


def test_the_vocabulary_is_what_looks_tokens_up(both):
    checkpoint, model = both
    truth = model.get_input_embeddings().weight
    assert torch.equal(checkpoint.embedding_matrix(), truth)
    found = overview(checkpoint, progress=silent)
    assert (found.vocab_rows, found.d_model) == tuple(truth.shape)
    several = model.config.is_encoder_decoder
    assert found.heads["causal_lm"] == ("absent" if several else "present")


def test_every_tensor_has_its_place(both):
    checkpoint, model = both
    result = sharing(checkpoint, progress=silent)
    assert result.warnings == ()
    assert result.unique_parameters == model.num_parameters()
    checks = {each.name: each for each in check(checkpoint, progress=silent).checks}
    assert checks["Left-over tensors"].status == "ok"
    assert checks["Heads and weights"].status == "ok"


def test_logits_of_a_text_are_the_models_own(both):
    checkpoint, model = both
    result = lens(checkpoint, progress=silent, text="w1 w2 w3", k=60, device="cpu",
                  dtype="float32")  # fmt: skip
    ids = torch.tensor([checkpoint.tokens.encode("w1 w2 w3").ids])
    inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    if model.config.is_encoder_decoder:
        inputs["decoder_input_ids"] = torch.tensor([[model.config.text_config.decoder_start_token_id]])
    with torch.inference_mode():
        logits = model(**inputs).logits[0, :, :60]
    cells = result.cells.query("rung == 'logits'").sort_values(["position", "token_id"])
    assert cells["score"].tolist() == pytest.approx(logits.flatten().tolist(), abs=1e-4)
