"""Masked predictions against transformers' own forward pass."""

from __future__ import annotations

import itertools

import pytest
import torch

from inspector.analyses.masked_lm import predict
from inspector.errors import NotInCheckpointError, RequestError

from .conftest import silent
from .families import MODELS, random_model, save_checkpoint

TEXT = "w1 [MASK] w3 [MASK] w30"
MASKED = sorted(name for name in MODELS if name.endswith(("MaskedLM", "PreTraining")))


@pytest.mark.parametrize("architecture", MASKED)
def test_predictions_are_the_models_own(open_model, architecture):
    checkpoint = open_model(architecture)
    result = predict(checkpoint, progress=silent, text=TEXT, k=4, device="cpu")
    ids = torch.tensor([checkpoint.tokens.encode(TEXT).ids])
    with torch.inference_mode():
        output = random_model(architecture)(ids)
    logits = output[0] if architecture.endswith("MaskedLM") else output.prediction_logits
    positions = (ids[0] == checkpoint.tokens.role("mask")[1]).nonzero().flatten().tolist()
    assert [mask.position for mask in result.masks] == positions
    for mask in result.masks:
        scores = logits[0, mask.position]
        best = scores.topk(4)
        assert mask.predictions["token_id"].tolist() == best.indices.tolist()
        assert mask.predictions["logit"].tolist() == pytest.approx(best.values.tolist(), abs=1e-4)
        assert mask.predictions["probability"].tolist() == pytest.approx(
            scores.softmax(0)[best.indices].tolist(), abs=1e-5
        )


def test_joint_is_the_chain_rule(open_model):
    """The best joint answer scores log p(first) + log p(second | first), recomputed by hand."""
    checkpoint = open_model("BertForMaskedLM")
    result = predict(checkpoint, progress=silent, text=TEXT)
    model = random_model("BertForMaskedLM")
    tokens = checkpoint.tokens
    ids = torch.tensor([tokens.encode(TEXT).ids])
    places = [mask.position for mask in result.masks]
    for joint in result.joint:
        filled, total = ids.clone(), 0.0
        for place, token in zip(places, joint.tokens, strict=True):
            with torch.inference_mode():
                chances = model(filled).logits[0, place].log_softmax(0)
            total += float(chances[tokens.find(token)])
            filled[0, place] = tokens.find(token)
        assert joint.log_probability == pytest.approx(total, abs=1e-4)
    pairs = [joint.log_probability for joint in result.joint]
    assert pairs == sorted(pairs, reverse=True)
    assert all(a.tokens != b.tokens for a, b in itertools.combinations(result.joint, 2))


def test_targets_keep_the_probability_of_the_whole_vocabulary(open_model):
    checkpoint = open_model("BertForMaskedLM")
    everything = predict(checkpoint, progress=silent, text=TEXT, k=60).masks[0].predictions
    asked = predict(checkpoint, progress=silent, text=TEXT, targets=("w5", "w7")).masks[0]
    assert sorted(asked.predictions["token"]) == ["w5", "w7"]
    known = everything.set_index("token")["probability"]
    for row in asked.predictions.to_dict("records"):
        assert row["probability"] == pytest.approx(known[row["token"]], abs=1e-6)


@pytest.mark.parametrize("architecture", ["BertModel", "BertForSequenceClassification"])
def test_no_head_is_said_and_nothing_predicted(open_model, architecture):
    with pytest.raises(NotInCheckpointError, match=rf"^{architecture} has no MLM head"):
        predict(open_model(architecture), progress=silent, text=TEXT)


def test_causal_model_is_told_apart(open_model):
    with pytest.raises(NotInCheckpointError, match="causal language model"):
        predict(open_model("GPT2LMHeadModel"), progress=silent, text=TEXT)


def test_half_a_head_is_no_head(tmp_path, open_path):
    """One missing tensor of the transform is enough: it would be random."""
    from safetensors.torch import load_file, save_file

    folder = save_checkpoint(random_model("BertForMaskedLM"), tmp_path / "half")
    tensors = load_file(folder / "model.safetensors")
    del tensors["cls.predictions.transform.dense.weight"]
    save_file(tensors, folder / "model.safetensors")
    with pytest.raises(NotInCheckpointError, match="no MLM head"):
        predict(open_path(folder), progress=silent, text=TEXT)


def test_missing_layer_is_refused(tmp_path, open_path):
    from safetensors.torch import load_file, save_file

    folder = save_checkpoint(random_model("BertForMaskedLM"), tmp_path / "gap")
    tensors = load_file(folder / "model.safetensors")
    del tensors["bert.encoder.layer.1.output.dense.weight"]
    save_file(tensors, folder / "model.safetensors")
    with pytest.raises(NotInCheckpointError, match=r"bert\.encoder\.layer\.1\.output\.dense"):
        predict(open_path(folder), progress=silent, text=TEXT)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"text": "w1"}, "The text has no [MASK]: write it where a word is to be guessed."),
        ({"text": "", "k": 3}, "The text has no [MASK]: write it where a word is to be guessed."),
        ({"text": TEXT, "k": 5000}, "k is 5000: ask for 1 to 1,000 tokens."),
        ({"text": TEXT, "targets": ("zzz",)}, "'zzz' is not one token of BertForMaskedLM: type "
         'a word that is in its vocabulary, or a row as "id 37".'),
    ],
)  # fmt: skip
def test_refusals(open_model, options, sentence):
    with pytest.raises(RequestError) as error:
        predict(open_model("BertForMaskedLM"), progress=silent, **options)
    assert str(error.value) == sentence
