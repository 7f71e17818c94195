"""Find tokens by what a person types: several words, patterns, rows."""

from __future__ import annotations

import re
from dataclasses import dataclass

import pandas as pd

from inspector.plotting.frames import where

MOST_WORDS = 50
# "a phrase", id 37, or anything without space and comma
WORD = re.compile(r'"([^"]+)"|\b(id\s*\d+)\b|([^\s,]+)')
START = re.compile(r"^(?:␣|##)")  # how the visible form marks a start, or a piece
RAW = str.maketrans({"Ġ": "␣", "▁": "␣"})  # raw forms of a leading space
COLUMNS = ["token", "token_id", "kind", "norm"]


@dataclass(frozen=True, slots=True)
class SearchResult:
    """What a search found."""

    tokens: pd.DataFrame  # token, token_id, kind, norm; by word as typed, then by id
    missing: tuple[str, ...]  # words that are no token


def find_tokens(points: pd.DataFrame, text: str) -> SearchResult:
    """Find the tokens that a text names.

    Args:
        points: token, token_id, kind, norm.
        text: Words apart by comma or space; at most 50 count. A word finds the token of that text
            in each of its forms (␣king, king, ##king), as typed or else in any case; with "*" it
            is a pattern (un*); "id 37" is a row; quotes keep a phrase together; a word that begins
            with ␣ or ## finds that form alone.

    Returns:
        Every token once, and the words without any.
    """
    words = ["".join(groups) for groups in WORD.findall(text)][:MOST_WORDS]
    if not words:
        return SearchResult(points.reindex(columns=COLUMNS).iloc[:0], ())
    tokens = pd.Series(points["token"])
    bare = tokens.str.replace(START, "", regex=True)
    hits = [where(points, _matches(points, tokens, bare, word)) for word in words]
    missing = tuple(word for word, hit in zip(words, hits, strict=True) if hit.empty)
    found = pd.concat(hits).drop_duplicates("token_id")
    return SearchResult(found.reindex(columns=COLUMNS).reset_index(drop=True), missing)


def _matches(points: pd.DataFrame, tokens: pd.Series, bare: pd.Series, word: str) -> pd.Series:
    if re.fullmatch(r"id\s*\d+", word):
        return pd.Series(points["token_id"]) == int(word[2:])
    if "*" in word and word.strip("*"):
        pattern = ".*".join(re.escape(part) for part in word.split("*"))
        return bare.str.fullmatch(pattern, case=False)
    word = word.translate(RAW) if len(word) > 1 else word
    if START.match(word) and START.sub("", word):
        return tokens == word
    exact = (bare == word) | (tokens == word)
    return exact if exact.any() else bare.str.casefold() == word.casefold()
