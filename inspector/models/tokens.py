"""Turn text into token ids and ids into visible text, by the tokenizer as transformers reads it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from tokenizers import Encoding, Tokenizer

from inspector.errors import CheckpointError, RequestError
from inspector.models.vocabulary import words_reading as words
from inspector.models.vocabulary.distrust import careful, encode_carefully
from inspector.models.vocabulary.library import SPECIAL_ROLES
from inspector.models.vocabulary.reachable import find_unreachable
from inspector.models.vocabulary.tokenizer_files import named_tokens, read_tokenizer, read_whole
from inspector.results.checkpoint import TokenizerInfo
from inspector.store.manifests.manifest import Manifest

if TYPE_CHECKING:  # half a second of an overview
    import pandas as pd

MAX_CHARACTERS = MAX_TOKENS = 20_000  # of a text
MAX_SHOWN = 300  # characters of one token; real vocabularies have up to 128
# Where classes that make steps of their own differ from a file: digits, blanks, contractions, accents, scripts, signs.
PROBES = (
    "Add 2023 and 650.",
    "  two  blanks",
    "I've WE'LL don't",
    "café Ångström",
    "你好，世界",
    "a\nb\tc",
    "x_y-z&(1)",
)
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
        self._manifest = manifest
        self._read = read_tokenizer(manifest)
        self._tokenizer = self._read.tokenizer
        self.dropout = _steady(self._tokenizer)
        self._special = self._special_ids()

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """What this tool does with the tokenizer that its files do not say."""
        return tuple(filter(None, (*self.how_read, self.difference(*PROBES))))

    @property
    def how_read(self) -> tuple[str, ...]:
        """What `notes` says, but for how texts are split."""
        dropout = words.dropout(self.dropout) if self.dropout else ""
        unread = words.not_read(self._read.unread_class) if self._read.unread_class else ""
        pattern = words.no_pattern(self._read.no_pattern) if self._read.no_pattern else ""
        return tuple(filter(None, (dropout, unread, pattern)))

    def difference(self, *texts: str) -> str:
        """Say where transformers' class splits a text otherwise than tokenizer.json alone, if it does; else ""."""
        if self._whole is None:
            return ""
        for text in texts:
            try:
                here, there = (encode_carefully(each, text) for each in (self._tokenizer, self._whole))
            except CheckpointError:  # what nobody uses may be broken
                continue
            if here.ids != there.ids:
                splits = [[printable(self._readable(piece)) for piece in each.tokens] for each in (here, there)]
                return words.other_split(self.class_name or "", printable(text), *splits)
        return ""

    @cached_property
    def _whole(self) -> Tokenizer | None:
        """tokenizer.json by itself, where the class of transformers replaces steps of it."""
        if not self._read.rebuilt:
            return None
        with careful("its own file"):
            whole = read_whole(self._manifest)
        _steady(whole)
        return whole

    @property
    def class_name(self) -> str | None:
        """The class of transformers that reads the tokenizer; None: the files were read without one."""
        return self._read.class_name

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
            encoding.pad(
                longest,
                direction=self.padding_side,
                pad_id=index or 0,
                pad_type_id=self.pad_type_id,
                pad_token=token or "",
            )

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
        text = self._read.roles.get(role)
        index = None if text is None else self._tokenizer.token_to_id(text)
        return (None, None) if index is None else (text, index)

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

    def encoding(self, text: str, pair: str | None = None, *, longest: int | None = None) -> Encoding:
        """Tokenize as `encode` does, and keep all that the library says: offsets, masks, words.

        Args:
            text: Of which the tokens are wanted.
            pair: A second text.
            longest: Tokens that are kept, special ones among them, by the library's own method; None: all.

        Raises:
            RequestError: If the text is empty, too long or no Unicode text.
            CheckpointError: If the tokenizer breaks down on it.
        """
        for part in (text, pair or ""):
            self.check_characters(part)
        if longest is not None:
            with careful("texts that are cut"):
                self._tokenizer.enable_truncation(longest, direction=self.truncation_side)
        try:
            encoding = encode_carefully(self._tokenizer, text, pair)
        finally:
            self._tokenizer.no_truncation()
        if not encoding.ids:
            raise RequestError("The text has no tokens: type a word or a sentence.")
        if len(encoding.ids) > MAX_TOKENS:
            raise RequestError(f"The text has {len(encoding.ids):,} tokens: shorten it to {MAX_TOKENS:,}.")
        return encoding

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
    def added_ids(self) -> frozenset[int]:
        """Ids of tokens that are found in a text before it is split: those added to the vocabulary, special or not."""
        return frozenset(self._tokenizer.get_added_tokens_decoder())

    @property
    def padding_side(self) -> str:
        """Where a batch is padded, "right" or "left": as the settings say, or else the class."""
        return self._read.padding_side

    @property
    def truncation_side(self) -> str:
        """Where a text that is too long is cut, "right" or "left": as the settings say, or else the class."""
        return self._read.truncation_side

    @property
    def pad_type_id(self) -> int:
        """The segment (token_type_ids) of padding."""
        return self._read.pad_type_id

    def pieces(self, text: str) -> tuple[int, ...]:
        """Ids of a text alone, without the special tokens that a model is given around it."""
        return tuple(encode_carefully(self._tokenizer, text, add_special_tokens=False).ids)

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

    def past_rows(self, rows: int) -> str:
        """Say which ids an embedding matrix has no rows for, if any; else ""."""
        missing = sorted(index for index in self._tokenizer.get_vocab(with_added_tokens=True).values() if index >= rows)
        if not missing:
            return ""
        return words.past_rows(self.size, rows, len(missing), self.visible(missing[0]), missing[0])

    def made_up(self, rows: int) -> frozenset[int]:
        """Ids past the last row that no file names, only the class, and that come only where their token is typed."""
        named = named_tokens(self._manifest)
        usual = {self.role("pad")[1], *encode_carefully(self._tokenizer, "a").ids}
        vocabulary = self._tokenizer.get_vocab(with_added_tokens=True)
        return frozenset(index for token, index in vocabulary.items() if index >= rows and token not in named) - usual

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


def _steady(tokenizer: Tokenizer) -> float:
    """Switch off padding, truncation, and what splits a text another way each time (Provilkov et al. 2020).

    Returns:
        The share of merges that BPE-dropout leaves out; 0 where none are.
    """
    tokenizer.no_padding()
    tokenizer.no_truncation()
    model: Any = tokenizer.model
    share = getattr(model, "dropout", None) or 0.0
    if share:
        model.dropout = None
    return share


def printable(text: str) -> str:
    """Show what has no glyph of its own: control characters, and those that turn text around."""
    if text.isprintable():  # nearly all of them, and much faster
        return text
    return "".join(c if c.isprintable() else CONTROL.get(c, f"<U+{ord(c):04X}>") for c in text)
