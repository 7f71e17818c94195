"""Tokens against the tokenizers library and transformers."""

from __future__ import annotations

from typing import Any

import pytest
from tokenizers import Tokenizer

from inspector.analyses.tokenization.compute import tokenize
from inspector.errors import RequestError
from inspector.models.vocabulary.tokenizer_files import read_tokenizer
from tests.analyses.heads.heads_cases import LONG, PAIR, TEXT
from tests.conftest import silent

run_tokenize: Any = tokenize


def test_tokenization_is_the_tokenizers_librarys(open_model):
    checkpoint = open_model("BertForMaskedLM")
    texts = ["W1  w2a nothing w3", "w4", "w5 w6b [MASK]"]
    found = run_tokenize(checkpoint, progress=silent, texts=texts, pair=PAIR)
    library = Tokenizer.from_str(read_tokenizer(checkpoint.manifest).tokenizer.to_str())
    library.enable_padding(pad_id=0, pad_token="[PAD]")
    wanted = library.encode_batch([(texts[0], PAIR), texts[1], texts[2]])
    assert found.padded_to == len(wanted[0].ids)
    assert found.batch["ids"].tolist() == [each.ids for each in wanted]
    assert found.batch["type_ids"].tolist() == [each.type_ids for each in wanted]
    assert found.batch["attention_mask"].tolist() == [each.attention_mask for each in wanted]
    rows = found.tokens.to_dict("records")
    flat = [(number, place) for number, each in enumerate(wanted) for place in range(len(each.ids))]
    for row, (number, place) in zip(rows, flat, strict=True):
        each, own = wanted[number], (texts[number], PAIR)
        assert (row["sequence"], row["position"]) == (number, place)
        assert (row["token_id"], row["piece"]) == (each.ids[place], each.tokens[place])
        assert (row["start"], row["end"]) == each.offsets[place]
        assert row["is_special"] == bool(each.special_tokens_mask[place])
        part = each.sequence_ids[place]
        if part is not None:
            assert row["text"] == own[part][row["start"] : row["end"]]
            assert row["word"] == each.word_ids[place]
    assert [row["text"] for row in rows if row["is_unknown"]] == ["nothing"]
    assert found.batch["unknown"].tolist() == [1, 0, 0]
    assert found.batch["padding"].tolist() == [0, *(found.padded_to - n for n in (3, 6))]


def test_tokens_of_a_batch_are_transformers_own(make):
    case = make("Bert", "ForMaskedLM")
    texts = [TEXT, "w4 unheard"]
    found = run_tokenize(case.checkpoint, progress=silent, texts=texts)
    wanted = case.tokenizer(texts, padding=True)
    assert found.batch["ids"].tolist() == wanted["input_ids"]
    assert found.batch["attention_mask"].tolist() == wanted["attention_mask"]


def test_refusals_of_tokenization(open_model):
    checkpoint = open_model("BertModel")
    with pytest.raises(RequestError, match=r"^There is no text: type one\.$"):
        run_tokenize(checkpoint, progress=silent, texts=[" "])
    with pytest.raises(RequestError, match=r"^Texts: give at most 64, not 65\.$"):
        run_tokenize(checkpoint, progress=silent, texts=["w1"] * 65)
    assert run_tokenize(checkpoint, progress=silent, texts=[LONG]).warnings == (
        "The text has 602 tokens, more than the 64 positions of BertModel: the model cannot read it.",
    )
