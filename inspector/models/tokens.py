"""Turn text into token ids and ids into visible text, with the tokenizers library alone."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from tokenizers import Encoding, normalizers

from inspector.errors import CheckpointError, RequestError
from inspector.models.vocabulary.reachable import find_unreachable
from inspector.models.vocabulary.tokenizer_files import SPECIAL_ROLES, careful, read_settings, read_tokenizer
from inspector.results.checkpoint import TokenizerInfo
from inspector.store.manifests.manifest import Manifest

if TYPE_CHECKING:  # half a second of an overview
    import pandas as pd

MAX_CHARACTERS = 20_000
MAX_NORMALIZED = 500_000  # characters that a normalizer may make of them
MAX_INSERTED = 100  # characters that a step of it may insert in every place; usual ones insert three
MAX_SHOWN = 300  # characters of one token; real vocabularies have up to 128
# Tokens that stand for a role where no file says which one does.
USUAL = {
    "pad": ("[PAD]", "<pad>"),
    "mask": ("[MASK]", "<mask>"),
    "unk": ("[UNK]", "<unk>"),
    "cls": ("[CLS]", "<s>"),
    "sep": ("[SEP]", "</s>"),
}
UNUSED = re.compile(r"\[unused\d+\]|<unused\d+>|<extra_id_\d+>|<\|reserved_special_token_\d+\|>")
BYTE = re.compile(r"<0x[0-9A-F]{2}>")
SPACE = "␣"  # how a leading space is shown
CONTROL = {chr(code): chr(0x2400 + code) for code in range(32)} | {"\n": "⏎", "\t": "⇥"}


def _byte_alphabet() -> dict[str, int]:
    """Character -> byte, for the printable stand-ins of byte-level BPE (GPT-2's table)."""
    kept = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in kept]
    return {chr(b): b for b in kept} | {chr(256 + i): b for i, b in enumerate(others)}


BYTE_ALPHABET = _byte_alphabet()


@dataclass(frozen=True, slots=True)
class Encoded:
    """A text as the model gets it, special tokens included."""

    ids: tuple[int, ...]
    type_ids: tuple[int, ...]  # 0 for the first text, 1 for the second
    tokens: tuple[str, ...]  # visible forms


