"""An interpolated Kneser-Ney trigram model, the yardstick for the demo GPT-2."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Sequence


class Trigram:
    """Trigram probabilities with back-off to bigrams, unigrams and the uniform distribution.

    Interpolated Kneser-Ney smoothing (Chen & Goodman 1999) with one absolute discount per order,
    n1 / (n1 + 2 n2). Below the top order, a token counts once per different token it follows.
    """

    def __init__(self, streams: Sequence[Sequence[int]], vocab_size: int) -> None:
        """Count.

        Args:
            streams: Token ids of the texts to learn from.
            vocab_size: Ids run from 0 to vocab_size - 1; every one gets some probability.
        """
        self.vocab_size = vocab_size
        trigrams: Counter[tuple[int, ...]] = Counter()
        starts: Counter[tuple[int, ...]] = Counter()  # bigrams that open a text
        for stream in streams:
            trigrams.update(zip(stream, stream[1:], stream[2:], strict=False))
            starts[tuple(stream[:2])] += 1
        bigrams: Counter[tuple[int, ...]] = Counter(gram[1:] for gram in trigrams)
        bigrams.update(gram for gram in starts if len(gram) == 2)
        unigrams: Counter[tuple[int, ...]] = Counter(gram[1:] for gram in bigrams)
        self._counts = (unigrams, bigrams, trigrams)
        self._discounts = tuple(_discount(counts) for counts in self._counts)
        self._totals = tuple(_totals(counts) for counts in self._counts)

    def probability(self, context: Sequence[int], token: int) -> float:
        """Give the probability of a token.

        Args:
            context: The tokens before it; only the last two matter, fewer are fine.
            token: The token.

        Returns:
            A probability; over all tokens they sum to 1.
        """
        result = 1 / self.vocab_size
        last = tuple(context[-2:])
        for order in range(len(last) + 1):
            history = last[len(last) - order :]
            total, kinds = self._totals[order].get(history, (0, 0))
            if total == 0:
                break
            discount = self._discounts[order]
            count = self._counts[order][(*history, token)]
            result = (max(count - discount, 0.0) + discount * kinds * result) / total
        return result

    def perplexity(self, streams: Sequence[Sequence[int]]) -> float:
        """Compute the perplexity per token of texts.

        Args:
            streams: Token ids of each text. The first token of a text is given, not counted.

        Returns:
            exp of the mean negative log-probability of all tokens but the first of every text.
        """
        logs = [
            math.log(self.probability(stream[max(0, place - 2) : place], stream[place]))
            for stream in streams
            for place in range(1, len(stream))
        ]
        return math.exp(-sum(logs) / len(logs))


def _discount(counts: Counter[tuple[int, ...]]) -> float:
    frequencies = Counter(counts.values())
    once, twice = frequencies[1], frequencies[2]
    return once / (once + 2 * twice) if once else 0.5


def _totals(counts: Counter[tuple[int, ...]]) -> dict[tuple[int, ...], tuple[int, int]]:
    """Map each history to the sum of its counts and the number of tokens seen after it."""
    totals: defaultdict[tuple[int, ...], list[int]] = defaultdict(lambda: [0, 0])
    for gram, count in counts.items():
        entry = totals[gram[:-1]]
        entry[0] += count
        entry[1] += 1
    return {history: (total, kinds) for history, (total, kinds) in totals.items()}
