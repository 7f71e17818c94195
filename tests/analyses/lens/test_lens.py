"""The lens against transformers' own logits and a brute-force ranking."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest
import torch
from transformers import AutoModel, AutoModelForCausalLM, AutoModelForMaskedLM

from inspector.analyses.lens import compute_reading
from inspector.analyses.lens.compute import lens
from inspector.analyses.lens.compute_reading import LensReading
from inspector.analyses.lens.request import LensRequest
from inspector.errors import NotInCheckpointError, RequestError
from inspector.models import running
from inspector.models.loading import load
from inspector.models.reading.frames import by_layer, with_tokens
from inspector.models.reading.lens_run import prepare
from tests.conftest import silent
from tests.families import random_model
from tests.sentences import SURROGATE

TEXT = "w1 w2 w3 ##a w30"


def truth(architecture: str, ids: list[int]) -> tuple[torch.Tensor, tuple[torch.Tensor, ...]]:
    """Logits and hidden states of the model that was saved, by its own forward method."""
    with torch.inference_mode():
        output = random_model(architecture)(torch.tensor([ids]), output_hidden_states=True)
    logits = getattr(output, "logits", None)
    return (output.prediction_logits if logits is None else logits)[0], output.hidden_states


def ids_of(checkpoint) -> list[int]:
    return list(checkpoint.tokens.encode(TEXT).ids)


def test_last_logits_are_the_models_own(open_model, architecture):
    checkpoint = open_model(architecture)
    result = lens(checkpoint, progress=silent, text=TEXT, k=3, dtype="float32", device="cpu")
    logits, hidden_states = truth(architecture, ids_of(checkpoint))
    assert result.rungs[-1] == "logits"
    assert result.max_abs_error is not None
    assert result.max_abs_error <= (result.tolerance or 0)
    largest = max(1.0, logits.abs().max().item())
    assert result.tolerance == pytest.approx(8 * torch.finfo(torch.float32).eps * largest)
    last = result.cells.query("rung == 'logits' and layer == @result.cells.layer.max()")
    best = logits.topk(3, dim=1)
    assert last["token_id"].tolist() == best.indices.flatten().tolist()
    assert last["score"].tolist() == pytest.approx(best.values.flatten().tolist(), abs=1e-4)
    probability = logits.softmax(dim=1).gather(1, best.indices)
    assert last["probability"].tolist() == pytest.approx(probability.flatten().tolist(), abs=1e-5)
    assert len(result.layers) == len(hidden_states)


def test_logits_that_are_not_made_at_once_are_the_models_own(open_model, architecture):
    """As for large vocabularies and long texts: compared block by block, nothing else changes."""
    checkpoint = open_model(architecture)
    options = {"text": TEXT, "k": 3, "dtype": "float32", "device": "cpu"}
    whole = lens(checkpoint, progress=silent, **options)
    task = "masked_lm" if checkpoint.heads["masked_lm"] == "present" else "causal_lm"
    ids = torch.tensor([ids_of(checkpoint)])
    run = running.forward(load(checkpoint, task), ids, head=True, every_layer=True, by_blocks_from=1)
    assert (run.logits is None) == (run.replay is not None)
    expected = truth(architecture, ids[0].tolist())[0]
    for block in (slice(0, 2), slice(2, len(expected)), slice(1, 99)):
        found = run.logits_of(block)
        assert found is not None
        torch.testing.assert_close(found[0], expected[block], rtol=1e-5, atol=1e-5)
    request, tokens = LensRequest(**options), checkpoint.require_tokens()
    run = prepare(checkpoint, progress=silent, text=TEXT, pins=(), decoder_text="", dtype="float32", device="cpu",
                      by_blocks_from=1)  # fmt: skip
    reading = LensReading(request, tokens, None)
    reading.read_last(run, silent)
    cells = reading.finish(run, silent)["cells"]
    assert run.error is not None
    assert run.error <= run.tolerance
    pd.testing.assert_frame_equal(with_tokens(by_layer(cells), tokens, place=4), whole.cells)


def test_layers_that_are_read_together_are_those_read_alone(open_model, architecture, monkeypatch):
    """A block may hold one state, two layers of a text, or all of them: the tables are the same."""
    checkpoint = open_model(architecture)
    options = {"text": TEXT, "k": 3, "pins": ["w3"], "dtype": "float32", "device": "cpu"}
    states_count = checkpoint.config.num_hidden_layers + 1
    alone = [lens(checkpoint, progress=silent, layers=[layer], **options) for layer in range(states_count)]
    for states in (1, 14, 256):
        monkeypatch.setattr(compute_reading, "block_states", lambda *_, states=states: states)
        together = lens(checkpoint, progress=silent, **options)
        for name in ("cells", "pinned", "states"):
            parts = [getattr(each, name).drop(columns="agrees", errors="ignore") for each in alone]
            pd.testing.assert_frame_equal(
                getattr(together, name).drop(columns="agrees", errors="ignore"),
                pd.concat(parts, ignore_index=True), rtol=1e-4, atol=1e-5, obj=f"{name} in blocks of {states}",
            )  # fmt: skip


def test_a_head_is_replayed_where_its_model_asks_the_base_model(open_model):
    for architecture in ("GPT2LMHeadModel", "LlamaForCausalLM", "Gemma2ForCausalLM"):
        checkpoint = open_model(architecture)
        loaded = load(checkpoint, "causal_lm")
        ids = torch.tensor([ids_of(checkpoint)])
        run = running.forward(loaded, ids, head=True, every_layer=True, by_blocks_from=1)
        assert run.replay
        assert "forward" not in vars(loaded.model.base_model)  # nothing is left behind


def test_inner_logits_are_the_head_applied_early(open_model):
    checkpoint = open_model("GPT2LMHeadModel")
    result = lens(checkpoint, progress=silent, text=TEXT, k=1, layers=[1])
    model = random_model("GPT2LMHeadModel")
    _, hidden_states = truth("GPT2LMHeadModel", ids_of(checkpoint))
    with torch.inference_mode():
        logits = model.lm_head(model.transformer.ln_f(hidden_states[1][0]))
    cells = result.cells.query("rung == 'logits'")
    assert cells["layer"].unique().tolist() == [1]
    assert cells["token_id"].tolist() == logits.argmax(dim=1).tolist()


def test_dot_and_cosine_by_brute_force(open_model):
    checkpoint = open_model("BertForMaskedLM")
    result = lens(checkpoint, progress=silent, text=TEXT, k=2)
    model = random_model("BertForMaskedLM")
    embedding = model.bert.embeddings.word_embeddings.weight.detach()
    _, hidden_states = truth("BertForMaskedLM", ids_of(checkpoint))
    cells = result.cells.set_index(["rung", "layer", "position"]).sort_index()
    for layer, hidden in enumerate(hidden_states):
        for position, state in enumerate(hidden[0]):
            dots = [float(state @ row) for row in embedding]
            lengths = [float(state.norm() * row.norm()) for row in embedding]
            cosines = [dot / length for dot, length in zip(dots, lengths, strict=True)]
            for rung, scores in (("dot", dots), ("cosine", cosines)):
                cell = cells.loc[(rung, layer, position)]
                best = sorted(range(len(scores)), key=scores.__getitem__, reverse=True)[:2]
                assert cell["token_id"].tolist() == best
                assert cell["score"].tolist() == pytest.approx([scores[b] for b in best], abs=1e-4)


def test_sizes_that_differ_leave_dot_and_cosine_out(open_model):
    result = lens(open_model("AlbertForMaskedLM"), progress=silent, text=TEXT)
    assert result.rungs == ("dense", "activation", "LayerNorm", "logits")
    assert "32 wide and embeddings 16" in result.warnings[0]


def test_no_head_gives_no_logits(open_model):
    checkpoint = open_model("BertModel")
    result = lens(checkpoint, progress=silent, text=TEXT, k=1)
    assert result.rungs == ("dot", "cosine")
    assert result.max_abs_error is None
    assert "random head" in result.warnings[0]
    with torch.inference_mode():
        model = AutoModel.from_config(random_model("BertModel").config)
    assert len(result.layers) == model.config.num_hidden_layers + 1


def test_nan_row_is_left_out_and_named(tmp_path, open_path):
    from tests.families import save_checkpoint

    model = random_model("BertForMaskedLM")
    with torch.no_grad():
        model.bert.embeddings.word_embeddings.weight[20] = float("nan")
    checkpoint = open_path(save_checkpoint(model, tmp_path / "nan"))
    result = lens(checkpoint, progress=silent, text=TEXT, k=5)
    assert 20 not in set(result.cells["token_id"])
    assert "w12" in result.warnings[0]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"text": "w1", "k": 0}, "Tokens per cell must be between 1 and 100, not 0."),
        ({"text": "w1", "layers": [9]}, "There is no layer 9: this model has layers 0 (embeddings) to 2."),
        ({"text": "w1 " * 70}, "The text has 72 tokens, but BertForMaskedLM takes at most 64: shorten it."),
        ({"text": "w1", "device": "tpu"},
         "Device must be auto, cpu, cuda, mps, spread or stream, not 'tpu'."),
        ({"text": "w1", "dtype": "int8"},
         "Dtype must be auto, float32, bfloat16 or float16, not 'int8'."),
        ({"text": "\ud800"}, SURROGATE),
    ],
)  # fmt: skip
def test_refusals(open_model, options, sentence):
    with pytest.raises(RequestError) as error:
        lens(open_model("BertForMaskedLM"), progress=silent, **options)
    assert str(error.value) == sentence


def test_without_tokenizer(tmp_path, open_path):
    from tests.families import save_checkpoint

    folder = save_checkpoint(random_model("BertForMaskedLM"), tmp_path / "bare", tokenizer=False)
    with pytest.raises(NotInCheckpointError, match="no tokenizer in this checkpoint"):
        lens(open_path(folder), progress=silent, text=TEXT)


def test_auto_classes_agree_with_the_saved_model(open_model, tmp_path):
    """The builder of these tests saves what it means to: the Auto classes load it without loss."""
    for name, auto in (("BertForMaskedLM", AutoModelForMaskedLM), ("GPT2LMHeadModel", AutoModelForCausalLM)):
        open_model(name)
        loaded: Any = auto.from_pretrained(tmp_path / name, output_loading_info=True)
        model, info = loaded
        assert not info["missing_keys"]
        assert model.get_input_embeddings().weight.equal(random_model(name).get_input_embeddings().weight)


def test_a_model_without_layers_has_no_states_to_read(open_model):
    checkpoint = open_model("BertForMaskedLM", num_hidden_layers=0)
    with pytest.raises(NotInCheckpointError, match="sets 0 layers, so there are no hidden states to read"):
        lens(checkpoint, progress=silent, text=TEXT)
