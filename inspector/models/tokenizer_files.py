"""Read a tokenizer from whichever files a checkpoint brings, with the tokenizers library alone."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tokenizers import AddedToken, Tokenizer
from tokenizers.implementations.bert_wordpiece import BertWordPieceTokenizer
from tokenizers.implementations.byte_level_bpe import ByteLevelBPETokenizer
from tokenizers.processors import RobertaProcessing

from inspector.errors import CheckpointError, NotInCheckpointError
from inspector.models.panics import unprinted
from inspector.store.manifest import Manifest


def has_tokenizer(manifest: Manifest) -> bool:
    """Whether the checkpoint brings tokenizer files of its own."""
    names = {path.name for path in manifest.folder.iterdir()}
    return any(set(needed) <= names for needed, _ in _READERS)


def read_tokenizer(manifest: Manifest) -> Tokenizer:
    """Read the tokenizer files of a staged checkpoint.

    Raises:
        NotInCheckpointError: If there are none.
        CheckpointError: If they cannot be read.
    """
    names = {path.name for path in manifest.folder.iterdir()}
    for needed, read in _READERS:
        if set(needed) <= names:
            what = f"The tokenizer files ({', '.join(needed)}) cannot be read"
            with _translated(what):
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
def _translated(what: str) -> Iterator[None]:
    try:
        with unprinted():
            yield
    except (KeyboardInterrupt, SystemExit, MemoryError):
        raise
    except BaseException as error:  # the Rust library panics past Exception
        raise CheckpointError(f"{what}: save them again with tokenizer.save_pretrained().") from error


@contextmanager
def careful(text: str) -> Iterator[None]:
    """Turn what a hostile tokenizer does while it runs into a sentence.

    Args:
        text: What it is given, as in "this text".

    Raises:
        CheckpointError: If it breaks down.
    """
    with _translated(f"The checkpoint's tokenizer files break down on {text}"):
        yield


def _read_fast(manifest: Manifest) -> Tokenizer:
    return Tokenizer.from_str((manifest.folder / "tokenizer.json").read_text("utf-8"))


def _read_wordpiece(manifest: Manifest) -> Tokenizer:
    settings = _read_json(manifest, "tokenizer_config.json")
    wordpiece = BertWordPieceTokenizer(
        str(manifest.folder / "vocab.txt"),
        lowercase=bool(settings.get("do_lower_case", True)),
        strip_accents=settings.get("strip_accents"),
        handle_chinese_chars=bool(settings.get("tokenize_chinese_chars", True)),
    )
    return _rust(wordpiece)


def _read_byte_level(manifest: Manifest) -> Tokenizer:
    settings = _read_json(manifest, "tokenizer_config.json")
    bpe = ByteLevelBPETokenizer(
        str(manifest.folder / "vocab.json"),
        str(manifest.folder / "merges.txt"),
        add_prefix_space=bool(settings.get("add_prefix_space", False)),
    )
    tokenizer = _rust(bpe)
    special = [
        token
        for token in ("<s>", "</s>", "<pad>", "<unk>", "<mask>", "<|endoftext|>")
        if tokenizer.token_to_id(token) is not None
    ]
    tokenizer.add_special_tokens([AddedToken(t, lstrip=t == "<mask>") for t in special])
    begin, end = tokenizer.token_to_id("<s>"), tokenizer.token_to_id("</s>")
    if begin is not None and end is not None:
        tokenizer.post_processor = RobertaProcessing(("</s>", end), ("<s>", begin), add_prefix_space=False)
    return tokenizer


def _rust(wrapped: Any) -> Tokenizer:
    """The library's own tokenizer inside one of its ready-made ones."""
    return Tokenizer.from_str(wrapped.to_str())


_READERS = (
    (("tokenizer.json",), _read_fast),
    (("vocab.txt",), _read_wordpiece),
    (("vocab.json", "merges.txt"), _read_byte_level),
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
