"""Stage the files of a tokenizer: its settings from allow-listed keys, its vocabulary as it is."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from inspector.errors import CheckpointError
from inspector.store.configs import is_scalar
from inspector.store.generation import read_templates
from inspector.store.names import VOCABULARIES, is_text
from inspector.store.readers.jsons import read_json

MAX_NBYTES = 20_000_000
MAX_VOCABULARY_NBYTES = 200_000_000
MAX_ADDED_TOKENS = 100_000
MAX_SPECIAL_TOKENS = 10_000  # transformers looks for each among all that were added
MAX_COUNT = 100_000  # of made-up tokens, and of whatever else is counted
# Tokenizers of bytes and characters: a class, and no vocabulary file
WITHOUT_VOCABULARY = frozenset({"ByT5Tokenizer", "CanineTokenizer", "PerceiverTokenizer"})

_ADDED_TOKEN = {
    "content": str,
    "lstrip": bool,
    "rstrip": bool,
    "single_word": bool,
    "normalized": bool,
    "special": bool,
}


def _added_token(value: Any) -> dict[str, Any] | None:
    """An AddedToken as JSON, its type mark kept (transformers tells it by that)."""
    if not isinstance(value, dict) or not isinstance(value.get("content"), str):
        return None
    if not is_scalar(value["content"]):
        return None
    fields = {k: v for k, v in value.items() if isinstance(v, _ADDED_TOKEN.get(k, ()))}
    return {**fields, "__type": "AddedToken"} if value.get("__type") == "AddedToken" else fields


def _token(value: Any) -> Any:
    return value if isinstance(value, str) and is_scalar(value) else _added_token(value)


def _tokens(value: Any) -> list[Any] | dict[str, Any] | None:
    """A list of tokens, or an object that gives each a name."""
    if not isinstance(value, list | dict) or len(value) > MAX_SPECIAL_TOKENS:
        return None
    if isinstance(value, list):
        return [token for token in map(_token, value) if token is not None]
    named = {key: _token(token) for key, token in value.items() if re.fullmatch(r"[A-Za-z]\w{0,79}", key, re.ASCII)}
    return {key: token for key, token in named.items() if token is not None}


def _added_tokens(value: Any) -> dict[str, Any] | None:
    if not isinstance(value, dict) or len(value) > MAX_ADDED_TOKENS:
        return None
    tokens = {key: _added_token(v) for key, v in value.items() if re.fullmatch(r"\d{1,9}", key)}
    return {key: token for key, token in tokens.items() if token is not None}


def _bool(value: Any) -> bool | None:
    return value if isinstance(value, bool) else None


def _count(value: Any) -> int | None:
    """A small number: transformers makes up as many tokens as some of them say."""
    return value if type(value) is int and abs(value) <= MAX_COUNT else None


def _box(value: Any) -> list[int] | None:
    """Where on a page a token lies."""
    fine = isinstance(value, list) and len(value) == 4 and all(_count(each) is not None for each in value)
    return value if fine else None


def _length(value: Any) -> int | None:
    """A length; "no limit" is written as a number of 31 digits, which stays a number."""
    return value if type(value) is int and 0 < value <= 10**30 else None


def _word(value: Any) -> str | None:
    fine = isinstance(value, str) and re.fullmatch(r"[A-Za-z0-9_]{1,80}", value)
    return value if fine else None


def _words(value: Any) -> list[str] | None:
    if not isinstance(value, list) or len(value) > 1_000:
        return None
    return [item for item in value if isinstance(item, str) and is_scalar(item)]


def _tags(value: Any) -> dict[str, int] | None:
    """The tags of a page, and the number of each."""
    if not isinstance(value, dict) or len(value) > MAX_SPECIAL_TOKENS:
        return None
    return {tag: number for tag, number in value.items() if _word(tag) and _count(number) is not None}


# A token that a class, or only this checkpoint, gives a name, such as "image_token".
NAMED_TOKEN = re.compile(r"[a-z][a-z0-9_]{0,59}_token")
SPECIAL_TOKENS: dict[str, Callable[[Any], Any]] = {
    **dict.fromkeys(
        ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"), _token
    ),
    **dict.fromkeys(("additional_special_tokens", "extra_special_tokens", "model_specific_special_tokens"), _tokens),
}
# Besides tokens: what the tokenizer classes of transformers take (tests/store/test_tokenizer_settings.py lists it).
SETTINGS: dict[str, Callable[[Any], Any]] = {
    **SPECIAL_TOKENS,
    "added_tokens_decoder": _added_tokens,
    **dict.fromkeys(
        (
            "add_blank",
            "add_bos_token",
            "add_dummy_prefix_space",
            "add_eos_token",
            "add_prefix_space",
            "clean_text",
            "clean_up_tokenization_spaces",
            "clean_up_tokenization_spaces_for_bpe_even_though_it_will_corrupt_output",
            "do_basic_tokenize",
            "do_clean_text",
            "do_lower_case",
            "do_lowercase",
            "do_lowercase_and_remove_accent",
            "do_phonemize",
            "do_split_on_punc",
            "do_subword_tokenize",
            "do_word_tokenize",
            "fix_mistral_regex",
            "is_uroman",
            "keep_accents",
            "legacy",
            "legacy_behaviour",
            "lowercase",
            "normalization",
            "normalize",
            "normalize_text",
            "only_label_first_subword",
            "phonemize",
            "predict_timestamps",
            "remove_space",
            "return_token_type_ids",
            "should_strip_spaces",
            "split_by_punct",
            "split_special_tokens",
            "strip_accents",
            "strip_column_names",
            "tokenize_chinese_chars",
            "trim_offsets",
            "update_answer_coordinates",
            "use_default_system_prompt",
            "wordpieces_prefix_space",
        ),
        _bool,
    ),
    **dict.fromkeys(
        (
            "errors",
            "language",
            "mecab_dic",
            "padding_side",
            "src_lang",
            "subword_tokenizer_type",
            "target_lang",
            "task",
            "tgt_lang",
            "token_type_ids_pattern",
            "tokenizer_class",
            "truncation_side",
            "vocab_type",
            "word_tokenizer_type",
        ),
        _word,
    ),
    **dict.fromkeys(
        (
            "cell_trim_length",
            "extra_ids",
            "max_column_id",
            "max_depth",
            "max_entity_length",
            "max_input_chars_per_word",
            "max_mention_length",
            "max_question_length",
            "max_row_id",
            "max_width",
            "min_question_length",
            "offset",
            "pad_token_label",
            "pad_width",
            "unk_id",
        ),
        _count,
    ),
    **dict.fromkeys(("cls_token_box", "pad_token_box", "sep_token_box"), _box),
    "chat_template": read_templates,
    "tags_dict": _tags,
    "mask_token_sent": _token,
    "wordpieces_prefix": _token,
    "never_split": _words,
    "model_input_names": _words,
    "model_max_length": _length,
    "max_len": _length,
    "max_length": _length,
    "replace_word_delimiter_char": _token,
}


def stage_tokenizer(files: Mapping[str, Path], folder: Path) -> bool:
    """Write the tokenizer's files into the staged folder.

    Returns:
        Whether the checkpoint has a tokenizer. Settings without a vocabulary are none:
        transformers would make one up.

    Raises:
        CheckpointError: If one of the files is broken or too large.
    """
    rebuilt = {
        name: rebuild(read_json(files[name], name, limit=MAX_NBYTES), name)
        for name, rebuild in _REBUILD.items()
        if name in files
    }
    vocabularies = [name for name in VOCABULARIES if name in files]
    kind = rebuilt.get("tokenizer_config.json", {}).get("tokenizer_class")
    if not vocabularies and kind not in WITHOUT_VOCABULARY:
        return False
    for name, settings in rebuilt.items():
        (folder / name).write_text(json.dumps(settings, indent=2), encoding="utf-8")
    for name in vocabularies:
        _copy_vocabulary(files[name], name, folder / name)
    return True


def rebuild_tokenizer_config(settings: Any, name: str) -> dict[str, Any]:
    """Keep the settings of a tokenizer that name no file, no code and no vocabulary.

    Raises:
        CheckpointError: If it is no JSON object.
    """
    return _rebuild(settings, name, SETTINGS)


def _rebuild_special_tokens(settings: Any, name: str) -> dict[str, Any]:
    return _rebuild(settings, name, SPECIAL_TOKENS)


def _rebuild_added_tokens(tokens: Any, name: str) -> dict[str, int]:
    _refuse_no_object(tokens, name)
    return {
        token: number
        for token, number in tokens.items()
        if is_text(token) and type(number) is int and 0 <= number < 2**31
    }


_REBUILD = {
    "tokenizer_config.json": rebuild_tokenizer_config,
    "special_tokens_map.json": _rebuild_special_tokens,
    "added_tokens.json": _rebuild_added_tokens,
}


def _rebuild(settings: Any, name: str, table: Mapping[str, Callable[[Any], Any]]) -> dict[str, Any]:
    _refuse_no_object(settings, name)
    rebuilders = {key: table.get(key) or (_token if NAMED_TOKEN.fullmatch(key) else None) for key in settings}
    checked = {key: rebuild(settings[key]) for key, rebuild in rebuilders.items() if rebuild}
    return {key: v for key, v in checked.items() if v is not None or settings[key] is None}


def _refuse_no_object(settings: Any, name: str) -> None:
    if not isinstance(settings, dict):
        raise CheckpointError(f"{name} contains no settings: check that it belongs to a tokenizer.")


def _copy_vocabulary(source: Path, name: str, target: Path) -> None:
    nbytes = source.stat().st_size
    if not nbytes:
        raise CheckpointError(f"{name} is empty: get the file again.")
    if nbytes > MAX_VOCABULARY_NBYTES:
        raise CheckpointError(
            f"{name} has {nbytes:,} bytes, more than the limit of {MAX_VOCABULARY_NBYTES:,} for a vocabulary: check "
            "that it belongs to a tokenizer."
        )
    if name.endswith(".json"):
        read_json(source, name, limit=MAX_VOCABULARY_NBYTES)
    shutil.copyfile(source, target)
