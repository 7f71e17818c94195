"""Bare SentencePiece and tiktoken files, id by id as the library that made them, and as transformers' classes."""

from __future__ import annotations

import base64
import io
import json
import random
from pathlib import Path
from typing import Any

import pytest
import sentencepiece
import tiktoken
import torch
from safetensors.torch import save_file
from tiktoken._educational import bpe_train
from transformers import AutoTokenizer
from transformers.convert_slow_tokenizer import SentencePieceExtractor

from inspector.errors import CheckpointError, NotInCheckpointError
from inspector.models.vocabulary.bare import merges, read_bare
from inspector.store.readers.sentencepiece import read_sentencepiece

LETTERS = "abcdeèéñøßжи你好"
ODD = ("", " ", "  a  b ", "\t a\n", "ﬁ Å ½ x", "zzz qq", "<0x41> <s>x", "▁a", "\U0001f600")
# What Llama 3's files and transformers split by; the files hold no pattern.
WORDS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
    r"|\s+(?!\S)|\s+"
)
BY_CLASS = {
    "llama": ("LlamaTokenizer", "tokenizer.model", "bpe"),
    "gemma": ("GemmaTokenizer", "tokenizer.model", "bpe"),
    "t5": ("T5Tokenizer", "spiece.model", "unigram"),
    "albert": ("AlbertTokenizer", "spiece.model", "unigram"),
    "xlm-roberta": ("XLMRobertaTokenizer", "sentencepiece.bpe.model", "unigram"),
    "camembert": ("CamembertTokenizer", "sentencepiece.bpe.model", "unigram"),
    "deberta-v2": ("DebertaV2Tokenizer", "spm.model", "unigram"),
}


def sentences(draw: random.Random, count: int) -> list[str]:
    words = ["".join(draw.choices(LETTERS, k=draw.randint(1, 7))) for _ in range(80)]
    return [" ".join(draw.choices(words, k=draw.randint(1, 12))) for _ in range(count)]


def train(draw: random.Random, kind: str, **options: Any) -> bytes:
    """A vocabulary that the library learns from random sentences."""
    written = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(sentences(draw, 300)),
        model_writer=written,
        model_type=kind,
        vocab_size=400 if options.get("byte_fallback") else 140,
        hard_vocab_limit=False,
        max_sentencepiece_length=6,
        minloglevel=2,
        **options,
    )
    return written.getvalue()


