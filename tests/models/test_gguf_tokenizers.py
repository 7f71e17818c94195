"""The tokenizer of a GGUF file, id by id as transformers reads it, and as what it was converted from."""

from __future__ import annotations

import io
import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sentencepiece
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import AutoTokenizer
from transformers.integrations.gguf.gguf_tokenizer_mapping import GGUF_PRE_TOKENIZER_SPLITS, GGUF_TOKENIZER_TYPES

from inspector.analyses.checks.compute import check
from inspector.analyses.special_tokens.compute import tokens as special_tokens
from inspector.errors import CheckpointError, NoTokenizerError
from inspector.store.foreign.gguf_tokenizer import IN_LIBRARY, KINDS
from tests.conftest import silent
from tests.gguf_files import write_gguf
from tests.gguf_models import convert, small_model
from tests.models.test_bare_tokenizers import ODD, sentences
from tests.sentences import GGUF_TOKENIZER

CHAT = "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
BYTE_LEVEL_ODD = (
    *ODD[1:],
    "I've 2024 apples",
    "don't\n\n  stop",
    "<|im_start|>user\nhi<|im_end|>",
    "x<think>y</think>",
)


def byte_level(split: str, texts: list[str]) -> tuple[Tokenizer, dict[str, Any]]:
    """A vocabulary that is learned from texts, with control and user-defined tokens, and its metadata."""
    tokenizer: Any = Tokenizer(models.BPE())
    by_words = pre_tokenizers.Split(Regex(GGUF_PRE_TOKENIZER_SPLITS[split]), behavior="isolated")
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [by_words, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=400, show_progress=False, initial_alphabet=pre_tokenizers.ByteLevel.alphabet()
    )
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer.add_special_tokens(["<|endoftext|>", "<|im_start|>", "<|im_end|>"])
    tokenizer.add_tokens(["<think>", "</think>"])
    merges = [" ".join(pair) for pair in json.loads(tokenizer.to_str())["model"]["merges"]]
    names = [tokenizer.id_to_token(number) for number in range(tokenizer.get_vocab_size())]
    kinds = [1] * (len(names) - 5) + [3, 3, 3, 4, 4]
    return tokenizer, {
        "tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": split, "tokenizer.ggml.tokens": names,
        "tokenizer.ggml.token_type": kinds, "tokenizer.ggml.merges": merges,
        "tokenizer.ggml.eos_token_id": len(names) - 3, "tokenizer.ggml.padding_token_id": len(names) - 5,
        "tokenizer.ggml.add_bos_token": False, "tokenizer.chat_template": CHAT,
    }  # fmt: skip


def sentencepiece_model(
    draw: random.Random, *, prefix: bool
) -> tuple[sentencepiece.SentencePieceProcessor, dict[str, Any]]:
    """The same of SentencePiece's BPE, as Llama 2 has it."""
    written = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(sentences(draw, 300)), model_writer=written, model_type="bpe", vocab_size=420,
        byte_fallback=True, hard_vocab_limit=False, normalization_rule_name="identity",
        remove_extra_whitespaces=False, add_dummy_prefix=prefix, minloglevel=2,
    )  # fmt: skip
    made: Any = sentencepiece.SentencePieceProcessor()
    made.LoadFromSerializedProto(written.getvalue())
    count = made.GetPieceSize()
    kinds = [2 if made.IsUnknown(n) else 3 if made.IsControl(n) else 6 if made.IsByte(n) else 1 for n in range(count)]
    return made, {
        "tokenizer.ggml.model": "llama", "tokenizer.ggml.pre": "default",
        "tokenizer.ggml.tokens": [made.IdToPiece(number) for number in range(count)],
        "tokenizer.ggml.scores": [made.GetScore(number) for number in range(count)],
        "tokenizer.ggml.token_type": kinds, "tokenizer.ggml.bos_token_id": 1, "tokenizer.ggml.eos_token_id": 2,
        "tokenizer.ggml.unknown_token_id": 0, "tokenizer.ggml.add_bos_token": True,
        "tokenizer.ggml.add_space_prefix": prefix,
    }  # fmt: skip


