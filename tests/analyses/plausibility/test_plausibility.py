"""Every token's own plausibility against transformers, one masked copy of the text at a time."""

from __future__ import annotations

import math
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest
import torch
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import AutoModelForMaskedLM

from inspector.analyses.plausibility.compute import plausibility
from inspector.analyses.plausibility.compute_masked import judge_masked
from inspector.analyses.plausibility.compute_reading import judge
from inspector.analyses.plausibility.request import PlausibilityRequest
from inspector.errors import CheckpointError, NotInCheckpointError, RequestError
from inspector.models.masking.head import Room
from inspector.results.plain import to_json
from tests.conftest import silent
from tests.families import random_model, save_checkpoint
from tests.sentences import SURROGATE

FAMILIES = (
    "AlbertForMaskedLM",
    "BertForMaskedLM",
    "BertForPreTraining",
    "DebertaV2ForMaskedLM",
    "DistilBertForMaskedLM",
    "ElectraForMaskedLM",
    "MPNetForMaskedLM",
    "RobertaForMaskedLM",
)
TEXT = "w1 w3ab w7b w9"  # [CLS] w1 w3 ##a ##b w7 ##b w9 [SEP]
MASK = 4
LATER = {2: (3, 4), 3: (4,), 5: (6,)}  # pieces to the right in the same word


@lru_cache(maxsize=1)  # a test asks one model many times
def read_by_transformers(folder: Path) -> Any:
    return AutoModelForMaskedLM.from_pretrained(folder).eval()


def log_probabilities(folder: Path, ids: list[int], masks: tuple[int, ...]) -> torch.Tensor:
    """What transformers itself says with some places masked: (positions, vocab)."""
    given = torch.tensor([ids])
    given[0, list(masks)] = MASK
    with torch.inference_mode():
        return read_by_transformers(folder)(given).logits[0].double().log_softmax(dim=1)


@pytest.mark.parametrize("by", ["token", "word"])
@pytest.mark.parametrize("architecture", FAMILIES)
def test_each_token_is_read_with_itself_masked(tmp_path, open_model, architecture, by):
    checkpoint = open_model(architecture)
    result = plausibility(checkpoint, progress=silent, text=TEXT, by=by, device="cpu")
    ids = list(checkpoint.tokens.encode(TEXT).ids)
    assert result.tokens["token_id"].tolist() == ids
    assert result.tokens["special"].tolist() == [True, *[False] * 7, True]
    assert result.tokens["word"].tolist() == [-1, 0, 1, 1, 1, 2, 2, 3, -1]
    total = 0.0
    for row in result.tokens.to_dict("records")[1:-1]:
        place, own = row["position"], row["token_id"]
        later = LATER.get(place, ()) if by == "word" else ()
        truth = log_probabilities(tmp_path / architecture, ids, (place, *later))[place]
        assert row["log_probability"] == pytest.approx(truth[own].item(), abs=2e-4)
        assert row["probability"] == pytest.approx(truth[own].exp().item(), rel=2e-4)
        assert row["bits"] == pytest.approx(-math.log2(truth[own].exp().item()), abs=3e-4)
        assert row["rank"] == int((truth > truth[own]).sum()) + 1
        assert row["best_id"] == int(truth.argmax())
        assert row["best_token"] == checkpoint.tokens.visible(int(truth.argmax()))
        assert row["best_probability"] == pytest.approx(truth.max().exp().item(), rel=2e-4)
        best = result.alternatives[result.alternatives["position"] == place]
        assert best["token_id"].tolist() == truth.topk(5).indices.tolist()
        assert best["probability"].tolist() == pytest.approx(truth.topk(5).values.exp().tolist(), rel=2e-4)
        total += truth[own].item()
    assert result.judged == 7
    assert result.pseudo_log_likelihood == pytest.approx(total, abs=1e-3)
    assert result.pseudo_perplexity == pytest.approx(math.exp(-total / 7), rel=1e-3)


def test_the_ways_differ_where_a_word_has_later_pieces(open_model):
    checkpoint = open_model("BertForMaskedLM")
    alone, hidden = (
        plausibility(checkpoint, progress=silent, text=TEXT, by=by).tokens["log_probability"].tolist()
        for by in ("token", "word")
    )
    differ = [place for place in range(1, 8) if abs(alone[place] - hidden[place]) > 1e-4]
    assert differ == list(LATER)


def test_one_token(tmp_path, open_model):
    checkpoint = open_model("BertForMaskedLM")
    result = plausibility(checkpoint, progress=silent, text="w5")
    ids = list(checkpoint.tokens.encode("w5").ids)
    truth = log_probabilities(tmp_path / "BertForMaskedLM", ids, (1,))[1, ids[1]].item()
    assert result.judged == 1
    assert result.pseudo_log_likelihood == pytest.approx(truth, abs=1e-4)
    assert result.pseudo_perplexity == pytest.approx(math.exp(-truth), rel=1e-4)


def test_a_mask_in_the_text_stays_and_is_not_judged(tmp_path, open_model):
    checkpoint = open_model("BertForMaskedLM")
    text = "w1 [MASK] w3"
    result = plausibility(checkpoint, progress=silent, text=text)
    rows = to_json(result)
    assert rows["warnings"] == []
    assert [row["special"] for row in rows["tokens"]] == [True, False, True, False, True]
    for place in (0, 2, 4):
        row = rows["tokens"][place]
        numbers = ("probability", "log_probability", "rank", "best_id", "best_probability", "bits")
        assert {row[name] for name in numbers} == {None}
        assert row["best_token"] == ""
    ids = list(checkpoint.tokens.encode(text).ids)
    for place in (1, 3):
        truth = log_probabilities(tmp_path / "BertForMaskedLM", ids, (place, 2))[place, ids[place]]
        found = rows["tokens"][place]["log_probability"]
        assert found == pytest.approx(truth.item(), abs=1e-4)
    assert result.judged == 2


