"""What is run to measure padding: batches, masks, means, and what is refused."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest
import torch
from transformers import AutoModel, AutoModelForSeq2SeqLM

from inspector.analyses.padding.compute import padding
from inspector.analyses.padding.compute_batch import label_next, mask_some
from inspector.analyses.padding.result import FRESH
from inspector.errors import RequestError
from tests.analyses.padding.padding_truth import MASK, TEXT, batch_of
from tests.conftest import silent
from tests.families import random_model, save_checkpoint


@pytest.mark.parametrize(
    "name",
    ["BertModel", "DistilBertForMaskedLM", "MPNetForMaskedLM", "AlbertForMaskedLM",
     "GPT2LMHeadModel", "LlamaForCausalLM"],
)  # fmt: skip
def test_the_masked_mean_is_that_of_the_sentence_alone(open_model, name, tmp_path):
    """Padding with its mask changes no hidden state; a plain mean is off by what padding adds."""
    checkpoint = open_model(name)
    averaging = padding(checkpoint, progress=silent, text=TEXT, device="cpu").averaging
    model: Any = AutoModel.from_pretrained(tmp_path / name, attn_implementation="eager").eval()
    batch = batch_of(checkpoint, TEXT)
    with torch.inference_mode():
        together = model(input_ids=batch.ids, attention_mask=batch.mask).last_hidden_state
    for number, sentence in enumerate(TEXT.splitlines()):
        ids = torch.tensor([checkpoint.require_tokens().encode(sentence).ids])
        with torch.inference_mode():
            alone = model(input_ids=ids).last_hidden_state[0].mean(dim=0)
        plain = together[number].mean(dim=0)
        row = averaging.iloc[number]
        assert row["sentence"] == sentence
        assert (row["tokens"], row["tokens"] + row["padding"]) == (ids.shape[1], len(together[0]))
        assert row["difference"] == pytest.approx((plain - alone).norm().item(), abs=2e-5)
        assert row["cosine"] == pytest.approx(torch.cosine_similarity(plain, alone, dim=0).item(), abs=1e-5)
        assert row["relative"] == pytest.approx(row["difference"] / alone.norm().item(), abs=1e-5)
        if row["padding"]:
            of_padding = together[number, ids.shape[1] :].mean(dim=0)
            assert row["padding_norm"] == pytest.approx(of_padding.norm().item(), rel=1e-4)
            apart = row["padding_share"] * (of_padding - alone).norm().item()
            assert row["difference"] == pytest.approx(apart, abs=2e-5)  # k/(n+k) of the way
        else:
            assert row["difference"] == 0


@pytest.mark.parametrize("name", ["T5ForConditionalGeneration", "BartForConditionalGeneration"])
def test_of_two_stacks_the_encoder_is_averaged(tmp_path, open_path, name):
    folder = save_checkpoint(random_model(name), tmp_path / "two")
    checkpoint = open_path(folder)
    averaging = padding(checkpoint, progress=silent, text=TEXT, device="cpu").averaging
    encoder: Any = AutoModelForSeq2SeqLM.from_pretrained(folder).eval().get_encoder()
    for number, sentence in enumerate(TEXT.splitlines()):
        ids = torch.tensor([checkpoint.require_tokens().encode(sentence).ids])
        with torch.inference_mode():
            alone = encoder(input_ids=ids).last_hidden_state[0].mean(dim=0)
        row = averaging.iloc[number]
        assert row["tokens"] == ids.shape[1]
        assert row["relative"] == pytest.approx(row["difference"] / alone.norm().item(), abs=1e-5)


def test_what_would_not_fit_is_refused_in_one_sentence(open_model):
    checkpoint = open_model("BertForMaskedLM")
    checkpoint.settings = dataclasses.replace(checkpoint.settings, worker_nbytes=100_000)
    result = padding(checkpoint, progress=silent, text=TEXT)
    assert result.gradient is None
    assert "A backward pass through BertForMaskedLM needs about" in result.gradient_note
    assert "would need too much memory" in result.verdict


def test_the_fresh_control_is_left_out_where_two_models_would_not_fit(open_model):
    checkpoint = open_model("BertForMaskedLM")
    checkpoint.settings = dataclasses.replace(checkpoint.settings, worker_nbytes=440_000)
    result = padding(checkpoint, progress=silent, text=TEXT)
    assert result.gradient is not None
    assert FRESH not in set(result.experiments["experiment"])
    assert "The control with a fresh model was left out" in result.warnings[0]


def test_masking_takes_ordinary_tokens_alone_and_keeps_their_labels(open_model):
    checkpoint = open_model("BertForMaskedLM")
    batch = batch_of(checkpoint, "w1 w2 w3 w4 w5 w6 w7 w8 w9\n[MASK]\n[UNK] w1")
    ordinary = torch.arange(60) >= 8
    read, labels = mask_some(batch, ordinary, mask_id=MASK)
    assert (labels != -100).sum(dim=1).tolist() == [2, 0, 1]  # ceil(0.15 * 9), none, ceil(0.15)
    chosen = labels != -100
    assert (read.ids[chosen] == MASK).all()
    assert batch.ids[chosen].equal(labels[chosen])
    assert read.ids[~chosen].equal(batch.ids[~chosen])
    assert ordinary[labels[chosen]].all()


def test_batches_always_hold_padding(open_model):
    checkpoint = open_model("BertForMaskedLM")
    batch = batch_of(checkpoint, "w1 w2\n\n  \nw3 w4")
    assert batch.ids.tolist() == [[2, 9, 10, 3, 0, 0, 0, 0], [2, 11, 12, 3, 0, 0, 0, 0]]
    assert batch.mask.sum(dim=1).tolist() == [4, 4]
    assert batch.padding == 8
    uneven = batch_of(checkpoint, "w1\nw1 w2 w3")
    assert uneven.ids.shape == (2, 5)
    assert label_next(uneven).tolist() == [[2, 9, 3, -100, -100], [2, 9, 10, 11, 3]]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (" \n ", "There is no sentence: type one or more, each on its own line."),
        ("w1\n" * 65, "There are 65 sentences: enter at most 64."),
        ("w1 " * 62, "The sentences fill all 64 positions, so there is no room for padding: "
         "shorten them."),
        ("w1 " * 70, "The text has 72 tokens, but BertForMaskedLM takes at most 64: shorten it."),
    ],
)  # fmt: skip
def test_refusals(open_model, text, sentence):
    with pytest.raises(RequestError) as error:
        padding(open_model("BertForMaskedLM"), progress=silent, text=text)
    assert str(error.value) == sentence


@pytest.mark.parametrize("side", ["left", "right"])
def test_a_tokenizer_that_pads_on_the_other_side_is_mentioned(open_path, tmp_path, side):
    folder = save_checkpoint(random_model("GPT2LMHeadModel"), tmp_path / side)
    settings = {"tokenizer_class": "BertTokenizer", "padding_side": side}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings), encoding="utf-8")
    checkpoint = open_path(folder)
    found = padding(checkpoint, progress=silent, text=TEXT, device="cpu")
    said = [
        warning for warning in found.warnings if "pads on the left, but this measurement pads on the right" in warning
    ]
    assert len(said) == (side == "left")
    assert not padding(checkpoint, progress=silent).warnings, "nothing was padded"
    ids, mask = batch_of(checkpoint, TEXT).ids, batch_of(checkpoint, TEXT).mask
    model: Any = AutoModel.from_pretrained(folder).eval()
    short = int(mask.sum(dim=1).argmin())
    alone = ids[short : short + 1, : int(mask[short].sum())]
    pads = torch.zeros_like(ids[:1, : ids.shape[1] - alone.shape[1]])
    with torch.inference_mode():
        before = model(torch.cat([pads, alone], 1), attention_mask=torch.cat([pads, torch.ones_like(alone)], 1))
        after = model(ids, attention_mask=mask).last_hidden_state[short, : alone.shape[1]]
        expected = model(alone).last_hidden_state[0]
    torch.testing.assert_close(after, expected, atol=1e-5, rtol=0)
    assert (before.last_hidden_state[0, pads.shape[1] :] - expected).abs().max() > 1e-2, "positions do not move"
