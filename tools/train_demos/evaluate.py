"""Measure a demo checkpoint on held-out text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from tokenizers import Tokenizer
from transformers import BertForPreTraining, GPT2LMHeadModel

from tools.train_demos.batches import assemble
from tools.train_demos.vocabulary import bert_ids, encode

Blocks = Sequence[Sequence[str]]


@dataclass(frozen=True, slots=True)
class MaskQuality:
    """How well masked word pieces are filled in."""

    sentences: int
    pieces: int  # masked in turn; punctuation is not among them
    top1: float  # share, 0..1, with the truth in first place
    top5: float  # share, 0..1, with the truth among the first five


@dataclass(frozen=True, slots=True)
class PairQuality:
    """How well a successor is told from a stranger."""

    pairs: int
    accuracy: float  # share, 0..1


def is_word(piece: str) -> bool:
    """Say whether a word piece holds a letter or a digit, so is not punctuation."""
    return any(character.isalnum() for character in piece)


@torch.no_grad()
def mask_quality(
    model: BertForPreTraining, tokenizer: Tokenizer, sentences: Sequence[str], *, rows_per_batch: int = 64
) -> MaskQuality:
    """Mask every word piece of some sentences in turn and look for the truth on top.

    Args:
        model: The model.
        tokenizer: Its tokenizer.
        sentences: Every one by itself, cut to the model's positions.
        rows_per_batch: Masked copies of a sentence computed at once.

    Returns:
        Shares over all pieces that hold a letter or a digit. A true piece counts as among the
        first five if fewer than five pieces score strictly higher.
    """
    ids = bert_ids(tokenizer)
    model.eval()
    room = model.config.max_position_embeddings - 2
    ranks: list[int] = []
    for pieces in encode(tokenizer, list(sentences)):
        row = torch.tensor([ids.cls, *pieces[:room], ids.sep])
        places = [place for place in range(1, len(row) - 1) if is_word(str(tokenizer.id_to_token(int(row[place]))))]
        for first in range(0, len(places), rows_per_batch):
            chosen = torch.tensor(places[first : first + rows_per_batch])
            copies = row.repeat(len(chosen), 1)
            index = torch.arange(len(chosen))
            copies[index, chosen] = ids.mask
            hidden = model.bert(input_ids=copies).last_hidden_state[index, chosen]
            scores = model.cls.predictions(hidden)
            truth = scores.gather(1, row[chosen][:, None])
            ranks += (scores > truth).sum(dim=1).tolist()
    found = np.array(ranks)
    return MaskQuality(
        sentences=len(sentences), pieces=len(found), top1=float((found < 1).mean()), top5=float((found < 5).mean())
    )


def held_out_pairs(blocks: Blocks, *, lines: int, seed: int) -> tuple[list[tuple[str, str]], list[int]]:
    """Cut held-out blocks into pairs of spans, half of them with a stranger as the second.

    Args:
        blocks: Blocks of consecutive lines.
        lines: Lines in every span.
        seed: Chooses the strangers.

    Returns:
        Pairs of texts and their labels, 0 = the second follows the first, 1 = it comes from
        another block. Every span pair appears once as it is and once with a stranger.
    """
    rng = np.random.default_rng([seed, 4])
    true_pairs = [
        (" ".join(block[i : i + lines]), " ".join(block[i + lines : i + 2 * lines]), number)
        for number, block in enumerate(blocks)
        for i in range(0, len(block) - 2 * lines + 1, lines)
    ]
    pairs, labels = [], []
    for first, second, number in true_pairs:
        others = [b for _, b, other in true_pairs if other != number]
        stranger = others[int(rng.integers(len(others)))]
        pairs += [(first, second), (first, stranger)]
        labels += [0, 1]
    return pairs, labels


@torch.no_grad()
def pair_quality(
    model: BertForPreTraining, tokenizer: Tokenizer, pairs: Sequence[tuple[str, str]], labels: Sequence[int]
) -> PairQuality:
    """Ask the NSP head about pairs of texts.

    Args:
        model: The model.
        tokenizer: Its tokenizer.
        pairs: Texts; each is cut to half of the model's positions.
        labels: 0 = successor, 1 = stranger.

    Returns:
        The share of pairs whose more likely label is the true one.
    """
    ids = bert_ids(tokenizer)
    model.eval()
    room = (model.config.max_position_embeddings - 3) // 2
    firsts = [pieces[-room:] for pieces in encode(tokenizer, [a for a, _ in pairs])]
    seconds = [pieces[:room] for pieces in encode(tokenizer, [b for _, b in pairs])]
    right = 0
    for start in range(0, len(pairs), 32):
        rows = list(zip(firsts[start : start + 32], seconds[start : start + 32], strict=True))
        input_ids, attention, types = map(torch.from_numpy, assemble(rows, ids))
        output = model.bert(input_ids=input_ids, attention_mask=attention, token_type_ids=types)
        answers = model.cls.seq_relationship(output.pooler_output).argmax(dim=1).tolist()
        right += sum(a == b for a, b in zip(answers, labels[start : start + 32], strict=True))
    return PairQuality(pairs=len(pairs), accuracy=right / len(pairs))


@torch.no_grad()
def gpt2_perplexity(model: GPT2LMHeadModel, streams: Sequence[Sequence[int]]) -> float:
    """Compute the perplexity per token of texts, with at least half a window as context.

    Args:
        model: The model.
        streams: Token ids of each text. The first token of a text is given, not counted.

    Returns:
        exp of the mean negative log-likelihood of all tokens but the first of every text.
    """
    model.eval()
    width = model.config.n_positions
    half = width // 2
    total, count = 0.0, 0
    for stream in streams:
        ids = torch.tensor(list(stream))
        done = 1  # tokens before this one are scored or given
        while done < len(ids):
            start = max(0, done - half)
            window = ids[start : start + width]
            logits = model(input_ids=window[None], use_cache=False).logits[0, :-1]
            likelihoods = torch.log_softmax(logits, dim=-1).gather(1, window[1:, None])[:, 0]
            fresh = likelihoods[done - start - 1 :]
            total -= float(fresh.double().sum())
            count += len(fresh)
            done = start + len(window)
    return float(np.exp(total / count))
