"""Read a tokenizer from whichever files a checkpoint brings: as transformers does, or else from the files alone."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import Any

from tokenizers import AddedToken, Tokenizer
from tokenizers.implementations.bert_wordpiece import BertWordPieceTokenizer

from inspector.errors import NotInCheckpointError, NoTokenizerError
from inspector.models.vocabulary.bare import BARE, GENERIC, add_ends, bare_roles, read_bare
from inspector.models.vocabulary.distrust import translated
from inspector.models.vocabulary.gguf_tokenizer import read_gguf_tokenizer
from inspector.models.vocabulary.library import SPECIAL_ROLES, WHOLE, ReadTokenizer, find_class_name, read_as_library
from inspector.models.vocabulary.python_classes import (
    NOT_SUPPORTED,
    is_rust_class,
    is_supported,
    python_class,
    read_as_class,
)
from inspector.store.manifests.manifest import Manifest
from inspector.store.names import CONFIGS, TEMPLATE, VOCABULARIES
from inspector.store.readers.tiktoken import is_tiktoken
from inspector.store.staging import UNREAD_TOKENIZER

# Who cannot read them may be at fault: another version of the library, or another program, may read them well.
UNREADABLE = (
    "The tokenizer files ({files}) cannot be read: if AutoTokenizer.from_pretrained() cannot read them either, compare "
    "them with their source."
)
UNREADABLE_IN_GGUF = (
    "The tokenizer in the GGUF file cannot be read: if llama.cpp cannot read it either, convert the original model "
    "again."
)
UNREAD_BY_CLASS = (
    "transformers' {class_name} does not read {file}: add the tokenizer.json that "
    "AutoTokenizer.from_pretrained(...).save_pretrained() writes."
)
# Tokens that stand for a role where neither a class nor a file says which one does.
USUAL = {
    "pad": ("[PAD]", "<pad>"),
    "mask": ("[MASK]", "<mask>"),
    "unk": ("[UNK]", "<unk>"),
    "cls": ("[CLS]", "<s>"),
    "sep": ("[SEP]", "</s>"),
}


def has_tokenizer(manifest: Manifest) -> bool:
    """Whether the checkpoint brings tokenizer files of its own."""
    if manifest.is_gguf:
        return UNREAD_TOKENIZER not in manifest.warnings
    names = {path.name for path in manifest.folder.iterdir()}
    if not is_supported(_python_class(manifest)):
        return False
    return any(set(needed) <= names for needed, _ in _READERS) or (
        _bare_file(names) is not None and _is_read_bare(_bare_class(manifest))
    )


def read_tokenizer(manifest: Manifest) -> ReadTokenizer:
    """Read the tokenizer files of a staged checkpoint.

    Raises:
        NotInCheckpointError: If there are none.
        CheckpointError: If they cannot be read.
    """
    if manifest.is_gguf:
        if not has_tokenizer(manifest):
            raise NoTokenizerError(UNREAD_TOKENIZER)
        with translated(UNREADABLE_IN_GGUF):
            return read_gguf_tokenizer(manifest)
    names = {path.name for path in manifest.folder.iterdir()}
    if not is_supported(name := _python_class(manifest)):
        raise NotInCheckpointError(NOT_SUPPORTED.format(name=name))
    for needed, read in _READERS:
        if set(needed) <= names:
            with translated(UNREADABLE.format(files=", ".join(needed))):
                found = None if name else read_as_library(manifest, needed)
                return found or _of_files(read(manifest), manifest, needed)
    if found := _bare_file(names):
        with translated(UNREADABLE.format(files=found)):
            return _read_bare(manifest, found)
    raise NoTokenizerError(
        "There is no tokenizer in this checkpoint: only ids can be shown. Add tokenizer.json (or "
        "vocab.txt) to type text."
    )


def _of_files(tokenizer: Tokenizer, manifest: Manifest, needed: Collection[str]) -> ReadTokenizer:
    """What the files say where no class of transformers reads them."""
    settings = read_settings(manifest)
    sides = {side: settings[side] for side in ("padding_side", "truncation_side") if settings.get(side) == "left"}
    roles = {role: _find_role(tokenizer, settings, role) for role in SPECIAL_ROLES}
    unread = find_class_name(manifest, settings) if WHOLE in needed else None
    return ReadTokenizer(tokenizer, roles, unread_class=unread, **sides)


def _bare_file(names: Collection[str]) -> str | None:
    return next((name for name in BARE if name in names), None)


def _bare_class(manifest: Manifest) -> str | None:
    """The class that reads a bare file; None: it is read as its own library does."""
    found = find_class_name(manifest, read_settings(manifest))
    return None if found in GENERIC else found


def _is_read_bare(class_name: str | None) -> bool:
    return class_name is None or is_rust_class(class_name)


def _read_bare(manifest: Manifest, name: str) -> ReadTokenizer:
    """Read a bare file as the class that the checkpoint names, which may change its ids, or by itself.

    Raises:
        CheckpointError: If it is damaged.
        NotInCheckpointError: If the class does not read it.
    """
    class_name, no_pattern = _bare_class(manifest), name if is_tiktoken(manifest.folder / name) else None
    if not _is_read_bare(class_name):
        raise NotInCheckpointError(NOT_SUPPORTED.format(name=class_name))
    found = read_as_library(manifest, (name,)) if class_name else None
    if found and found.class_name not in GENERIC:
        return replace(found, no_pattern=no_pattern)
    tokenizer = read_bare(manifest.folder / name)
    if class_name and not found:
        raise NotInCheckpointError(UNREAD_BY_CLASS.format(class_name=class_name, file=name))
    read = _of_files(tokenizer, manifest, (name,))
    named = {role: text for role, text in read.roles.items() if text}
    roles = {**read.roles, **bare_roles(manifest.folder / name), **named}
    settings = read_settings(manifest)
    add_ends(tokenizer, **{role: roles[role] for role in ("bos", "eos") if settings.get(f"add_{role}_token") is True})
    return replace(read, roles=roles, no_pattern=no_pattern)


def _find_role(tokenizer: Tokenizer, settings: Mapping[str, Any], role: str) -> str | None:
    said = settings.get(f"{role}_token")
    said = said.get("content") if isinstance(said, dict) else said
    wanted = (said,) if isinstance(said, str) else USUAL.get(role, ())
    return next((text for text in wanted if tokenizer.token_to_id(text) is not None), None)


def read_whole(manifest: Manifest) -> Tokenizer:
    """Read tokenizer.json, and nothing beside it."""
    return Tokenizer.from_str((manifest.folder / WHOLE).read_text("utf-8"))


def _python_class(manifest: Manifest) -> str | None:
    """The class in Python that a tokenizer without tokenizer.json is read by; some of them need no file at all."""
    names = {path.name for path in manifest.folder.iterdir()}
    if "tokenizer.json" in names or not names & {*VOCABULARIES, "tokenizer_config.json"}:
        return None
    return python_class(manifest, read_file(manifest, "tokenizer_config.json"))


def _read_words(manifest: Manifest) -> Tokenizer:
    """Read vocab.txt: as the class in Python that is named, or else as WordPiece."""
    name, settings = _python_class(manifest), read_file(manifest, "tokenizer_config.json")
    if name:
        tokenizer = read_as_class(name, manifest.folder / "vocab.txt", read_settings(manifest))
    else:
        tokenizer = _read_wordpiece(manifest, settings)
    for number, token in sorted(_added_tokens(manifest, settings).items()):
        if number == tokenizer.get_vocab_size():  # no other id can be given to it
            tokenizer.add_tokens([token])
    return tokenizer


def _read_wordpiece(manifest: Manifest, settings: Mapping[str, Any]) -> Tokenizer:
    wordpiece = BertWordPieceTokenizer(
        str(manifest.folder / "vocab.txt"),
        lowercase=bool(settings.get("do_lower_case", True)),
        strip_accents=settings.get("strip_accents"),
        handle_chinese_chars=bool(settings.get("tokenize_chinese_chars", True)),
    )
    return Tokenizer.from_str(wordpiece.to_str())


def _added_tokens(manifest: Manifest, settings: Mapping[str, Any]) -> dict[int, AddedToken]:
    """The tokens that files beside vocab.txt add to it, by id, with the flags that transformers gives them."""
    known = read_settings(manifest)
    listed = [known.get(f"{role}_token") for role in SPECIAL_ROLES] + [*(known.get("additional_special_tokens") or ())]
    special = {each["content"] if isinstance(each, dict) else each for each in listed if each}
    plain = {number: {"content": text} for text, number in read_file(manifest, "added_tokens.json").items()}
    described = {int(number): token for number, token in settings.get("added_tokens_decoder", {}).items()}
    return {number: _added_token(token, special) for number, token in (plain | described).items()}


def _added_token(token: Mapping[str, Any], special: Collection[str]) -> AddedToken:
    is_special = token.get("special", token["content"] in special)
    flags = {name: bool(token.get(name)) for name in ("single_word", "lstrip", "rstrip")}
    normalized = token.get("normalized", not is_special)
    return AddedToken(token["content"], **flags, normalized=normalized, special=is_special)


def _refuse_merges(manifest: Manifest) -> Tokenizer:
    """The two files do not tell which tokens begin and end a text: RoBERTa adds two, GPT-2 none, OPT one."""
    raise NotInCheckpointError(
        "transformers has no tokenizer for this model type that reads vocab.json and merges.txt: add the "
        "tokenizer.json that AutoTokenizer.from_pretrained(...).save_pretrained() writes."
    )


_READERS = (((WHOLE,), read_whole), (("vocab.txt",), _read_words), (("vocab.json", "merges.txt"), _refuse_merges))


def named_tokens(manifest: Manifest) -> set[str]:
    """Every token that a file of the checkpoint names."""
    found = {*_texts([read_file(manifest, name) for name in CONFIGS if name not in ("config.json", TEMPLATE)])}
    found |= {*read_file(manifest, "vocab.json")}
    if (manifest.folder / WHOLE).exists():
        found |= {*read_whole(manifest).get_vocab(with_added_tokens=True)}
    if (lines := manifest.folder / "vocab.txt").exists():
        found |= {*lines.read_text("utf-8").split("\n")}
    return found


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    for part in (*value, *value.values()) if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _texts(part)


def read_settings(manifest: Manifest) -> dict[str, Any]:
    """What the tokenizer's settings say, e.g. which token pads."""
    return read_file(manifest, "special_tokens_map.json") | read_file(manifest, "tokenizer_config.json")


def read_file(manifest: Manifest, name: str) -> dict[str, Any]:
    """What a staged file of settings says; nothing if it is not there."""
    path = manifest.folder / name
    if not path.exists():
        return {}
    content = json.loads(path.read_text("utf-8"))
    return content if isinstance(content, dict) else {}
