"""Every tokenizer class of the installed transformers, given a tiny tokenizer.json and settings: as AutoTokenizer."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from safetensors.torch import save_file
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
from transformers import AutoTokenizer, PreTrainedTokenizerFast
from transformers.models.auto.auto_mappings import CONFIG_MAPPING_NAMES
from transformers.models.auto.tokenization_auto import TOKENIZER_MAPPING_NAMES

from inspector.models.checkpoint import StagedCheckpoint
from inspector.models.tokens import Tokens

Opener = Callable[[Path], StagedCheckpoint]
SPECIAL = ["<s>", "<pad>", "</s>", "<unk>", "<mask>", "[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "<|endoftext|>"]
TEXTS = ("Add 2023 dogs", "  the  dog<mask> don't", "[PAD] Ångström é <new> extra\n", "x<extra>y <bos>")
EVERYDAY = ["BertTokenizer", "GemmaTokenizer", "PreTrainedTokenizerFast", "Qwen2Tokenizer", "T5Tokenizer"]
EVERYDAY_TYPES = {"bert", "gemma", "llama", "mistral", "qwen2", "t5", "esm"}
OF_TWO = {
    "nougat": {"encoder": {"model_type": "vit"}, "decoder": {"model_type": "mbart"}},
    "encoder-decoder": {"encoder": {"model_type": "gpt2"}, "decoder": {"model_type": "gpt2"}},
}
OF_PAGES = {"LayoutLMv2Tokenizer", "LayoutLMv3Tokenizer", "LayoutXLMTokenizer", "MarkupLMTokenizer", "UdopTokenizer"}
ROLES = ("pad", "mask", "unk", "cls", "sep", "bos", "eos")


def word_pieces() -> Tokenizer:
    words = [*SPECIAL, "the", "dog", "add", "Add", "don", "'", "2023", "##s", "##t", "t", "x", "y", "ang", "##strom"]
    tokenizer = Tokenizer(models.WordPiece({word: row for row, word in enumerate(words)}, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=False)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    roles = [("[CLS]", words.index("[CLS]")), ("[SEP]", words.index("[SEP]"))]
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=roles
    )
    return tokenizer


def byte_pairs() -> Tokenizer:
    """Of bytes; digits stay together, which few classes do."""
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    merges = [("d", "o"), ("do", "g"), ("2", "0"), ("20", "2"), ("202", "3"), ("Ġ", "dog"), ("t", "h"), ("th", "e")]
    words = [*SPECIAL, *letters, *("".join(pair) for pair in merges)]
    tokenizer = Tokenizer(models.BPE({word: row for row, word in enumerate(words)}, merges))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def sentence_pieces() -> Tokenizer:
    """BPE as SentencePiece writes it: blanks are letters, and bytes stand in for letters that are missing."""
    letters = ["▁", *"Addogthe20'nsxy3", *(f"<0x{byte:02X}>" for byte in range(256))]
    merges = [("d", "o"), ("do", "g"), ("▁", "dog"), ("2", "0"), ("20", "2"), ("t", "h"), ("th", "e"), ("▁", "the")]
    words = [*SPECIAL, *dict.fromkeys(letters), *("".join(pair) for pair in merges)]
    vocabulary = {word: row for row, word in enumerate(words)}
    tokenizer = Tokenizer(models.BPE(vocabulary, merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    tokenizer.normalizer = normalizers.Replace(" ", "▁")
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    return tokenizer


def unigrams() -> Tokenizer:
    words = [
        *SPECIAL,
        *("▁the", "▁dog", "▁Add", "▁", "s", "2", "0", "202", "3", "d", "o", "g", "n", "t", "'", "x", "y"),
    ]
    scored = [(word, 0.0 if word in SPECIAL else -float(len(words) - row)) for row, word in enumerate(words)]
    tokenizer = Tokenizer(models.Unigram(scored, unk_id=SPECIAL.index("<unk>")))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    return tokenizer


KINDS = {"WordPiece": word_pieces, "BPE": byte_pairs, "SentencePiece": sentence_pieces, "Unigram": unigrams}
NEW = {"content": "<new>", "lstrip": True, "rstrip": False, "normalized": False, "single_word": False, "special": True}
MUTATIONS: dict[str, dict[str, Any]] = {
    "as it is": {},
    "a padding token that tokenizer.json lacks": {"pad_token": "<new>"},
    "padding on the left": {"padding_side": "left", "truncation_side": "left"},
    "padding on the right": {"padding_side": "right"},
    "begin and end": {"add_bos_token": True, "add_eos_token": True, "bos_token": "<s>", "eos_token": "</s>"},
    "no begin": {"add_bos_token": False},
    "space in front": {"add_prefix_space": True},
    "no space in front": {"add_prefix_space": False},
    "lower case": {"do_lower_case": True},
    "mixed case": {"do_lower_case": False, "strip_accents": False},
    "a list of special tokens": {"extra_special_tokens": ["<extra>", "<new>"]},
    "additional special tokens": {"additional_special_tokens": ["<extra>", "[PAD]"]},
    "special tokens by name": {"extra_special_tokens": {"image_token": "<extra>"}},
    "a token of another name": {"boi_token": "<extra>"},
    "added tokens": {"added_tokens_decoder": {"900": NEW | {"lstrip": False}}},
    "added tokens that take spaces": {"added_tokens_decoder": {"900": NEW, "901": NEW | {"content": "extra"}}},
    "cleaned up": {"clean_up_tokenization_spaces": True},
    "legacy": {"legacy": True},
    "not legacy": {"legacy": False},
    "special tokens split": {"split_special_tokens": True},
}
OTHERS = {"special_tokens_map.json": {"pad_token": NEW, "additional_special_tokens": ["<extra>"]},
          "added_tokens.json": {"<extra>": 900, "<new>": 800}}  # fmt: skip


def tokenizer_classes() -> Iterator[Any]:
    """Those that can be built from tokenizer.json; few of them every day."""
    for name in sorted({*dir(transformers), *filter(None, TOKENIZER_MAPPING_NAMES.values())}):
        found = getattr(transformers, name, None) if "Tokenizer" in name else None
        if isinstance(found, type) and PreTrainedTokenizerFast in type.mro(found):
            yield pytest.param(name, marks=() if name in EVERYDAY else pytest.mark.families)


def checkpoint_of(folder: Path, kind: str, settings: dict[str, Any], *, model_type: str = "bert") -> Path:
    """What is needed to open a checkpoint, and a tokenizer."""
    folder.mkdir(exist_ok=True)
    for old in folder.iterdir():
        old.unlink()
    save_file({"w": torch.zeros(1)}, folder / "model.safetensors", metadata={"format": "pt"})
    (folder / "config.json").write_text(json.dumps({"model_type": model_type} | OF_TWO.get(model_type, {})))
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    KINDS[kind]().save(str(folder / "tokenizer.json"))
    return folder


def read(tokens: Tokens) -> dict[str, Any]:
    """What this product says of a tokenizer."""
    encodings = [tokens.encoding(text) for text in TEXTS]
    said = {"ids": [each.ids for each in encodings], "pair": tokens.encoding(*TEXTS[:2]).type_ids}
    tokens.pad(encodings)
    return said | {
        "padded": [each.ids for each in encodings] if tokens.role("pad")[0] else None,
        "size": tokens.size,
        "sides": (tokens.padding_side, tokens.truncation_side),
        "roles": [tokens.role(role) for role in ROLES],
        "class": tokens.class_name,
    }


def expect(truth: Any) -> dict[str, Any]:
    """The same of transformers' own object; one that reads pages instead of texts is asked below its surface."""
    tokens = [(getattr(truth, f"{role}_token"), getattr(truth, f"{role}_token_id")) for role in ROLES]
    said = {
        "size": max(truth.get_vocab().values()) + 1,
        "sides": (truth.padding_side, truth.truncation_side),
        "roles": tokens,
        "class": type(truth).__name__,
    }
    backend = truth.backend_tokenizer
    backend.no_padding()
    if type(truth).__name__ in OF_PAGES:
        return said | {"ids": [backend.encode(text).ids for text in TEXTS], "pair": backend.encode(*TEXTS[:2]).type_ids}
    said["ids"] = [truth(text, padding=False)["input_ids"] for text in TEXTS]
    said["pair"] = backend.encode(*TEXTS[:2]).type_ids
    padded = truth([*TEXTS], padding=True, pad_to_multiple_of=None)["input_ids"] if truth.pad_token else None
    return said | {"padded": padded}