def test_equal_scores_rank_by_id():
    scores = torch.tensor([[0.0, 2.0, 5.0, 2.0, 2.0]] * 5)
    with torch.inference_mode():
        assert [reading.rank for reading in judge(scores, list(range(5)), k=2)] == [5, 2, 1, 3, 4]
        (tied,) = judge(torch.tensor([[1.0, 1.0]]), [1], k=2)
    assert (tied.rank, [index for index, _ in tied.best]) == (2, [0, 1])
    assert tied.log_probability == pytest.approx(-math.log(2))


def test_a_long_text_is_read_in_small_passes(open_model):
    """As long as the model allows; what one pass holds changes nothing, and progress is told."""
    checkpoint = open_model("BertForMaskedLM")
    text = " ".join(f"w{number % 50}" for number in range(62))
    at_once = plausibility(checkpoint, progress=silent, text=text)
    assert at_once.judged == 62
    room = Room(tokens=200, block=60)  # three rows a pass, one position's scores
    told: list[float | None] = []
    bit_by_bit = judge_masked(
        checkpoint, PlausibilityRequest(text=text), progress=lambda share, _: told.append(share), room=room
    )
    assert bit_by_bit.tokens["log_probability"].tolist()[1:-1] == pytest.approx(
        at_once.tokens["log_probability"].tolist()[1:-1], abs=1e-4
    )
    shares = [share for share in told if share is not None]
    assert shares == pytest.approx([number / 62 for number in range(1, 63)])


def test_no_more_scores_than_a_block_are_ever_held(monkeypatch, open_model):
    checkpoint = open_model("BertForMaskedLM")
    sizes = []
    original = torch.Tensor.split

    def split(self, *given, **named):
        sizes.append(self.numel())
        return original(self, *given, **named)

    monkeypatch.setattr(torch.Tensor, "split", split)
    request = PlausibilityRequest(text=" ".join(["w1"] * 62))
    judge_masked(checkpoint, request, progress=silent, room=Room(block=10 * 60))
    assert max(sizes) == 10 * 60
    assert sum(sizes) == 62 * 60


def test_words_are_told_apart_where_the_tokenizer_splits_at_no_space(tmp_path, open_path):
    pieces = ["<pad>", "<unk>", "<mask>", "<s>", "</s>", "▁a", "b", "▁c"]
    scores = [(piece, 0.0 if piece.startswith("<") else -1.0) for piece in pieces]
    tokenizer = Tokenizer(models.Unigram(scores, unk_id=1))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(split=False)
    tokenizer.add_special_tokens(pieces[:5])
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", 3), ("</s>", 4)]
    )
    folder = save_checkpoint(random_model("BertForMaskedLM"), tmp_path / "words", tokenizer=False)
    tokenizer.save(str(folder / "tokenizer.json"))
    result = plausibility(open_path(folder), progress=silent, text="ab c", by="word")
    assert result.tokens["token"].tolist() == ["<s>", "␣a", "b", "␣c", "</s>"]
    assert result.tokens["word"].tolist() == [-1, 0, 0, 1, -1]
    given = torch.tensor([[3, 2, 2, 7, 4]])  # "b" goes with "a", "c" is a word of its own
    with torch.inference_mode():
        truth = random_model("BertForMaskedLM")(given).logits[0, 1].log_softmax(0)[5].item()
    assert result.tokens["log_probability"].tolist()[1] == pytest.approx(truth, abs=1e-4)


def test_an_unknown_word_is_judged_as_the_unknown_token(open_model):
    result = plausibility(open_model("BertForMaskedLM"), progress=silent, text="w1 zebra")
    assert result.judged == 2
    assert result.tokens["token"].tolist()[2] == "[UNK]"
    assert result.warnings == (
        "1 token represents text that is not in the vocabulary: the score there is for [UNK] itself.",
    )


def test_damaged_weights_are_said(tmp_path, open_path):
    model = random_model("BertForMaskedLM")
    with torch.no_grad():
        model.cls.predictions.bias[7] = torch.nan
    folder = save_checkpoint(model, tmp_path / "damaged")
    with pytest.raises(CheckpointError, match=r"its cls\.predictions\.bias contains NaN or infinity"):
        plausibility(open_path(folder), progress=silent, text="w1 w2")


@pytest.mark.parametrize("architecture", ["BertModel", "BertForSequenceClassification"])
def test_without_a_head_nothing_is_judged(open_model, architecture):
    with pytest.raises(NotInCheckpointError, match=rf"^{architecture} has no MLM head"):
        plausibility(open_model(architecture), progress=silent, text=TEXT)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"text": TEXT, "by": "letter"}, "Masked unit must be token or word, not 'letter'."),
        ({"text": ""}, "The text has no ordinary token to judge: type a word or a sentence."),
        ({"text": "[MASK] [SEP]"},
         "The text has no ordinary token to judge: type a word or a sentence."),
        ({"text": "w1 " * 63}, "The text has 65 tokens, but BertForMaskedLM takes at most 64: shorten it."),
        ({"text": "w1 \ud800"}, SURROGATE),
    ],
)  # fmt: skip
def test_refusals(open_model, options, sentence):
    with pytest.raises(RequestError) as error:
        plausibility(open_model("BertForMaskedLM"), progress=silent, **options)
    assert str(error.value) == sentence