def write(folder: Path, architecture: str, metadata: dict[str, Any]) -> Path:
    rows = len(metadata["tokenizer.ggml.tokens"])
    convert(small_model(architecture, vocab_size=rows), folder / "model.gguf", architecture, more=metadata)
    return folder / "model.gguf"


@pytest.mark.parametrize("split", ["qwen2", "llama-bpe", "tekken"])
def test_byte_level_ids_are_transformers_and_the_originals(split, tmp_path, open_path):
    texts = sentences(random.Random(0), 200)
    original, metadata = byte_level(split, texts)
    ours = open_path(write(tmp_path, "qwen2", metadata)).require_tokens()
    theirs = AutoTokenizer.from_pretrained(tmp_path, gguf_file="model.gguf")
    for text in (*texts, *BYTE_LEVEL_ODD):
        ids = list(ours.encoding(text).ids)
        assert ids == original.encode(text).ids, text
        assert ids == theirs(text)["input_ids"], text
    assert ours.size == original.get_vocab_size()
    assert ours.role("eos") == ("<|im_end|>", original.token_to_id("<|im_end|>"))
    assert ours.role("pad") == (theirs.pad_token, theirs.pad_token_id)


@pytest.mark.parametrize("split", ["gpt-2", "smollm"])
def test_other_splits_are_those_of_the_originals(split, tmp_path, open_path):
    """GPT-2's, and the same with every digit by itself: what transformers would read as GPT-2's, too."""
    texts = [*sentences(random.Random(1), 200), "In 1984 and 2024 it was 1984, 2024 and 2024.", *["2024 1984"] * 30]
    original, metadata = byte_level("qwen2", texts)
    digits = [pre_tokenizers.Digits(individual_digits=True)] if split == "smollm" else []
    original.pre_tokenizer = pre_tokenizers.Sequence([*digits, pre_tokenizers.ByteLevel(add_prefix_space=False)])  # pyright: ignore[reportAttributeAccessIssue]
    ours = open_path(write(tmp_path, "qwen2", metadata | {"tokenizer.ggml.pre": split})).require_tokens()
    for text in (*texts, *BYTE_LEVEL_ODD):
        assert list(ours.encoding(text).ids) == original.encode(text).ids, text


def test_no_token_is_added_to_those_of_the_file(tmp_path, open_path):
    """Llama 3 has no <|endoftext|>, which transformers' GPT-2 brings along."""
    _, metadata = byte_level("llama-bpe", sentences(random.Random(0), 100))
    tokens = ["<|end_of_text|>" if each == "<|endoftext|>" else each for each in metadata["tokenizer.ggml.tokens"]]
    opened = open_path(write(tmp_path, "llama", metadata | {"tokenizer.ggml.tokens": tokens}))
    ours = opened.require_tokens()
    assert ours.size == len(tokens)
    assert ours.encoding("<|im_start|>hi").ids[0] == tokens.index("<|im_start|>")
    assert tokens.index("<|im_end|>") not in ours.encoding("<|endoftext|>").ids
    assert max(ours.encoding("<|endoftext|>").ids) < len(tokens)
    assert "<|endoftext|>" not in special_tokens(opened, progress=silent).tokens["token"].tolist()


@pytest.mark.parametrize(("split", "whole"), [("llama-bpe", True), ("tekken", True), ("qwen2", False)])
def test_a_word_that_is_a_token_needs_no_merges_in_some(split, whole, tmp_path, open_path):
    """And these begin with bos where the file says nothing, as llama.cpp has it."""
    _, metadata = byte_level(split, sentences(random.Random(0), 100))
    tokens: list[str] = metadata["tokenizer.ggml.tokens"]
    place = len(tokens) - 6  # what the last merge makes
    tokens[place] = "qzxj"
    metadata["tokenizer.ggml.merges"].pop()
    del metadata["tokenizer.ggml.add_bos_token"]
    metadata["tokenizer.ggml.bos_token_id"] = bos = tokens.index("<|im_start|>")
    ids = list(open_path(write(tmp_path, "llama", metadata)).require_tokens().encoding("qzxj").ids)
    assert ids == ([bos, place] if whole else [tokens.index(letter) for letter in "qzxj"])


