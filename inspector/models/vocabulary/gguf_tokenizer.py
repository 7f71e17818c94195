"""Build the tokenizer that a GGUF file describes, as transformers builds it, from a reader that is bounded."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tokenizers import Tokenizer, decoders, pre_tokenizers

from inspector.errors import CheckpointError
from inspector.models.vocabulary.bare import SPACE, add_ends
from inspector.models.vocabulary.library import ReadTokenizer
from inspector.models.vocabulary.torchless import torch_when_asked
from inspector.store.foreign.gguf_tokenizer import AS_GPT2, BYTE_LEVEL, DIGITS_APART, WHOLE_WORDS
from inspector.store.manifests.manifest import Manifest
from inspector.store.readers.gguf import Array, read_array, read_gguf

PREFIX = "tokenizer.ggml."
# transformers' name of what it is given -> the metadata's
GIVEN = {
    "tokenizer_type": "model",
    "pre_tokenizer_type": "pre",
    "tokens": "tokens",
    "scores": "scores",
    "token_type": "token_type",
    "merges": "merges",
}
ROLES = {
    "bos": "bos_token_id",
    "eos": "eos_token_id",
    "unk": "unknown_token_id",
    "sep": "seperator_token_id",  # llama.cpp's spelling
    "pad": "padding_token_id",
    "cls": "cls_token_id",
    "mask": "mask_token_id",
}
MAX_CHARACTERS = 2_000  # of a token: its merges are looked for at every place of it


def read_gguf_tokenizer(manifest: Manifest) -> ReadTokenizer:
    """Build the tokenizer of a GGUF file of a kind that is read here.

    Raises:
        CheckpointError: If its parts do not fit together.
    """
    file = next(file for file in manifest.files if file.format == "gguf")  # of several, the first says all
    metadata = read_gguf(file.path, file.name).settings
    said = {key.removeprefix(PREFIX): value for key, value in metadata.items() if key.startswith(PREFIX)}
    arrays = {
        key: read_array(file.path, file.name, value) if isinstance(value, Array) else value
        for key, value in said.items()
        if key in GIVEN.values()
    }
    _refuse_unfit(arrays, file.name)
    tokenizer = _convert(str(metadata.get("general.architecture")), arrays)
    _set_spaces(tokenizer, said)
    roles = {role: _text(tokenizer, said.get(key)) for role, key in ROLES.items()}
    adds_bos = said.get("add_bos_token", said.get("model") == "llama" or said.get("pre") in WHOLE_WORDS)
    ends = {"bos": adds_bos, "eos": said.get("add_eos_token", False)}
    tokenizer.post_processor = None  # pyright: ignore[reportAttributeAccessIssue]
    add_ends(tokenizer, **{role: roles[role] for role, added in ends.items() if added is True})
    return ReadTokenizer(tokenizer, roles)


def _convert(architecture: str, arrays: Mapping[str, Any]) -> Tokenizer:
    with torch_when_asked():
        from transformers.integrations.gguf.gguf_tokenizer_mapping import convert_gguf_tokenizer

        given = {name: arrays[key] for name, key in GIVEN.items() if key in arrays}
        tokenizer, _ = convert_gguf_tokenizer(architecture, given)
    return _without_more(tokenizer, len(arrays["tokens"]))


def _without_more(tokenizer: Tokenizer, count: int) -> Tokenizer:
    """A tokenizer without the special tokens that its class adds to those of the file: GPT-2's <|endoftext|>."""
    if max(tokenizer.get_added_tokens_decoder(), default=0) < count:
        return tokenizer
    state = json.loads(tokenizer.to_str())
    state["added_tokens"] = [each for each in state["added_tokens"] if each["id"] < count]
    return Tokenizer.from_str(json.dumps(state))


def _set_spaces(tokenizer: Any, said: Mapping[str, Any]) -> None:
    """What transformers does not read of the metadata, and llama.cpp does (src/llama-vocab.cpp)."""
    kind, split = said.get("model"), said.get("pre")
    if kind == "llama" and said.get("add_space_prefix") is False and tokenizer.pre_tokenizer is not None:
        tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(replacement=SPACE, prepend_scheme="never", split=False)
        tokenizer.decoder = decoders.Sequence([decoders.Replace(SPACE, " "), decoders.ByteFallback(), decoders.Fuse()])
    if kind == BYTE_LEVEL and split in WHOLE_WORDS:
        tokenizer.model.ignore_merges = True
    if kind == BYTE_LEVEL and split in AS_GPT2 | DIGITS_APART:
        by_digits = [pre_tokenizers.Digits(individual_digits=True)] if split in DIGITS_APART else []
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
            [*by_digits, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)]
        )


def _refuse_unfit(arrays: Mapping[str, Any], name: str) -> None:
    tokens: Any = arrays.get("tokens")
    texts = [arrays[key] for key in ("tokens", "merges") if key in arrays]
    fine = tokens and all(isinstance(each, list) and all(isinstance(text, str) for text in each) for each in texts)
    for key in ("scores", "token_type"):
        fine = fine and len(arrays.get(key, tokens)) == len(tokens)
    if arrays.get("model") != BYTE_LEVEL and "merges" not in arrays:
        fine = fine and "scores" in arrays
    if not fine or max(map(len, tokens)) > MAX_CHARACTERS:
        raise CheckpointError(
            f"The tokenizer in {name} cannot be read, for its tokens, scores and merges do not belong together: if "
            "llama.cpp cannot read it either, convert the original model again."
        )


def _text(tokenizer: Tokenizer, number: Any) -> str | None:
    return tokenizer.id_to_token(number) if type(number) is int and 0 <= number < 1 << 31 else None
