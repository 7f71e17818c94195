"""Find tokens that a tokenizer has and never produces."""

from __future__ import annotations

from collections.abc import Sequence

from tokenizers import Tokenizer

LETTER = "a"  # stands for the beginning of a word before a piece from within one
CONTINUED = "##"


def find_unreachable(tokenizer: Tokenizer, texts: Sequence[tuple[int, str]]) -> list[int]:
    """List ids whose own text is tokenized into something else.

    Land & Bartolo (2024) call such tokens unreachable: decoded and encoded again, they do not come
    back. Capitals in a lower-casing vocabulary are an example, and punctuation as a continuation
    ("##!") where words are cut at punctuation.

    Args:
        texts: Ids with the text of each, as the tokenizer spells it where it is WordPiece, and as
            people do where it is byte-level BPE.

    Returns:
        Ids, in the given order; none for other kinds of tokenizer, where a token's text alone
        does not decide.
    """
    kind = type(tokenizer.model).__name__
    if kind == "WordPiece":
        return _of_wordpiece(tokenizer, texts)
    if kind == "BPE" and _is_plain_byte_level(tokenizer):
        return _of_byte_level(tokenizer, texts)
    return []


def _of_wordpiece(tokenizer: Tokenizer, texts: Sequence[tuple[int, str]]) -> list[int]:
    prefix = getattr(tokenizer.model, "continuing_subword_prefix", CONTINUED)
    words = [
        LETTER + text.removeprefix(prefix) if text.startswith(prefix) and text != prefix else text for _, text in texts
    ]
    return [
        index
        for (index, text), word, ids in zip(texts, words, _encode(tokenizer, words), strict=True)
        if index not in ids
        # A continuation may follow other letters than ours: it is out only where words never
        # hold its text, because that is rewritten or cut.
        and not (word != text and _is_one_word(tokenizer, ids, word, prefix))
    ]


def _is_one_word(tokenizer: Tokenizer, ids: Sequence[int], word: str, prefix: str) -> bool:
    """Whether a text came through unchanged as one word, or could not be read at all."""
    pieces = [tokenizer.id_to_token(index) or "" for index in ids] or [""]
    if len(pieces) == 1 and pieces[0] != word:  # [UNK]: nothing is known
        return True
    first, *others = pieces
    continued = [piece.removeprefix(prefix) for piece in others if piece.startswith(prefix)]
    return len(continued) == len(others) and first + "".join(continued) == word


def _of_byte_level(tokenizer: Tokenizer, texts: Sequence[tuple[int, str]]) -> list[int]:
    # How blanks are cut depends on what follows them, and bytes of a cut character have no text.
    judged = [(index, text) for index, text in texts if text.strip() and "\ufffd" not in text]
    found = _encode(tokenizer, [text for _, text in judged])
    return [index for (index, _), ids in zip(judged, found, strict=True) if index not in ids]


def _is_plain_byte_level(tokenizer: Tokenizer) -> bool:
    """Whether a text keeps its beginning: some tokenizers put a space before it."""
    pieces = tokenizer.encode(LETTER, add_special_tokens=False).tokens
    return "ByteLevel" in repr(tokenizer.decoder) and pieces == [LETTER]


def _encode(tokenizer: Tokenizer, texts: list[str]) -> list[list[int]]:
    return [found.ids for found in tokenizer.encode_batch_fast(texts, add_special_tokens=False)]