def differences(folder: Path, open_path: Opener) -> list[str]:
    """In which respects the product and AutoTokenizer differ on a folder."""
    tokens = open_path(folder).require_tokens()
    try:
        truth = AutoTokenizer.from_pretrained(folder)
    except Exception:  # of many kinds
        truth = None
    if not getattr(truth, "is_fast", False):  # refused, or a class written in Python, which reads no tokenizer.json
        return [] if tokens.class_name is None and tokens.notes else ["a warning is missing"]
    expected, found = expect(truth), read(tokens)
    return [f"{key}: {found[key]} instead of {expected[key]}" for key in expected if found[key] != expected[key]]


def kind_of(name: str) -> str:
    """Which of the tiny files a class can be built from."""
    model = vars(getattr(transformers, name, object)).get("model")
    return model.__name__ if model and model.__name__ in KINDS else "BPE"


@pytest.mark.parametrize("name", tokenizer_classes())
def test_a_class_is_read_as_transformers_reads_it(tmp_path, open_path, name):
    kinds = ["Unigram", "SentencePiece"] if kind_of(name) == "Unigram" else [kind_of(name), "SentencePiece"]
    wrong = {}
    for what, settings in MUTATIONS.items():
        kind = kinds[len(what) % 2]
        folder = checkpoint_of(tmp_path / "c", kind, {"tokenizer_class": name} | settings)
        if found := differences(folder, open_path):
            wrong[what] = kind, found
    assert not wrong


