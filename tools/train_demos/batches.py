"""Cut token ids into batches: masked singles and pairs for BERT, windows for GPT-2."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

IGNORED = -100
"""The label that the losses of transformers skip."""

IntArray = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class PairBatch:
    """Token sequences of one batch, with masks chosen and labels set."""

    input_ids: IntArray  # (sequences, positions)
    attention_mask: IntArray  # (sequences, positions), 1 where there is a token
    token_type_ids: IntArray  # (sequences, positions), 1 in segment B
    labels: IntArray  # (sequences, positions), IGNORED where nothing was masked
    is_random: IntArray | None  # (sequences,), 0 = B follows A, 1 = it does not; None for singles


@dataclass(frozen=True, slots=True)
class SpecialIds:
    """Where the tokens that BERT treats specially lie in the vocabulary."""

    pad: int
    cls: int
    sep: int
    mask: int
    first_word: int  # every id from here on may stand in for a masked one
    vocab_size: int


def epochs(size: int, seed: int, stream: int) -> Iterator[np.random.Generator]:
    """Yield one generator of random numbers per pass over `size` items, for ever.

    Args:
        size: Only checked to be positive.
        seed: The run's seed.
        stream: Tells uses of the same seed apart.

    Yields:
        Generators that depend on seed, stream and the number of the pass alone.

    Raises:
        ValueError: If there is nothing to pass over.
    """
    if size < 1:
        raise ValueError("There is nothing to train on. Give a longer text.")
    number = 0
    while True:
        yield np.random.default_rng([seed, stream, number])
        number += 1


def _bucket(lengths: IntArray, tokens_per_batch: int, rng: np.random.Generator, pool: int = 8192) -> Iterator[IntArray]:
    """Yield batches of indices of like length, pools shuffled, so that little is padding."""
    order = rng.permutation(len(lengths))
    for start in range(0, len(order), pool):
        part = order[start : start + pool]
        part = part[np.argsort(lengths[part], kind="stable")]
        batches: list[IntArray] = []
        first = 0
        for last in range(len(part)):
            following = lengths[part[last + 1]] if last + 1 < len(part) else tokens_per_batch + 1
            if (last + 2 - first) * following > tokens_per_batch:
                batches.append(part[first : last + 1])
                first = last + 1
        for index in rng.permutation(len(batches)):
            yield batches[index]


def assemble(
    pairs: Sequence[tuple[Sequence[int], Sequence[int] | None]], ids: SpecialIds
) -> tuple[IntArray, IntArray, IntArray]:
    """Lay segments out as [CLS] A [SEP] B [SEP], or [CLS] A [SEP] where there is no B.

    Args:
        pairs: Token ids of A and B.
        ids: The special tokens.

    Returns:
        Token ids, attention mask and token types, each (pairs, positions).
    """
    rows = [[ids.cls, *a, ids.sep] if b is None else [ids.cls, *a, ids.sep, *b, ids.sep] for a, b in pairs]
    width = max(map(len, rows))
    input_ids = np.full((len(rows), width), ids.pad, dtype=np.int64)
    types = np.zeros_like(input_ids)
    for index, (row, (a, b)) in enumerate(zip(rows, pairs, strict=True)):
        input_ids[index, : len(row)] = row
        if b is not None:
            types[index, len(a) + 2 : len(row)] = 1
    return input_ids, (input_ids != ids.pad).astype(np.int64), types


def mask_tokens(
    input_ids: IntArray, ids: SpecialIds, rate: float, rng: np.random.Generator
) -> tuple[IntArray, IntArray]:
    """Choose tokens to predict: 90 % become [MASK], 5 % a random token, 5 % stay.

    Args:
        input_ids: Whole sequences, (sequences, positions).
        ids: The special tokens, never chosen.
        rate: Share of the other tokens that is chosen, 0..1. At least one is chosen.
        rng: Source of the choice.

    Returns:
        The corrupted ids and the labels, both (sequences, positions).
    """
    words = input_ids >= ids.first_word
    draw = rng.random(input_ids.shape)
    chosen = words & (draw < rate)
    if not chosen.any():
        chosen = words & (draw == draw[words].min())
    labels = np.where(chosen, input_ids, IGNORED)
    fate = rng.random(input_ids.shape)
    random_ids = rng.integers(ids.first_word, ids.vocab_size, size=input_ids.shape)
    corrupted = np.where(chosen & (fate < 0.9), ids.mask, input_ids)
    corrupted = np.where(chosen & (fate >= 0.95), random_ids, corrupted)
    return corrupted, labels


def single_batches(
    sentences: list[list[int]], *, tokens: int, positions: int, seed: int
) -> Iterator[tuple[list[list[int]], np.random.Generator]]:
    """Yield batches of sentences by themselves, for ever.

    Args:
        sentences: Token ids per sentence, without special tokens.
        ids: The special tokens.
        tokens: Padded tokens per batch, at most (unless one sentence is longer).
        positions: Longest sequence, special tokens included.
        seed: The run's seed.

    Yields:
        The cut sentences of a batch and the generator to mask them with.
    """
    lengths = np.array([min(len(s) + 2, positions) for s in sentences])
    for rng in epochs(len(sentences), seed, 1):
        for chosen in _bucket(lengths, tokens, rng):
            yield [sentences[i][: positions - 2] for i in chosen], rng


def spans(
    sentences: list[list[int]], positions: int, longest: int, rng: np.random.Generator
) -> list[tuple[list[int], list[int]]]:
    """Cut a text into pairs of spans that follow each other.

    Args:
        sentences: Token ids per line, in order.
        positions: Longest pair, its three special tokens included.
        longest: Most lines in a span.
        rng: Draws the number of lines, 1..longest, of every span.

    Returns:
        The pairs (A, B), in order of the text; an end that is too long is cut off.
    """
    room = (positions - 3) // 2
    start = int(rng.integers(0, 2 * longest))
    pairs = []
    while start + 2 <= len(sentences):
        a, b = rng.integers(1, longest + 1, size=2)
        middle = min(start + int(a), len(sentences) - 1)
        stop = min(middle + int(b), len(sentences))
        left = [token for s in sentences[start:middle] for token in s][-room:]
        right = [token for s in sentences[middle:stop] for token in s][:room]
        pairs.append((left, right))
        start = stop
    return pairs


def pair_batches(
    sentences: list[list[int]], *, tokens: int, positions: int, longest: int, seed: int
) -> Iterator[tuple[list[tuple[list[int], list[int]]], IntArray, np.random.Generator]]:
    """Yield batches of segment pairs, half of them with a B from elsewhere, for ever.

    Args:
        sentences: Token ids per line, in order.
        tokens: Padded tokens per batch, at most (unless one pair is longer).
        positions: Longest sequence, special tokens included.
        longest: Most lines in a segment.
        seed: The run's seed.

    Yields:
        The pairs, their labels (0 = B follows A, 1 = B is from elsewhere) and the generator to
        mask them with.
    """
    for rng in epochs(len(sentences), seed, 2):
        true_pairs = spans(sentences, positions, longest, rng)
        is_random = (rng.random(len(true_pairs)) < 0.5).astype(np.int64)
        donors = rng.integers(0, len(true_pairs), size=len(true_pairs))
        is_random[donors == np.arange(len(donors))] = 0
        pairs = [
            (a, true_pairs[donor][1]) if random else (a, b)
            for (a, b), donor, random in zip(true_pairs, donors, is_random, strict=True)
        ]
        lengths = np.array([len(a) + len(b) + 3 for a, b in pairs])
        for chosen in _bucket(lengths, tokens, rng, pool=4096):
            yield [pairs[i] for i in chosen], is_random[chosen], rng


def windows(sentences: list[list[int]], end: int, *, width: int, batch: int, seed: int) -> Iterator[IntArray]:
    """Yield batches of full windows over the text that begin with a line, for ever.

    Args:
        sentences: Token ids per line, in order.
        end: The token put after every line.
        width: Tokens in a window.
        batch: Windows in a batch.
        seed: The run's seed.

    Yields:
        Ids, (batch, width). A line cut at the end of a window opens the next one.
    """
    stream = np.array([token for s in sentences for token in (*s, end)], dtype=np.int64)
    line_starts = np.cumsum([0] + [len(s) + 1 for s in sentences])
    for rng in epochs(len(stream) // width, seed, 3):
        start = int(rng.integers(0, max(1, min(20, len(line_starts) // 4))))
        starts = []
        position = int(line_starts[start])
        while position + width <= len(stream):
            starts.append(position)
            cut = int(line_starts[np.searchsorted(line_starts, position + width, "right") - 1])
            position = cut if cut > position else position + width
        order = rng.permutation(len(starts))
        for first in range(0, max(1, len(order) - batch + 1), batch):
            chosen = [starts[i] for i in order[first : first + batch]]
            yield np.stack([stream[s : s + width] for s in chosen])


def bert_batches(
    sentences: list[list[int]],
    ids: SpecialIds,
    *,
    tokens: int,
    positions: int,
    longest: int,
    mask_rate: float,
    seed: int,
) -> Iterator[tuple[PairBatch, PairBatch]]:
    """Yield a masked batch of singles and one of pairs, for ever.

    Args:
        sentences: Token ids per line, in order.
        ids: The special tokens.
        tokens: Padded tokens in each of the two batches, at most.
        positions: Longest sequence, special tokens included.
        longest: Most lines in a segment of a pair.
        mask_rate: Share of tokens to predict.
        seed: The run's seed.

    Yields:
        Singles (no NSP labels), then pairs.
    """
    singles = single_batches(sentences, tokens=tokens, positions=positions, seed=seed)
    pairs = pair_batches(sentences, tokens=tokens, positions=positions, longest=longest, seed=seed)
    for (alone, rng_alone), (together, is_random, rng_pairs) in zip(singles, pairs, strict=False):
        ids_alone, attention, types = assemble([(s, None) for s in alone], ids)
        masked, labels = mask_tokens(ids_alone, ids, mask_rate, rng_alone)
        first = PairBatch(masked, attention, types, labels, None)
        ids_pairs, attention, types = assemble(together, ids)
        masked, labels = mask_tokens(ids_pairs, ids, mask_rate, rng_pairs)
        yield first, PairBatch(masked, attention, types, labels, is_random)