class Tokens:
    """The tokenizer of a checkpoint, padding and truncation off."""

    def __init__(self, manifest: Manifest) -> None:
        """Read the tokenizer files of a staged checkpoint.

        Raises:
            NotInCheckpointError: If there are none.
            CheckpointError: If they cannot be read.
        """
        self._tokenizer = read_tokenizer(manifest)
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        self.dropout = self._without_dropout()
        self._settings = read_settings(manifest)
        self._special = self._special_ids()

    def _without_dropout(self) -> float:
        """Switch off what splits a text another way each time (BPE-dropout, Provilkov et al. 2020).

        Returns:
            The share of merges that the file leaves out; 0 where none are.
        """
        model: Any = self._tokenizer.model
        share = getattr(model, "dropout", None) or 0.0
        if share:
            model.dropout = None
        return share

    @property
    def notes(self) -> tuple[str, ...]:
        """What this tool does with the tokenizer that its files do not say."""
        if not self.dropout:
            return ()
        return (
            f"The tokenizer's file sets BPE dropout to {self.dropout:.2g}, which splits a text differently each time: "
            "it is turned off here.",
        )

    @property
    def size(self) -> int:
        """Ids that the tokenizer knows: one more than the largest."""
        return max(self._tokenizer.get_vocab(with_added_tokens=True).values(), default=-1) + 1

    @property
    def kind(self) -> str:
        """The algorithm: "WordPiece", "BPE", "Unigram" or "WordLevel"."""
        return type(self._tokenizer.model).__name__

    def pad(self, encodings: Sequence[Encoding]) -> None:
        """Pad encodings in place to the longest, by the tokenizers library's own method."""
        token, index = self.role("pad")
        longest = max(len(encoding.ids) for encoding in encodings)
        for encoding in encodings:
            encoding.pad(longest, direction=self.padding_side, pad_id=index or 0, pad_token=token or "")

    @cached_property
    def info(self) -> TokenizerInfo:
        """What the overview says of it."""
        return TokenizerInfo(
            kind=self.kind,
            size=self.size,
            pad_token=self._shown("pad"),
            pad_id=self.role("pad")[1],
            mask_token=self._shown("mask"),
            mask_id=self.role("mask")[1],
        )

    def role(self, role: str) -> tuple[str | None, int | None]:
        """Find a special token, e.g. "mask"; (None, None) where the tokenizer has none."""
        said = self._settings.get(f"{role}_token")
        said = said.get("content") if isinstance(said, dict) else said
        for text in (said,) if isinstance(said, str) else USUAL.get(role, ()):
            index = self._tokenizer.token_to_id(text)
            if index is not None:
                return text, index
        return None, None

    def _shown(self, role: str) -> str | None:
        index = self.role(role)[1]
        return None if index is None else self.visible(index)

    def encode(self, text: str, pair: str | None = None) -> Encoded:
        """Tokenize a text, or two as a pair.

        Raises:
            RequestError: If the text is empty, too long or no Unicode text.
        """
        encoding = self.encoding(text, pair)
        return Encoded(
            ids=tuple(encoding.ids),
            type_ids=tuple(encoding.type_ids),
            tokens=tuple(self.visible(index) for index in encoding.ids),
        )

    def encoding(self, text: str, pair: str | None = None) -> Encoding:
        """Tokenize as `encode` does, and keep all that the library says: offsets, masks, words.

        Raises:
            RequestError: If the text is empty, too long or no Unicode text.
            CheckpointError: If the tokenizer breaks down on it.
        """
        for part in (text, pair or ""):
            self.check_characters(part)
            self._check_growth(part)
        with careful("this text"):
            encoding = self._tokenizer.encode(text, pair)
        if not encoding.ids:
            raise RequestError("The text has no tokens: type a word or a sentence.")
        return encoding

    def _check_growth(self, text: str) -> None:
        """Refuse a text that a normalizer makes longer without end, step by step, before the tokens are made.

        Raises:
            CheckpointError: If it does.
        """
        for length in self._lengths(text):
            if length > MAX_NORMALIZED:
                raise CheckpointError(
                    f"The checkpoint's tokenizer can turn a text of {len(text):,} characters into {length:,}: check "
                    "the normalizer in its tokenizer.json."
                )

    def _lengths(self, text: str) -> Iterator[int]:
        """How long each step of the normalizer makes a text, and how long at most before one that inserts much."""
        normalizer = self._tokenizer.normalizer
        is_sequence = isinstance(normalizer, normalizers.Sequence)
        for step in [normalizer[place] for place in range(len(normalizer))] if is_sequence else [normalizer]:
            inserted = getattr(step, "content", getattr(step, "prepend", ""))
            if len(inserted) > MAX_INSERTED:
                yield len(inserted) * (1 + len(text))
            with careful("this text"):
                text = step.normalize_str(text) if step else text
            yield len(text)

    def ordinary(self, encoding: Encoding) -> list[int]:
        """Places of the tokens that stand for text.

        Those that the tokenizer adds are none, nor are special ones that were typed, a mask
        among them; a token for an unknown word is one.
        """
        special = self.special_ids - {self.role("unk")[1]}
        return [
            place
            for place, index in enumerate(encoding.ids)
            if not encoding.special_tokens_mask[place] and index not in special
        ]

    @staticmethod
    def check_characters(text: str) -> None:
        """Refuse what the library cannot read.

        Raises:
            RequestError: If the text is too long or no Unicode text.
        """
        if len(text) > MAX_CHARACTERS:
            raise RequestError(f"The text has {len(text):,} characters: shorten it to {MAX_CHARACTERS:,}.")
        if not text.isascii() and re.search("[\ud800-\udfff]", text):
            raise RequestError("The text contains an unpaired surrogate: type or paste it again.")

    @property
    def special_ids(self) -> frozenset[int]:
        """Ids of tokens that the tokenizer calls special, or that stand for a role."""
        return self._special

    @property
    def padding_side(self) -> str:
        """Where a batch is padded: "right", or "left" where the tokenizer's settings say so."""
        return "left" if self._settings.get("padding_side") == "left" else "right"

    def pieces(self, text: str) -> tuple[int, ...]:
        """Ids of a text alone, without the special tokens that a model is given around it."""
        self._check_growth(text)
        with careful("this text"):
            return tuple(self._tokenizer.encode(text, add_special_tokens=False).ids)

    def text(self, ids: Sequence[int]) -> str:
        """The text that ids stand for, special tokens included, with what cannot be seen named."""
        with careful("these tokens"):
            return printable(self._tokenizer.decode(list(ids), skip_special_tokens=False))

    def raw(self, index: int) -> str | None:
        """An id's piece exactly as the vocabulary has it; None where there is no such id."""
        return self._tokenizer.id_to_token(index)

    def find(self, text: str) -> int | None:
        """The id of one token, given as typed: its raw form, its visible form, or a word.

        Returns:
            The id, or None where the text is not exactly one token.
        """
        word = text.removeprefix(SPACE)
        spellings = () if word != text else (text,)
        for raw in (*spellings, f"Ġ{word}", f"▁{word}"):
            index = self._tokenizer.token_to_id(raw)
            if index is not None:
                return index
        ids = self.pieces(text.replace(SPACE, " "))
        return ids[0] if len(ids) == 1 and ids[0] != self.role("unk")[1] else None

    def visible(self, index: int) -> str:
        """The text of an id as people can read it; "id 37" where the tokenizer has no such id."""
        raw = self._tokenizer.id_to_token(index)
        if raw is None:
            return f"id {index}"
        text = raw[: MAX_SHOWN + 1]
        text = printable(text if index in self._special else self._readable(text))
        return text if len(raw) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}…"

    def vocabulary(self, rows: int) -> pd.DataFrame:
        """List what every embedding row stands for.

        Returns:
            token_id (0..rows-1), token (visible form), kind (one of results.KINDS).
        """
        raw = {index: token for token, index in self._tokenizer.get_vocab(True).items()}
        pad = self.role("pad")[1]
        tokens, kinds = [], []
        for index in range(rows):
            token = raw.get(index)
            tokens.append(self.visible(index))
            kinds.append("padding" if index == pad else self._kind(index, token))
        import pandas as pd

        return pd.DataFrame({"token_id": range(rows), "token": tokens, "kind": kinds})

    def beyond(self, rows: int) -> pd.DataFrame:
        """List the tokens whose ids are past the last embedding row: token_id, token."""
        vocabulary = self._tokenizer.get_vocab(with_added_tokens=True)
        ids = sorted(index for index in vocabulary.values() if index >= rows)
        import pandas as pd

        return pd.DataFrame({"token_id": ids, "token": [self.visible(index) for index in ids]})

    @cached_property
    def unreachable(self) -> tuple[int, ...]:
        """Ids of ordinary tokens whose own text is tokenized into something else."""
        vocabulary = self._tokenizer.get_vocab(with_added_tokens=True)
        texts = [
            (index, self._bytes_as_text(raw) if self._byte_level else raw)
            for raw, index in sorted(vocabulary.items(), key=lambda item: item[1])
            if self._kind(index, raw) in ("word", "subword")
        ]
        with careful("its own tokens"):
            return tuple(find_unreachable(self._tokenizer, texts))

    @staticmethod
    def _bytes_as_text(raw: str) -> str:
        if not all(character in BYTE_ALPHABET for character in raw):
            return raw
        return bytes(BYTE_ALPHABET[character] for character in raw).decode("utf-8", "replace")

    def _readable(self, raw: str) -> str:
        if self._byte_level:
            if not all(character in BYTE_ALPHABET for character in raw):
                return raw
            text = self._bytes_as_text(raw)
            if "\ufffd" in text:  # part of a character: the bytes say more
                return "".join(f"<0x{BYTE_ALPHABET[character]:02X}>" for character in raw)
        else:
            text = raw.replace("▁", " ")
        return SPACE + text[1:] if text.startswith(" ") else text

    def _kind(self, index: int, raw: str | None) -> str:
        if raw is None:
            return "no token"
        if UNUSED.fullmatch(raw):
            return "unused"
        if index in self._special:
            return "special"
        if BYTE.fullmatch(raw):
            return "byte"
        if self.kind == "WordPiece":
            return "subword" if raw.startswith("##") else "word"
        return "word" if raw.startswith(("Ġ", "▁")) else "subword"

    @cached_property
    def _byte_level(self) -> bool:
        decoder = self._tokenizer.decoder
        return decoder is not None and "ByteLevel" in repr(decoder)

    def _special_ids(self) -> frozenset[int]:
        added = self._tokenizer.get_added_tokens_decoder()
        special = {index for index, token in added.items() if token.special}
        roles = (self.role(role)[1] for role in SPECIAL_ROLES)
        return frozenset(special | {index for index in roles if index is not None})


def printable(text: str) -> str:
    """Show what has no glyph of its own: control characters, and those that turn text around."""
    if text.isprintable():  # nearly all of them, and much faster
        return text
    return "".join(c if c.isprintable() else CONTROL.get(c, f"<U+{ord(c):04X}>") for c in text)
