"""What files beside tokenizer.json and the class of transformers change: ids, sides, splits, and what is said of it."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from transformers import AutoTokenizer

from inspector.analyses.checks.compute import check
from inspector.analyses.overview.compute import overview
from inspector.analyses.padding.compute import padding
from inspector.analyses.plausibility.compute import plausibility
from inspector.analyses.tokenization.compute import tokenize
from inspector.errors import CheckpointError
from tests.conftest import silent
from tests.families import random_model
from tests.models.test_tokenizer_classes import KINDS

ARCHITECTURES = {"llama": "LlamaForCausalLM", "bert": "BertForMaskedLM", "qwen2": "Qwen2ForCausalLM",
                 "gemma": "GemmaForCausalLM", "t5": "T5ForConditionalGeneration"}  # fmt: skip
ADDED = {"content": "<new>", "lstrip": False, "rstrip": False, "normalized": False, "single_word": False}
PAST_ROWS = {  # files that name one token more than tokenizer.json has
    "a padding token": {"tokenizer_config.json": {"pad_token": "<new>"}},
    "a begin": {"tokenizer_config.json": {"bos_token": ADDED | {"__type": "AddedToken"}}},
    "a list": {"tokenizer_config.json": {"additional_special_tokens": ["<new>"]}},
    "names": {"tokenizer_config.json": {"extra_special_tokens": {"image_token": "<new>"}}},
    "a name of its own": {"tokenizer_config.json": {"audio_token": "<new>"}},
    "added tokens": {"tokenizer_config.json": {"added_tokens_decoder": {"999": ADDED}}},
    "a map": {"special_tokens_map.json": {"mask_token": "<new>"}},
    "an older list": {"added_tokens.json": {"<new>": 999}},
}


@pytest.fixture
def save(tmp_path):
    """Save a model with one row for each token of its tokenizer.json, and settings beside it."""

    def saved(model_type, files, kind="BPE"):
        tokenizer, folder = KINDS[kind](), tmp_path / "it"
        random_model(ARCHITECTURES[model_type], vocab_size=tokenizer.get_vocab_size()).save_pretrained(folder)
        tokenizer.save(str(folder / "tokenizer.json"))
        for name, content in files.items():
            (folder / name).write_text(json.dumps(content), encoding="utf-8")
        return folder, tokenizer.get_vocab_size()

    return saved


def checked(checkpoint, name):
    return next(each for each in check(checkpoint, progress=silent).checks if each.name == name)


@pytest.mark.parametrize("what", PAST_ROWS)
def test_a_token_that_files_beside_name_gets_the_next_id(save, open_path, what):
    folder, rows = save("llama", PAST_ROWS[what])
    truth = AutoTokenizer.from_pretrained(folder)
    assert (len(truth), truth.convert_tokens_to_ids("<new>")) == (rows + 1, rows)
    checkpoint = open_path(folder)
    said = (
        f"The tokenizer knows {rows + 1} ids, but the embedding matrix has {rows} rows: 1 id is past the last row "
        f"(<new>, id {rows}). A text with such a token crashes the model, and is refused here."
    )
    assert said in overview(checkpoint, progress=silent).warnings
    tokenized = tokenize(checkpoint, progress=silent, texts=("the <new>",))
    assert tokenized.size == rows + 1
    assert tokenized.tokens["token_id"].tolist() == truth("the <new>")["input_ids"]
    assert said in tokenized.warnings
    found = checked(checkpoint, "Tokenizer and rows")
    assert found.status == "fail"
    assert f"1 id past the last of {rows} rows (<new> (id {rows})): a text with such a token crashes" in found.detail
    with pytest.raises(CheckpointError, match=f"gives id {rows}, but the embedding matrix has {rows} rows"):
        plausibility(checkpoint, progress=silent, text="the <new>")


def test_a_padding_token_past_the_rows_crashes_each_batch(save, open_path):
    folder, rows = save("llama", PAST_ROWS["a padding token"])
    checkpoint = open_path(folder)
    found = checked(checkpoint, "Padding")
    assert (found.status, found.evidence[0].problem) == ("fail", "padding token without a row")
    assert f"pads with <new> (id {rows}), but the embedding matrix has {rows} rows: a padded batch" in found.detail
    tokenizer = overview(checkpoint, progress=silent).tokenizer
    assert tokenizer is not None
    assert (tokenizer.pad_id, padding(checkpoint, progress=silent).pad_id) == (rows, rows)


def test_tokens_that_the_class_alone_names_are_a_warning(save, open_path):
    """T5's class adds a hundred that nobody types; Funnel's one that begins each text."""
    folder, rows = save("t5", {"tokenizer_config.json": {"tokenizer_class": "T5Tokenizer"}}, "Unigram")
    checkpoint = open_path(folder)
    assert checkpoint.require_tokens().size == len(AutoTokenizer.from_pretrained(folder)) == rows + 100
    found = checked(checkpoint, "Tokenizer and rows")
    assert found.status == "warn"
    assert "T5Tokenizer adds 100 tokens that no file of the checkpoint names" in found.detail
    assert "only a text in which such a token is typed crashes the model" in found.detail
    folder, rows = save("bert", {"tokenizer_config.json": {"tokenizer_class": "FunnelTokenizer"}}, "WordPiece")
    assert max(AutoTokenizer.from_pretrained(folder)("the")["input_ids"]) >= rows
    assert checked(open_path(folder), "Tokenizer and rows").status == "fail"


@pytest.mark.parametrize(
    ("model_type", "named"),
    [
        ("gemma", {"tokenizer_class": "GemmaTokenizer"}),
        ("gemma", {}),
        ("llama", {"tokenizer_class": "CodeLlamaTokenizer"}),
        ("llama", {"tokenizer_class": "CohereTokenizerFast"}),
        ("gemma", {"padding_side": "right", "truncation_side": "left"}),
        ("bert", {"tokenizer_class": "XLNetTokenizer"}),
        ("bert", {"tokenizer_class": "PreTrainedTokenizerFast", "padding_side": "left"}),
    ],
)
def test_a_batch_is_padded_on_the_side_of_the_class(save, open_path, model_type, named):
    kind = "Unigram" if named.get("tokenizer_class") == "XLNetTokenizer" else "SentencePiece"
    folder, _ = save(model_type, {"tokenizer_config.json": {"pad_token": "<pad>"} | named}, kind)
    truth = AutoTokenizer.from_pretrained(folder)
    result = tokenize(open_path(folder), progress=silent, texts=("the dog", "dog"))
    assert (result.padding_side, result.truncation_side) == (truth.padding_side, truth.truncation_side)
    expected = truth(["the dog", "dog"], padding=True)
    assert result.batch["ids"].tolist() == expected["input_ids"]
    assert result.batch["attention_mask"].tolist() == expected["attention_mask"]
    if "token_type_ids" in expected:
        assert result.batch["type_ids"].tolist() == expected["token_type_ids"]


def test_a_class_that_replaces_the_steps_of_the_file_is_told_with_both_splits(save, open_path):
    folder, _ = save("qwen2", {"tokenizer_config.json": {"tokenizer_class": "GPT2Tokenizer"}})
    plain = KINDS["BPE"]().encode("Add 2023").tokens
    pieces = AutoTokenizer.from_pretrained(folder).tokenize("Add 2023")
    assert (plain[-1], pieces[-4:]) == ("2023", ["2", "0", "2", "3"])
    checkpoint = open_path(folder)
    result = tokenize(checkpoint, progress=silent, texts=("Add 2023",))
    assert (result.tokenizer_class, result.tokens["piece"].tolist()) == ("Qwen2Tokenizer", pieces)
    said = 'it splits "Add 2023" into … d | ␣ | 2 | 0 | 2 | 3; tokenizer.json alone gives … d | ␣ | 2023.'
    assert any(said in each for each in result.warnings)
    for warnings in (
        overview(checkpoint, progress=silent).warnings,
        [checked(checkpoint, "Tokenizer and rows").detail],
    ):
        assert any("reads this tokenizer as Qwen2Tokenizer" in each for each in warnings)


def test_a_class_that_splits_as_the_file_does_is_no_warning(save, open_path):
    tokenizer = {"tokenizer_class": "GPT2Tokenizer", "pad_token": "<pad>"}
    folder, _ = save("llama", {"tokenizer_config.json": tokenizer})
    result = tokenize(open_path(folder), progress=silent, texts=("Add 2023",))
    assert (result.tokenizer_class, result.warnings) == ("GPT2Tokenizer", ())


@pytest.mark.parametrize("name", ["BertweetTokenizer", "CanineTokenizer", "MarianTokenizer", "RoFormerTokenizer"])
def test_a_class_that_reads_other_files_is_named(save, open_path, name):
    folder, rows = save("bert", {"tokenizer_config.json": {"tokenizer_class": name, "pad_token": "<pad>"}}, "WordPiece")
    result = tokenize(open_path(folder), progress=silent, texts=("the dog",))
    assert (result.tokenizer_class, result.size) == (None, rows)
    assert result.tokens["token_id"].tolist() == KINDS["WordPiece"]().encode("the dog").ids
    assert any(f"{name}, does not read its tokenizer.json" in each for each in result.warnings)


def test_a_class_that_makes_what_fails_of_the_file_is_not_used(save, open_path):
    """BERT's makes WordPiece of anything; without [UNK], it fails on what it does not know."""
    folder, _ = save("bert", {}, "Unigram")
    content = json.loads((folder / "tokenizer.json").read_text("utf-8"))
    content["model"]["vocab"][6][0] = "▁no"  # [UNK]
    (folder / "tokenizer.json").write_text(json.dumps(content), "utf-8")
    with pytest.raises(Exception, match="UNK"):
        AutoTokenizer.from_pretrained(folder)("☃")
    tokens = open_path(folder).require_tokens()
    assert tokens.class_name is None
    assert tokens.encode("the dog ☃").ids


def test_reading_a_tokenizer_needs_no_torch(save):
    folder, _ = save("llama", {})
    code = (
        "import sys, json; from pathlib import Path; from types import SimpleNamespace\n"
        "from inspector.models.vocabulary.library import read_as_library\n"
        f"folder = Path({str(folder)!r}); config = json.loads((folder / 'config.json').read_text())\n"
        "read = read_as_library(SimpleNamespace(folder=folder, config=config), ['tokenizer.json'])\n"
        "assert read.class_name and 'torch' not in sys.modules\n"
        "from transformers import LlamaConfig, LlamaForCausalLM\n"
        "rope = {'rope_type': 'yarn', 'factor': 2.0, 'rope_theta': 1e4}\n"  # of a module imported before torch
        "sizes = dict(vocab_size=9, hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=8)\n"
        "import torch; model = LlamaForCausalLM(LlamaConfig(rope_parameters=rope, **sizes))\n"
        "print(tuple(model(torch.tensor([[1, 2]])).logits.shape))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "(1, 2, 9)", done.stderr
