"""Read a tokenizer from whichever files a checkpoint brings, with the tokenizers library alone."""

from __future__ import annotations

import json
import logging
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from tokenizers import AddedToken, Tokenizer
from tokenizers.implementations.bert_wordpiece import BertWordPieceTokenizer

from inspector.errors import CheckpointError, InspectorError, NotInCheckpointError
from inspector.models.vocabulary.panics import unprinted
from inspector.models.vocabulary.python_classes import NOT_SUPPORTED, is_supported, python_class, read_as_class
from inspector.store.manifests.manifest import Manifest
from inspector.store.names import VOCABULARIES

# Who cannot read them may be at fault: another version of the library, or another program, may read them well.
UNREADABLE = (
    "The tokenizer files ({files}) cannot be read: if AutoTokenizer.from_pretrained() cannot read them either, compare "
    "them with their source."
)
FAILS = "The checkpoint's tokenizer fails on {text}: compare the tokenizer's files with their source."
SPECIAL_ROLES = ("pad", "mask", "unk", "cls", "sep", "bos", "eos")


def has_tokenizer(manifest: Manifest) -> bool:
    """Whether the checkpoint brings tokenizer files of its own."""
    names = {path.name for path in manifest.folder.iterdir()}
    return any(set(needed) <= names for needed, _ in _READERS) and is_supported(_python_class(manifest))


def read_tokenizer(manifest: Manifest) -> Tokenizer:
    """Read the tokenizer files of a staged checkpoint.

    Raises:
        NotInCheckpointError: If there are none.
        CheckpointError: If they cannot be read.
    """
    names = {path.name for path in manifest.folder.iterdir()}
    if not is_supported(name := _python_class(manifest)):
        raise NotInCheckpointError(NOT_SUPPORTED.format(name=name))
    for needed, read in _READERS:
        if set(needed) <= names:
            with _translated(UNREADABLE.format(files=", ".join(needed))):
                return read(manifest)
    found = sorted(name for name in names if name.endswith(".model"))
    if found:
        raise NotInCheckpointError(
            f"{found[0]} is a bare SentencePiece model: add the tokenizer.json that "
            "AutoTokenizer.from_pretrained(...).save_pretrained() writes."
        )
    raise NotInCheckpointError(
        "There is no tokenizer in this checkpoint: only ids can be shown. Add tokenizer.json (or "
        "vocab.txt) to type text."
    )


@contextmanager
def _translated(said: str) -> Iterator[None]:
    try:
        with unprinted():
            yield
    except (InspectorError, KeyboardInterrupt, SystemExit, MemoryError):
        raise
    except BaseException as error:  # the Rust library panics past Exception
        raise CheckpointError(said) from error


@contextmanager
def careful(text: str) -> Iterator[None]:
    """Turn what a hostile tokenizer does while it runs into a sentence.

    Args:
        text: What it is given, as in "this text".

    Raises:
        CheckpointError: If it breaks down.
    """
    with _translated(FAILS.format(text=text)):
        yield


def _read_fast(manifest: Manifest) -> Tokenizer:
    return Tokenizer.from_str((manifest.folder / "tokenizer.json").read_text("utf-8"))


def _python_class(manifest: Manifest) -> str | None:
    """The class in Python that a tokenizer without tokenizer.json is read by; some of them need no file at all."""
    names = {path.name for path in manifest.folder.iterdir()}
    if "tokenizer.json" in names or not names & {*VOCABULARIES, "tokenizer_config.json"}:
        return None
    return python_class(manifest, _read_json(manifest, "tokenizer_config.json"))


def _read_words(manifest: Manifest) -> Tokenizer:
    """Read vocab.txt: as the class in Python that is named, or else as WordPiece."""
    name, settings = _python_class(manifest), _read_json(manifest, "tokenizer_config.json")
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
    listed = [known.get(f"{role}_token") for role in SPECIAL_ROLES] + [*known.get("additional_special_tokens", ())]
    special = {each["content"] if isinstance(each, dict) else each for each in listed if each}
    plain = {number: {"content": text} for text, number in _read_json(manifest, "added_tokens.json").items()}
    described = {int(number): token for number, token in settings.get("added_tokens_decoder", {}).items()}
    return {number: _added_token(token, special) for number, token in (plain | described).items()}


def _added_token(token: Mapping[str, Any], special: Collection[str]) -> AddedToken:
    is_special = token.get("special", token["content"] in special)
    flags = {name: bool(token.get(name)) for name in ("single_word", "lstrip", "rstrip")}
    normalized = token.get("normalized", not is_special)
    return AddedToken(token["content"], **flags, normalized=normalized, special=is_special)


def _read_merges(manifest: Manifest) -> Tokenizer:
    """As transformers' class does, of the settings or of the model type.

    The two files do not tell which tokens begin and end a text: RoBERTa adds two, GPT-2 none, OPT one.
    """
    import transformers

    transformers.logging.set_verbosity(logging.CRITICAL)
    try:
        read = transformers.AutoTokenizer.from_pretrained(
            manifest.folder, local_files_only=True, trust_remote_code=False
        )
    except Exception:  # of many kinds: it knows no class, or its class wants other files
        read = None
    # A class whose files are missing begins with an empty vocabulary instead of refusing.
    if read is None or not read.is_fast or "merges.txt" not in read.vocab_files_names.values():
        raise NotInCheckpointError(
            "transformers has no tokenizer for this model type that reads vocab.json and merges.txt: add the "
            "tokenizer.json that AutoTokenizer.from_pretrained(...).save_pretrained() writes."
        )
    content = json.loads(read.backend_tokenizer.to_str())
    held = {*content["model"]["vocab"], *_added(manifest)}
    # Its class makes up the special tokens that the files lack, past the vocabulary's last row.
    content["added_tokens"] = [each for each in content["added_tokens"] if each["content"] in held]
    return Tokenizer.from_str(json.dumps(content))


def _added(manifest: Manifest) -> Iterator[str]:
    """Tokens that the checkpoint's files add to the vocabulary."""
    yield from _read_json(manifest, "added_tokens.json")
    settings = _read_json(manifest, "tokenizer_config.json")
    for token in settings.get("added_tokens_decoder", {}).values():
        yield token["content"]


_READERS = (
    (("tokenizer.json",), _read_fast),
    (("vocab.txt",), _read_words),
    (("vocab.json", "merges.txt"), _read_merges),
)


def read_settings(manifest: Manifest) -> dict[str, Any]:
    """What the tokenizer's settings say, e.g. which token pads."""
    return _read_json(manifest, "special_tokens_map.json") | _read_json(manifest, "tokenizer_config.json")


def _read_json(manifest: Manifest, name: str) -> dict[str, Any]:
    path = manifest.folder / name
    if not path.exists():
        return {}
    content = json.loads(path.read_text("utf-8"))
    return content if isinstance(content, dict) else {}
