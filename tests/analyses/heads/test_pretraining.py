"""The pretraining objective against the model's own loss."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import pandas as pd
import pytest
import torch
from torch.nn.functional import cross_entropy

from inspector.analyses.heads.result import KEPT, MASKED, NOT_CHOSEN, REPLACED
from inspector.analyses.pretraining.compute import pretrain
from inspector.errors import CheckpointError, RequestError
from inspector.models.inputs import IGNORED
from tests.analyses.heads.heads_cases import PAIR, TEXT, close
from tests.conftest import silent
from tests.families import VOCAB, random_model, save_checkpoint
from tests.sentences import SURROGATE

run_pretrain: Any = pretrain


@pytest.mark.parametrize("label", [0, 1])
def test_the_objective_is_the_models_own_loss(make, label):
    case = make("Bert", "ForPreTraining")
    found = run_pretrain(case.checkpoint, progress=silent, text=TEXT, pair=PAIR, share=0.6, seed=4,
                     follows=label == 0, device="cpu")  # fmt: skip
    table = found.tokens
    inputs = case.tokenizer(TEXT, PAIR, return_tensors="pt")
    assert table["before_id"].tolist() == inputs["input_ids"][0].tolist()
    inputs["input_ids"] = torch.tensor([table["after_id"].tolist()])
    labels = torch.tensor([table["label"].tolist()])
    with torch.inference_mode():
        output = case.model(**inputs, labels=labels, next_sentence_label=torch.tensor([label]))
    assert close(found.loss, output.loss)
    assert close(found.masked_lm_loss + found.next_sentence_loss, output.loss)
    own = cross_entropy(output.prediction_logits[0], labels[0], reduction="none")
    chosen = table[table["label"] != IGNORED]
    assert close(chosen["loss"].tolist(), own[labels[0] != IGNORED])
    assert close(chosen["loss"].mean(), found.masked_lm_loss)
    assert close(found.is_next, output.seq_relationship_logits[0].softmax(0)[0])
    assert table[table["label"] == IGNORED]["loss"].isna().all()


def test_without_a_second_text_the_loss_is_masked_lm_alone(make):
    case = make("Bert", "ForPreTraining")
    found = run_pretrain(case.checkpoint, progress=silent, text=TEXT, share=0.5)
    assert (found.next_sentence_label, found.next_sentence_loss, found.is_next) == (None,) * 3
    labels = torch.tensor(found.tokens["label"].tolist())
    with torch.inference_mode():
        output = case.model(torch.tensor([found.tokens["after_id"].tolist()]))
    assert close(found.loss, cross_entropy(output.prediction_logits[0], labels))


@pytest.mark.parametrize("name", ["RobertaForMaskedLM", "DistilBertForMaskedLM", "AlbertForMaskedLM"])
def test_a_masked_lm_alone_has_its_own_loss(open_model, name):
    checkpoint = open_model(name)
    found = run_pretrain(checkpoint, progress=silent, text=TEXT, share=0.7, seed=2)
    rows = found.tokens
    with torch.inference_mode():
        output = random_model(name)(
            torch.tensor([rows["after_id"].tolist()]), labels=torch.tensor([rows["label"].tolist()])
        )
    assert close(found.loss, output.loss)
    assert close(found.masked_lm_loss, output.loss)


def test_masking_is_80_10_10_seeded_and_never_touches_special_tokens(open_model):
    checkpoint = open_model("BertForMaskedLM")
    text = " ".join(f"w{place % 45}" for place in range(60))
    counts: Counter[str] = Counter()
    ids = checkpoint.tokens.encode(text).ids
    for seed in range(25):
        rows = run_pretrain(checkpoint, progress=silent, text=text, share=1.0, seed=seed).tokens
        counts.update(rows["what"])
        for row in rows.to_dict("records"):
            special = row["position"] in (0, 61)
            assert (row["what"] == NOT_CHOSEN) == special
            assert row["label"] == (IGNORED if special else ids[row["position"]])
            wanted = {MASKED: {4}, KEPT: {row["before_id"]}, NOT_CHOSEN: {row["before_id"]},
                      REPLACED: set(range(VOCAB))}  # fmt: skip
            assert row["after_id"] in wanted[row["what"]]
    total = 25 * 60
    # Four standard deviations of a binomial: a wrong share fails, a right one does not.
    for kind, share in ((MASKED, 0.8), (REPLACED, 0.1), (KEPT, 0.1)):
        spread = 4 * math.sqrt(total * share * (1 - share))
        assert abs(counts[kind] - share * total) < spread
    tables = [run_pretrain(checkpoint, progress=silent, text=text, seed=seed).tokens for seed in (1, 1, 2)]
    pd.testing.assert_frame_equal(tables[0], tables[1])
    assert tables[0]["label"].tolist() != tables[2]["label"].tolist()
    assert (tables[0]["label"] != IGNORED).sum() == round(0.15 * 60)


def test_a_damaged_head_gives_no_losses(tmp_path, open_path):
    model = random_model("BertForPreTraining")
    with torch.no_grad():
        model.cls.predictions.transform.dense.bias[0] = float("nan")
    with pytest.raises(CheckpointError, match=r"its cls\.predictions\.transform\.dense\.bias contains NaN or infinity"):
        run_pretrain(open_path(save_checkpoint(model, tmp_path / "nan")), progress=silent, text=TEXT)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"share": 0.0}, "Share must be above 0 and at most 1, not 0."),
        ({"text": ""}, "There is no text: type a sentence to mask."),
        ({"text": "[MASK]"}, "The text has no ordinary token to mask: type a word or a sentence."),
        ({"text": "a\ud800"}, SURROGATE),
    ],
)
def test_refusals_of_the_objective(open_model, options, sentence):
    with pytest.raises(RequestError) as error:
        run_pretrain(open_model("BertForMaskedLM"), progress=silent, **({"text": TEXT} | options))
    assert str(error.value) == sentence