@pytest.mark.parametrize("file", OTHERS)
@pytest.mark.parametrize("name", EVERYDAY)
def test_files_of_older_versions_add_their_tokens(tmp_path, open_path, name, file):
    folder = checkpoint_of(tmp_path / "c", kind_of(name), {"tokenizer_class": name})
    (folder / file).write_text(json.dumps(OTHERS[file]))
    assert not differences(folder, open_path)
    tokens = open_path(folder).require_tokens()
    assert tokens.find("<extra>") == AutoTokenizer.from_pretrained(folder).convert_tokens_to_ids("<extra>")


def model_types() -> Iterator[Any]:
    for model_type in CONFIG_MAPPING_NAMES:
        if TOKENIZER_MAPPING_NAMES.get(model_type) or model_type in OF_TWO:
            yield pytest.param(model_type, marks=() if model_type in EVERYDAY_TYPES else pytest.mark.families)


@pytest.mark.parametrize("model_type", model_types())
def test_the_class_is_the_one_that_the_model_type_and_the_settings_choose(tmp_path, open_path, model_type):
    wrong = {}
    for named in (None, "PreTrainedTokenizerFast", "GPT2TokenizerFast", "LlamaTokenizer", "NoSuchTokenizer"):
        settings = {"tokenizer_class": named} if named else {}
        kind = kind_of(TOKENIZER_MAPPING_NAMES.get(model_type) or "")
        folder = checkpoint_of(tmp_path / "c", kind, settings, model_type=model_type)
        if found := differences(folder, open_path):
            wrong[named] = found
    assert not wrong