def save(folder: Path, files: dict[str, bytes], model_type: str | None = None, **settings: Any) -> Path:
    """A checkpoint with one tensor, and these files of a tokenizer."""
    folder.mkdir(exist_ok=True)
    save_file({"w": torch.zeros(1)}, folder / "model.safetensors", metadata={"format": "pt"})
    for name, data in files.items():
        (folder / name).write_bytes(data)
    if model_type:
        (folder / "config.json").write_text(json.dumps({"model_type": model_type}))
    if settings:
        (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    return folder


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("kind", ["unigram", "bpe"])
def test_a_bare_sentencepiece_model_gives_the_ids_of_its_library(tmp_path, open_path, kind, seed):
    draw = random.Random(seed)
    data = train(
        draw,
        kind,
        byte_fallback=bool(seed & 1),
        normalization_rule_name=draw.choice(["nmt_nfkc", "identity", "nfkc_cf"]),
        remove_extra_whitespaces=bool(seed & 2),
        add_dummy_prefix=draw.random() < 0.7,
    )
    tokens = open_path(save(tmp_path / "c", {"tokenizer.model": data})).require_tokens()
    truth = sentencepiece.SentencePieceProcessor(model_proto=data)
    for text in (*sentences(draw, 100), *ODD[:6], *ODD[7:]):
        if expected := truth.encode(text):
            assert list(tokens.encoding(text).ids) == expected, text
    assert tokens.size == truth.vocab_size()
    assert tokens.role("unk") == ("<unk>", truth.unk_id())
    assert tokens.role("eos") == ("</s>", truth.eos_id())


def test_symbols_of_the_users_are_found_before_a_text_is_split(tmp_path):
    draw = random.Random(7)
    (path := tmp_path / "spm.model").write_bytes(data := train(draw, "unigram", user_defined_symbols=["<user>"]))
    truth, read = sentencepiece.SentencePieceProcessor(model_proto=data), read_bare(path)
    for text in (*sentences(draw, 50), "a <user> b", "x<user>y", "a<user><user>b b"):
        assert read.encode(text).ids == truth.encode(text), text


@pytest.mark.parametrize("model_type", BY_CLASS)
def test_a_class_reads_a_bare_file_as_it_does_with_the_library_installed(tmp_path, open_path, model_type):
    name, file, kind = BY_CLASS[model_type]
    draw = random.Random(model_type)
    data = train(draw, kind, byte_fallback=kind == "bpe", control_symbols=["[CLS]", "[SEP]", "[MASK]"])
    folder = save(tmp_path / "c", {file: data}, model_type, tokenizer_class=name)
    tokens, truth = open_path(folder).require_tokens(), AutoTokenizer.from_pretrained(folder)
    assert tokens.class_name == type(truth).__name__ == name
    for text in (*sentences(draw, 60), *ODD[1:]):
        assert list(tokens.encoding(text).ids) == truth(text)["input_ids"], text
    assert tokens.size == max(truth.get_vocab().values()) + 1


def test_settings_beside_a_bare_file_add_its_ends(tmp_path, open_path):
    data = train(random.Random(3), "bpe", byte_fallback=True)
    folder = save(tmp_path / "c", {"tokenizer.model": data}, add_bos_token=True, bos_token="<s>")
    truth = sentencepiece.SentencePieceProcessor(model_proto=data)
    assert list(open_path(folder).require_tokens().encoding("abc").ids) == truth.encode("abc", add_bos=True)


def test_merges_are_those_of_transformers(tmp_path):
    (path := tmp_path / "tokenizer.model").write_bytes(train(random.Random(5), "bpe"))
    extracted: Any = SentencePieceExtractor(str(path)).extract(None)
    ours = read_sentencepiece(path, path.name)
    assert extracted["vocab"] == {piece.piece: number for number, piece in enumerate(ours.pieces)}
    assert extracted["merges"] == list(merges(extracted["vocab"]))


@pytest.mark.parametrize("file", ["tokenizer.model", "tiktoken.model"])
def test_a_tiktoken_file_gives_the_ids_of_its_library(tmp_path, open_path, file):
    draw = random.Random(11)
    ranks = bpe_train("\n".join(sentences(draw, 100)), 400, WORDS, visualise=None)
    lines = b"".join(base64.b64encode(token) + b" %d\n" % rank for token, rank in ranks.items())
    tokens = open_path(save(tmp_path / "c", {file: lines})).require_tokens()
    truth = tiktoken.Encoding("t", pat_str=WORDS, mergeable_ranks=ranks, special_tokens={})
    for text in (*sentences(draw, 100), *ODD[1:], "Don't 12345 \r\n\n x"):
        assert list(tokens.encoding(text).ids) == truth.encode(text), text
    assert tokens.size == 400
    assert [each for each in tokens.how_read if each.startswith(f"{file} does not say how a text is split")]
    (tmp_path / "c" / "config.json").write_text(json.dumps({"model_type": "llama"}))
    with_class, read = open_path(tmp_path / "c").require_tokens(), AutoTokenizer.from_pretrained(tmp_path / "c")
    assert list(with_class.encoding("aéñ 你好 123").ids) == read("aéñ 你好 123")["input_ids"]


def test_a_class_in_python_is_not_read_otherwise(tmp_path, open_path):
    data = train(random.Random(2), "unigram")
    for name in ("BertGenerationTokenizer", "SpeechT5Tokenizer", "NobodysTokenizer"):
        folder = save(tmp_path / name, {"tokenizer.model": data}, tokenizer_class=name)
        checkpoint = open_path(folder)
        assert checkpoint.tokens is None
        with pytest.raises(NotInCheckpointError, match=f"{name} is not supported here"):
            checkpoint.require_tokens()


def _field(number: int, data: bytes) -> bytes:
    size, length = len(data), b""
    while size > 127:
        length, size = length + bytes([size & 127 | 128]), size >> 7
    return bytes([number << 3 | 2]) + length + bytes([size]) + data


def _piece(text: str, kind: int = 1) -> bytes:
    return _field(1, _field(1, text.encode()) + b"\x18" + bytes([kind]))


SOUND = _piece("<unk>", 2) + _piece("a")


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (SOUND[:-3], "is cut off"),
        (b"\x0a\xff\xff\xff\xff\x0f", "is cut off"),
        (b"\x0a" + b"\xff" * 11, "is cut off"),
        (_field(1, b"\x0a\x02\xff\xfe"), "is cut off"),
        (b"", "has an unknown piece"),
        (_piece("a"), "has an unknown piece"),
        (SOUND + _piece("a"), "each of its pieces once"),
        (SOUND + _piece(""), "each of its pieces once"),
        (SOUND + _field(1, b"\x0a\x01b\x15\x00\x00\xc0\x7f"), "each of its pieces once"),
        (SOUND + _piece("b" * 1_025), "more or longer pieces"),
        (b"".join(_piece(f"{number:01024}") for number in range(4_000)), "more or longer pieces"),
        (_field(1, b"") * 500_001, "more or longer pieces"),
        (SOUND + _field(2, b"\x18\x03"), "of words or of characters"),
        (b"\0" * 20_000_001, "more than the limit"),
        (b"YQ== 0\nYg== x\n", "Line 2 of tokenizer.model"),
        (b"YQ== 0\nYg=a 1\n", "Line 2 of tokenizer.model"),
        (b"YQ== 0\n", "lacks a byte"),
        (b"".join(base64.b64encode(bytes([each])) + b" 1\n" for each in range(256)), "one rank"),
    ],
)
def test_a_file_that_is_no_vocabulary_is_one_sentence(tmp_path, open_path, data, said):
    (path := tmp_path / "tokenizer.model").write_bytes(data)
    with pytest.raises(CheckpointError, match=said):
        read_bare(path)
    checkpoint = open_path(save(tmp_path / "c", {"tokenizer.model": data or b"\0"}, "llama"))
    with pytest.raises(CheckpointError):
        checkpoint.require_tokens()


def test_a_model_that_puts_spaces_behind_words_is_not_read_otherwise(tmp_path):
    (path := tmp_path / "tokenizer.model").write_bytes(train(random.Random(1), "bpe", treat_whitespace_as_suffix=True))
    with pytest.raises(NotInCheckpointError, match="puts spaces at the end of words"):
        read_bare(path)
