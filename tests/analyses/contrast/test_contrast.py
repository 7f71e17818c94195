"""Two texts over the whole vocabulary against transformers, one text at a time."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from transformers import AutoModelForMaskedLM

from inspector.analyses.contrast.compute import contrast, favored, jensen_shannon
from inspector.errors import CheckpointError, NotInCheckpointError, RequestError
from inspector.results.plain import to_json
from tests.conftest import silent
from tests.families import VOCAB, random_model, save_checkpoint

FAMILIES = (
    "AlbertForMaskedLM",
    "BertForMaskedLM",
    "DistilBertForMaskedLM",
    "MPNetForMaskedLM",
    "RobertaForMaskedLM",
    "XLMRobertaForMaskedLM",
)
FIRST, SECOND = "w1 [MASK] w3", "w5 w6 w7 w8ab [MASK]"  # not equally long: one is padded


def truth(folder: Path, ids: tuple[int, ...]) -> np.ndarray:
    """Log probabilities at the mask, by transformers itself, float64."""
    model = AutoModelForMaskedLM.from_pretrained(folder).eval()
    with torch.inference_mode():
        logits = model(torch.tensor([ids])).logits[0, ids.index(4)]
    return logits.double().log_softmax(0).numpy()


@pytest.mark.parametrize("architecture", FAMILIES)
def test_every_token_of_the_vocabulary_is_the_models_own(tmp_path, open_model, architecture):
    checkpoint = open_model(architecture)
    result = contrast(checkpoint, progress=silent, first=FIRST, second=SECOND, device="cpu")
    first, second = (truth(tmp_path / architecture, checkpoint.tokens.encode(text).ids) for text in (FIRST, SECOND))
    frame = result.tokens
    assert frame["token_id"].tolist() == list(range(VOCAB))
    assert frame["first"].to_numpy() == pytest.approx(first, abs=2e-4)
    assert frame["second"].to_numpy() == pytest.approx(second, abs=2e-4)
    assert frame["likelihood"].to_numpy() == pytest.approx((first + second) / 2, abs=2e-4)
    assert frame["difference"].to_numpy() == pytest.approx(first - second, abs=4e-4)
    assert frame["token"].tolist()[8:10] == ["w0", "w1"]
    kinds = frame["kind"].tolist()
    assert (kinds[0], kinds[4], kinds[5], kinds[8], kinds[-1]) == (
        "padding", "special", "unused", "word", "subword"
    )  # fmt: skip
    p, q = np.exp(first), np.exp(second)
    middle = (p + q) / 2
    bits = (np.sum(p * np.log2(p / middle)) + np.sum(q * np.log2(q / middle))) / 2
    assert result.jensen_shannon == pytest.approx(bits, abs=1e-4)


def test_the_most_contrasted_tokens_of_each_text(open_model):
    """Found again by a plain loop: at or above an even guess in both, the largest ratio first."""
    result = contrast(open_model("BertForMaskedLM"), progress=silent, first=FIRST, second=SECOND,
                      k=5)  # fmt: skip
    rows = [
        row for row in result.tokens.to_dict("records")
        if math.sqrt(math.exp(row["first"]) * math.exp(row["second"])) >= 1 / VOCAB
    ]  # fmt: skip
    assert result.floor == pytest.approx(math.log(1 / VOCAB))
    ratios = sorted((math.exp(row["first"] - row["second"]), row["token"]) for row in rows)
    for_first = [token for ratio, token in reversed(ratios) if ratio > 1][:5]
    for_second = [token for ratio, token in ratios if ratio < 1][:5]
    assert result.favours_first["token"].tolist() == for_first
    assert result.favours_second["token"].tolist() == for_second
    assert for_first
    assert for_second


def test_a_text_and_itself_do_not_differ(open_model):
    result = contrast(open_model("BertForMaskedLM"), progress=silent, first=FIRST, second=FIRST)
    assert result.jensen_shannon == 0
    assert set(result.tokens["difference"]) == {0.0}
    assert len(result.favours_first) == len(result.favours_second) == 0


def test_the_texts_change_places(open_model):
    checkpoint = open_model("BertForMaskedLM")
    one = contrast(checkpoint, progress=silent, first=FIRST, second=SECOND)
    other = contrast(checkpoint, progress=silent, first=SECOND, second=FIRST)
    assert other.jensen_shannon == pytest.approx(one.jensen_shannon, abs=1e-6)
    assert other.favours_first["token"].tolist() == one.favours_second["token"].tolist()
    assert one.favours_first["difference"].to_numpy() == pytest.approx(
        -other.favours_second["difference"].to_numpy(), abs=1e-4
    )


@pytest.mark.parametrize(
    ("first", "second", "bits"),
    [
        ([0.5, 0.5, 0.0], [0.5, 0.5, 0.0], 0.0),
        ([1.0, 0.0, 0.0], [0.0, 0.5, 0.5], 1.0),
        # H(3/4, 1/4) - (H(1/2, 1/2) + H(1)) / 2 = 0.81128 - 1/2
        ([0.5, 0.5, 0.0], [1.0, 0.0, 0.0], 0.31128),
    ],
)
def test_divergence_by_hand(first, second, bits):
    with np.errstate(divide="ignore", invalid="ignore"):
        found = jensen_shannon(np.log(first), np.log(second))
    assert found == pytest.approx(bits, abs=1e-5)


def test_equal_differences_are_listed_by_id():
    frame = pd.DataFrame(
        {"token_id": range(4), "token": list("abcd"), "kind": "word", "first": 0.0, "second": 0.0,
         "likelihood": [0.0, -9.0, 0.0, 0.0], "difference": [1.0, 5.0, 2.0, 1.0]}
    )  # fmt: skip
    assert favored(frame, 1, -1.0, 2)["token"].tolist() == ["c", "a"]
    assert favored(frame, 1, -1.0, 9)["token"].tolist() == ["c", "a", "d"]
    assert len(favored(frame, -1, -1.0, 9)) == 0


def test_the_vocabulary_is_for_the_pages_alone(open_model):
    plain = to_json(contrast(open_model("BertForMaskedLM"), progress=silent, first=FIRST,
                             second=SECOND))  # fmt: skip
    assert "tokens" not in plain
    assert set(plain["favours_first"][0]) == {
        "token", "token_id", "kind", "first", "second", "likelihood", "difference"
    }  # fmt: skip
    assert plain["rows"] == VOCAB


def test_damaged_weights_are_said(tmp_path, open_path):
    model = random_model("BertForMaskedLM")
    with torch.no_grad():
        model.cls.predictions.bias[7] = torch.nan
    folder = save_checkpoint(model, tmp_path / "damaged")
    with pytest.raises(CheckpointError, match=r"its cls\.predictions\.bias contains NaN or infinity"):
        contrast(open_path(folder), progress=silent, first=FIRST, second=SECOND)


def test_without_a_head_nothing_is_compared(open_model):
    with pytest.raises(NotInCheckpointError, match=r"^BertModel has no MLM head"):
        contrast(open_model("BertModel"), progress=silent, first=FIRST, second=SECOND)
    with pytest.raises(NotInCheckpointError, match="causal language model"):
        contrast(open_model("GPT2LMHeadModel"), progress=silent, first=FIRST, second=SECOND)


EXACTLY = "write [MASK] exactly once, at the place to compare."


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"first": "w1"}, f"The first text has no [MASK]: {EXACTLY}"),
        ({"second": "[MASK] [MASK]"}, f"The second text has 2 [MASK]: {EXACTLY}"),
        ({"second": ""}, f"The second text has no [MASK]: {EXACTLY}"),
        ({"k": 0}, "Tokens per text must be between 1 and 1,000, not 0."),
        ({"first": "[MASK]" + " w1" * 62},
         "The text has 65 tokens, but BertForMaskedLM takes at most 64: shorten it."),
    ],
)  # fmt: skip
def test_refusals(open_model, options, sentence):
    given = {"first": FIRST, "second": SECOND} | options
    with pytest.raises(RequestError) as error:
        contrast(open_model("BertForMaskedLM"), progress=silent, **given)
    assert str(error.value) == sentence
