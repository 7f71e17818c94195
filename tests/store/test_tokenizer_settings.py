"""Which settings of a tokenizer are kept: all that a class of transformers takes, none that names a file or code."""

from __future__ import annotations

import inspect

import pytest
import transformers
from transformers import PreTrainedTokenizerBase
from transformers.models.auto.tokenization_auto import TOKENIZER_MAPPING_NAMES

from inspector.store.tokenizer_files import SETTINGS, rebuild_tokenizer_config

# Files, what is read from them, and libraries of languages that are not used here.
OTHERS = {"vocab", "merges", "langs", "lang2id", "id2lang", "entity_vocab", "phonemizer_backend", "phonemizer_lang"}


def plain_parameters() -> set[str]:
    """What the constructors of the tokenizer classes take, but for files, tokens and what is not plain."""
    found = set()
    for name in sorted({*dir(transformers), *filter(None, TOKENIZER_MAPPING_NAMES.values())}):
        tokenizer_class = getattr(transformers, name, None) if "Tokenizer" in name else None
        if not (isinstance(tokenizer_class, type) and PreTrainedTokenizerBase in type.mro(tokenizer_class)):
            continue
        if "sentencepiece" in getattr(tokenizer_class, "__backends", ()):  # runs that library, and is not read here
            continue
        for parameter in inspect.signature(tokenizer_class).parameters.values():
            found |= {parameter.name} if isinstance(parameter.default, bool | int | str | list | None) else set()
    return {name for name in found if not name.endswith(("_token", "_file", "_kwargs", "_option", "_charsmap"))}


def test_every_plain_setting_of_a_tokenizer_class_is_kept():
    parameters = plain_parameters()
    assert len(parameters) > 50
    assert parameters - {*SETTINGS} - OTHERS == set()


@pytest.mark.parametrize(
    ("settings", "kept"),
    [
        ({"image_token": "<image>", "boi_token": {"content": "<b>", "lstrip": True}},) * 2,
        ({"extra_special_tokens": {"image": "<i>", "b c": "x"}}, {"extra_special_tokens": {"image": "<i>"}}),
        ({"extra_special_tokens": ["<a>", 3]}, {"extra_special_tokens": ["<a>"]}),
        ({"additional_special_tokens": ["x"] * 10_001}, {}),
        ({"extra_ids": 100}, {"extra_ids": 100}),
        ({"extra_ids": 10**9, "offset": -(10**9), "unk_id": True}, {}),  # as many tokens would be made up
        ({"tags_dict": {"div": 3, "../x": 1}}, {"tags_dict": {"div": 3}}),
        ({"cls_token_box": [0, 0, 0, 0], "pad_token_box": [0]}, {"cls_token_box": [0, 0, 0, 0]}),
        ({"vocab_file": "/etc/passwd", "tokenizer_file": "x", "auto_map": {}, "trust_remote_code": True}, {}),
        ({"a b_token": "x", "__init___token": "x", "chat_template": ["x"], "init_inputs": ["x"]}, {}),
        ({"chat_template": "{{ x }}"},) * 2,
    ],
)  # fmt: skip
def test_settings_are_rebuilt(settings, kept):
    assert rebuild_tokenizer_config(settings, "tokenizer_config.json") == kept
