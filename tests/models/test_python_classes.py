"""Tokenizer classes that are written in Python: one is read as transformers reads it, the others are named."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from transformers import AutoTokenizer

from inspector.analyses.checks.compute import check
from inspector.catalog import answer
from inspector.errors import NotInCheckpointError
from tests.conftest import silent
from tests.families import VOCAB, random_model, save_checkpoint

RESIDUES = ["<cls>", "<pad>", "<eos>", "<unk>", *"LAGVSERTIDPKQNFYMHWCXBUZO.-", "<null_1>", "<mask>"]
TEXTS = (
    "MKT<mask>L",
    "M K T",
    "mkt",
    "MKTjjL  x y",
    "<cls>MK<eos>",
    " ",
    "A.-<null_1>B",
    "<unk>",
    "é M\tK\nT",
    "<mask><mask>",
)
WORDS = ["<s>", "<pad>", "</s>", "<unk>", *(f"w{number}" for number in range(VOCAB - 4))]
NUMBERS = json.dumps({word: number for number, word in enumerate(WORDS)})
NOT_READ: dict[str, dict[str, str]] = {
    "PhobertTokenizer": {"vocab.txt": "\n".join(f"{word} 1" for word in WORDS[4:]), "bpe.codes": "w 1 2\n"},
    "BertweetTokenizer": {"vocab.txt": "\n".join(f"{word} 1" for word in WORDS[4:]), "bpe.codes": "w 1 2\n"},
    "BertJapaneseTokenizer": {"vocab.txt": "\n".join(WORDS)},
    "CpmAntTokenizer": {"vocab.txt": "\n".join(WORDS)},
    "RoCBertTokenizer": {"vocab.txt": "\n".join(WORDS)},
    "GPTNeoXJapaneseTokenizer": {"vocab.txt": "\n".join(WORDS)},
    "BioGptTokenizer": {"vocab.json": NUMBERS, "merges.txt": "#version: 0.2\n"},
    "CTRLTokenizer": {"vocab.json": NUMBERS, "merges.txt": "#version: 0.2\n"},
    "FlaubertTokenizer": {"vocab.json": NUMBERS, "merges.txt": "#version: 0.2\n"},
    "ClvpTokenizer": {"vocab.json": NUMBERS, "merges.txt": "#version: 0.2\n"},
    "ByT5Tokenizer": {},
    "CanineTokenizer": {},
    "Wav2Vec2CTCTokenizer": {"vocab.json": NUMBERS},
    "VitsTokenizer": {"vocab.json": NUMBERS},
}


def save_esm(folder: Path, settings: dict[str, Any], lines: list[str] = RESIDUES) -> Path:
    save_checkpoint(random_model("EsmForMaskedLM", vocab_size=len(lines), mask_token_id=32), folder)
    (folder / "vocab.txt").write_text("\n".join(lines))
    if settings:
        (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    return folder


@pytest.mark.parametrize(
    "named",
    [
        {"tokenizer_class": "EsmTokenizer"},
        {},  # the model type tells
        {"tokenizer_class": "EsmTokenizer", "mask_token": {"content": "<mask>", "lstrip": False, "rstrip": False,
         "single_word": False, "normalized": False, "special": True, "__type": "AddedToken"}},
    ],
)  # fmt: skip
def test_amino_acids_are_read_as_transformers_reads_them(open_path, tmp_path, named):
    folder = save_esm(tmp_path / "esm", named)
    theirs, tokens = AutoTokenizer.from_pretrained(folder), open_path(folder).require_tokens()
    drawn = random.Random(0)
    pieces = [*RESIDUES, "j", " ", "  ", "ab", "<", "\n"]
    texts = [*TEXTS, *("".join(drawn.choices(pieces, k=12)) for _ in range(200))]
    assert [list(tokens.encode(text).ids) for text in texts] == [theirs(text)["input_ids"] for text in texts]
    assert list(tokens.encoding("MK", "TL").ids) == theirs("MK", "TL")["input_ids"]
    assert (tokens.size, tokens.role("mask"), tokens.role("pad")) == (33, ("<mask>", 32), ("<pad>", 1))


def test_amino_acids_raise_no_alarm(open_path, tmp_path):
    checks = check(open_path(save_esm(tmp_path / "esm", {"tokenizer_class": "EsmTokenizer"})), progress=silent)
    assert [each.name for each in checks.checks if each.status != "ok"] == ["Under-trained tokens"]
    (rows,) = [each for each in checks.checks if each.name == "Tokenizer and rows"]
    assert rows.detail == "Each of the tokenizer's 33 ids has a row."


@pytest.mark.parametrize("name", NOT_READ)
def test_a_class_that_is_not_read_here_is_named_and_its_files_are_not_blamed(open_path, tmp_path, name):
    folder = save_checkpoint(random_model("BertForMaskedLM"), tmp_path / "a", tokenizer=False)
    for file, text in NOT_READ[name].items():
        (folder / file).write_text(text)
    (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": name}))
    checkpoint = open_path(folder)
    said = f"The tokenizer class {name} is not supported here: tokens are shown by their ids."
    with pytest.raises(NotInCheckpointError) as refused:
        checkpoint.require_tokens()
    assert str(refused.value) == said
    checks = check(checkpoint, progress=silent)
    (rows,) = [each for each in checks.checks if each.name == "Tokenizer and rows"]
    assert rows.detail == f"Nothing to check: {said}"
    assert [each.name for each in checks.checks if each.status != "ok"] == ["Under-trained tokens"]
    assert said in answer("overview", checkpoint, progress=silent).warnings
    assert checkpoint.tokens is None
