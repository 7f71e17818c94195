"""Heads that write text, against transformers' own generation."""

from __future__ import annotations

import pandas as pd
import pytest
import torch
from transformers import GenerationConfig

from tests.analyses.heads.heads_cases import TEXT, close, run_heads
from tests.conftest import silent
from tests.families import VOCAB, random_model


@pytest.mark.parametrize("name", ["GPT2LMHeadModel", "LlamaForCausalLM", "GPTNeoXForCausalLM"])
def test_generation_is_transformers_own(open_model, name):
    checkpoint, model = open_model(name), random_model(name)
    found = run_heads(checkpoint, progress=silent, text=TEXT, k=5, new_tokens=8, device="cpu")
    ids = torch.tensor([checkpoint.tokens.encode(TEXT).ids])
    config = GenerationConfig(do_sample=False, max_new_tokens=8, pad_token_id=0,
                              eos_token_id=model.config.eos_token_id)  # fmt: skip
    with torch.inference_mode():
        logits = model(ids).logits[0, -1]
        whole = model.generate(ids, attention_mask=torch.ones_like(ids), generation_config=config)
    best = logits.softmax(0).topk(5)
    assert found.head == "causal_lm"
    assert found.output["logits"] == (1, ids.shape[1], VOCAB)
    assert found.result.next["token_id"].tolist() == best.indices.tolist()
    assert close(found.result.next["probability"].tolist(), best.values)
    assert found.result.steps["token_id"].tolist() == whole[0, ids.shape[1] :].tolist()
    assert set(found.result.steps["rank"]) == {0}


def test_sampling_draws_from_the_tempered_softmax(open_model):
    """Each step replayed without a cache: the same draw from the same distribution."""
    checkpoint, model = open_model("GPT2LMHeadModel"), random_model("GPT2LMHeadModel")
    options = {"text": TEXT, "new_tokens": 6, "temperature": 1.7, "seed": 11, "device": "cpu"}
    result = run_heads(checkpoint, progress=silent, **options).result
    ids = list(checkpoint.tokens.encode(TEXT).ids)
    draw = torch.Generator().manual_seed(11)
    for step in result.steps.to_dict("records"):
        with torch.inference_mode():
            logits = model(torch.tensor([ids])).logits[0, -1]
        drawn = int(torch.multinomial((logits / 1.7).softmax(0), 1, generator=draw))
        chances = logits.softmax(0)
        assert step["token_id"] == drawn
        assert close(step["probability"], chances[drawn])
        assert step["rank"] == int((chances > chances[drawn]).sum())
        assert close(step["entropy"], -(chances * chances.log()).sum())
        ids.append(drawn)
    assert len(result.steps) == 6
    again = run_heads(checkpoint, progress=silent, **options).result
    pd.testing.assert_frame_equal(again.steps, result.steps)


def test_a_continuation_stops_at_the_last_position_and_at_the_end_of_text(open_model):
    checkpoint = open_model("GPT2LMHeadModel")
    result = run_heads(checkpoint, progress=silent, text=TEXT, new_tokens=200).result
    length = len(checkpoint.tokens.encode(TEXT).ids)
    assert len(result.steps) == 64 - length
    assert result.stopped == "the model has only 64 positions"
    third = result.steps["token_id"].tolist()[2]
    ending = open_model("GPT2LMHeadModel", eos_token_id=third)
    stopped = run_heads(ending, progress=silent, text=TEXT, new_tokens=50).result
    first = result.steps["token_id"].tolist().index(third)
    assert len(stopped.steps) == first + 1
    assert stopped.stopped.endswith("ends a text")


@pytest.mark.parametrize("name", ["BertForMaskedLM", "RobertaForMaskedLM", "ElectraForMaskedLM"])
def test_masked_lm_fills_every_position(open_model, name):
    checkpoint, text = open_model(name), "w1 [MASK] w3"
    found = run_heads(checkpoint, progress=silent, text=text)
    ids = torch.tensor([checkpoint.tokens.encode(text).ids])
    with torch.inference_mode():
        best = random_model(name)(ids).logits[0].softmax(1).max(1)
    assert found.head == "masked_lm"
    assert found.result.tokens["prediction_id"].tolist() == best.indices.tolist()
    assert close(found.result.tokens["probability"].tolist(), best.values)
    assert found.result.tokens["is_mask"].tolist() == [False, False, True, False, False]