@pytest.mark.parametrize("prefix", [True, False])
def test_sentencepiece_ids_are_transformers_and_the_originals(prefix, tmp_path, open_path):
    draw = random.Random(2)
    original, metadata = sentencepiece_model(draw, prefix=prefix)
    ours = open_path(write(tmp_path, "llama", metadata)).require_tokens()
    theirs = AutoTokenizer.from_pretrained(tmp_path, gguf_file="model.gguf")
    for text in (*sentences(draw, 100), "", "x  y", "emoji \U0001f600", "Å\nb"):
        ids = list(ours.encoding(text).ids)
        assert ids == [1, *original.EncodeAsIds(text)], text
        assert not prefix or ids == theirs(text)["input_ids"], text  # transformers always puts a space in front
    assert (ours.role("bos"), ours.role("unk")) == (("<s>", 1), ("<unk>", 0))


def test_what_is_allowed_is_what_transformers_knows():
    assert {*GGUF_PRE_TOKENIZER_SPLITS} == IN_LIBRARY
    assert {*GGUF_TOKENIZER_TYPES} == KINDS


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"tokenizer.ggml.pre": "grok-2"}, "how it splits texts into words, 'grok-2', is not known here"),
        ({"tokenizer.ggml.model": "rwkv"}, "its kind, 'rwkv', is not known here"),
    ],
)
def test_a_tokenizer_of_another_kind_is_not_guessed(changes, why, tmp_path, open_path):
    _, metadata = byte_level("qwen2", sentences(random.Random(0), 50))
    opened = open_path(write(tmp_path, "qwen2", metadata | changes))
    said = (GGUF_TOKENIZER, f"Of that tokenizer, {why}.")
    assert opened.manifest.warnings[-2:] == said
    assert opened.tokens is None
    with pytest.raises(NoTokenizerError):
        opened.require_tokens()


@pytest.mark.parametrize(
    "changes",
    [
        {"tokenizer.ggml.token_type": [1, 2, 3]},
        {"tokenizer.ggml.merges": ["a b c", "d"]},
        {"tokenizer.ggml.merges": ["nothere neither"]},
        {"tokenizer.ggml.tokens": ["x" * 3_000] * 64},
        {"tokenizer.ggml.tokens": list(range(64))},
    ],
)
def test_parts_that_do_not_fit_together_are_one_sentence(changes, tmp_path, open_path):
    path = tmp_path / "model.gguf"
    names = [f"t{number}" for number in range(64)]
    metadata: dict[str, Any] = {
        "tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": "qwen2", "tokenizer.ggml.tokens": names,
    }  # fmt: skip
    write_gguf(path, {"token_embd.weight": np.ones((64, 8), np.float32)}, metadata=metadata | changes)
    with pytest.raises(CheckpointError) as refused:
        open_path(path).require_tokens()
    assert str(refused.value).endswith((" again.",))


def test_special_tokens_and_template_are_those_of_the_file(tmp_path, open_path):
    """Each is said to be from the GGUF file, which no JSON lies beside."""
    _, metadata = byte_level("qwen2", sentences(random.Random(0), 50))
    opened = open_path(write(tmp_path, "qwen2", metadata))
    found = special_tokens(opened, progress=silent)
    end = metadata["tokenizer.ggml.eos_token_id"]
    assert (found.eos_ids, found.eos_from, found.template) == ((end,), "model.gguf", "model.gguf")
    assert (found.turn_end, found.stops, found.disagreements) == ("<|im_end|>", True, ())
    files = {name for names in found.tokens["files"] for name in names}
    assert files == {"model.gguf"}
    names = {each.name: each for each in check(opened, progress=silent).checks}
    said = " ".join(f"{each.detail} {each.next_step}" for each in names.values())
    assert "config.json" not in said, said


def test_generation_stops_at_the_end_of_a_turn_too(tmp_path, open_path):
    _, metadata = byte_level("qwen2", sentences(random.Random(0), 50))
    end = metadata["tokenizer.ggml.eos_token_id"]
    changed = {"tokenizer.ggml.eos_token_id": end - 2, "tokenizer.ggml.eot_token_id": end}
    found = special_tokens(open_path(write(tmp_path, "qwen2", metadata | changed)), progress=silent)
    assert (found.eos_ids, found.stops) == ((end - 2, end), True)
