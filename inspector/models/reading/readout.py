"""Read scores of a whole vocabulary block by block: top tokens, normalizer, entropy, ranks.

A block of states times the vocabulary is the largest thing in memory, a few times BLOCK numbers.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import torch

BLOCK = 24_000_000  # scores at once, in float32: fewer would read a large vocabulary's matrix more often
PIECE = 1_000_000  # of them at a time in the softmax: they stay in the processor's cache
MOST_STATES = 256  # of a block: more are no quicker
ON_A_GPU = 8  # times as many states of a block, and four times as many scores: a GPU is idle between small ones
GROUP = 32  # columns of which the best one is found before the best of all: two to three times as quick as topk
COMPARED = 100  # true tokens among which two rungs' orders are compared


@dataclass(slots=True)
class Readout:
    """What is kept of the scores of some states at one step."""

    ids: torch.Tensor  # (states, k), best first, equal scores by id
    scores: torch.Tensor  # (states, k)
    normalizer: torch.Tensor  # (states,), log of the sum of exp(score); NaN for cosines
    entropy: torch.Tensor  # (states,), of the softmax in nats; NaN for cosines
    pinned_scores: torch.Tensor  # (states, pins)
    pinned_ranks: torch.Tensor  # (states, pins), 0 = best

    @property
    def probabilities(self) -> torch.Tensor:
        """(states, k), over the whole vocabulary."""
        return (self.scores - self.normalizer[:, None]).exp()

    @property
    def pinned_probabilities(self) -> torch.Tensor:
        """(states, pins), over the whole vocabulary."""
        return (self.pinned_scores - self.normalizer[:, None]).exp()


def join(parts: list[Readout]) -> Readout:
    """Put the readouts of blocks together, on the CPU."""
    return Readout(*(torch.cat([getattr(part, each.name).cpu() for part in parts]) for each in fields(Readout)))


def read(scores: torch.Tensor, *, k: int, pins: torch.Tensor, softmax: bool = True) -> Readout:
    """Read one block of scores; their memory is used up.

    Args:
        scores: (states, vocab) in float32, finite; overwritten.
        k: Tokens kept, 1 <= k <= vocab.
        pins: Ids of tokens whose rank is wanted, (pins,).
        softmax: Whether the scores are logits of a distribution.

    Returns:
        Ranks count the tokens with a higher score, and of equal ones those with a smaller id.
    """
    ids, best = top_tokens(scores, k)
    pinned = scores[:, pins]
    ranks = torch.empty(len(scores), len(pins), dtype=torch.long, device=scores.device)
    for place, pin in enumerate(pins.tolist()):
        ranks[:, place] = _rank(scores, pinned[:, place], pin)
    if not softmax:
        nothing = torch.full((len(scores),), torch.nan, device=scores.device)
        return Readout(ids, best, nothing, nothing, pinned, ranks)
    above, entropy = _spread(scores, ids[:, 0], best[:, 0])
    return Readout(ids, best, best[:, 0] + above, entropy, pinned, ranks)


def _spread(scores: torch.Tensor, first: torch.Tensor, best: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The normalizer less the best score, and the entropy, (states,) each; uses the scores up."""
    above, entropy = torch.empty_like(best), torch.empty_like(best)
    size = max(1, PIECE // scores.shape[1]) if scores.device.type == "cpu" else len(scores)
    for begin in range(0, len(scores), size):
        piece = slice(begin, begin + size)
        shares = torch.softmax(scores[piece], dim=1)
        # From the best token's share: exact, and one pass less than a log of a sum.
        above[piece] = -shares.gather(1, first[piece, None])[:, 0].log()
        lower = scores[piece].sub_(best[piece, None])  # small where the shares are large
        entropy[piece] = above[piece] - torch.linalg.vecdot(shares, lower)
    return above, entropy


def block_states(rows: int, device: torch.device) -> int:
    """How many states are read at once from a vocabulary of so many rows."""
    if device.type == "cpu":
        return max(1, min(MOST_STATES, BLOCK // rows))
    return max(1, min(ON_A_GPU * MOST_STATES, ON_A_GPU // 2 * BLOCK // rows))


def top_tokens(scores: torch.Tensor, k: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The k best of each row, equal scores in the order of their ids.

    Args:
        scores: (states, vocab).
        k: 1 <= k <= vocab.

    Returns:
        Ids and scores, (states, k) each.
    """
    kept = min(k + 1, scores.shape[1])
    best, ids = _best(scores, kept)
    if kept > k:  # a tie across the border: topk may have kept any of the equal ones
        rows = (best[:, k - 1] == best[:, k]).nonzero()[:, 0]
        best, ids = best[:, :k], ids[:, :k]
        if len(rows):
            ids[rows] = _first_of_equal(scores[rows], ids[rows], best[rows])
    by_id = ids.argsort(dim=1)
    best, ids = best.gather(1, by_id), ids.gather(1, by_id)
    by_score = best.argsort(dim=1, descending=True, stable=True)
    return ids.gather(1, by_score), best.gather(1, by_score)


def _best(scores: torch.Tensor, kept: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The best scores of each row and their ids, as topk finds them: among the columns of the best groups alone.

    A group has one column in so many, so that one pass finds the best of each.
    """
    rows, vocab = scores.shape
    groups = vocab // GROUP
    if groups < GROUP * kept:
        return scores.topk(kept, dim=1)
    columns = torch.arange(vocab, device=scores.device)
    tops = scores[:, : groups * GROUP].reshape(rows, GROUP, groups).amax(dim=1)
    chosen = tops.topk(kept, dim=1).indices[:, :, None] + groups * columns[:GROUP]
    ids = torch.cat([chosen.flatten(1), columns[groups * GROUP :].expand(rows, -1)], dim=1)
    best, place = scores.gather(1, ids).topk(kept, dim=1)
    return best, ids.gather(1, place)


def _first_of_equal(scores: torch.Tensor, ids: torch.Tensor, best: torch.Tensor) -> torch.Tensor:
    """The ids of the k best, (states, k): of all that equal the last one, those with the smallest ids."""
    k, last = ids.shape[1], best[:, -1:]
    every = torch.arange(scores.shape[1], dtype=torch.int32, device=scores.device)
    smallest = torch.where(scores == last, every, scores.shape[1]).topk(k, dim=1, largest=False).values
    place = torch.arange(k, device=scores.device) - (best > last).sum(dim=1, keepdim=True)
    return torch.where(place < 0, ids, smallest.long().gather(1, place.clamp(min=0)))


def _rank(scores: torch.Tensor, pinned: torch.Tensor, pin: int) -> torch.Tensor:
    """How many tokens stand before one, (states,)."""
    above = (scores > pinned[:, None]).sum(dim=1)
    return above + (scores[:, :pin] == pinned[:, None]).sum(dim=1)


def overlap(first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
    """Share of the tokens of (states, k) ids that are among the others', (states,), 0..1."""
    return (first[:, :, None] == second[:, None, :]).any(dim=2).float().mean(dim=1)


def rank_correlation(first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
    """Spearman's correlation of two scores of the same tokens, row by row.

    Args:
        first: (states, tokens).
        second: The same tokens' scores elsewhere.

    Returns:
        (states,), -1..1; NaN where there is one token alone. Equal scores count in the order given.
    """
    ranks = [scores.argsort(dim=1).argsort(dim=1).double() for scores in (first, second)]
    one, other = (each - each.mean(dim=1, keepdim=True) for each in ranks)
    return (one * other).sum(dim=1) / (one.square().sum(dim=1) * other.square().sum(dim=1)).sqrt()
