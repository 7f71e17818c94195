"""Measure a trained demo checkpoint and write its model card."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from tokenizers import Tokenizer
from transformers import BertForPreTraining, GPT2LMHeadModel, PreTrainedModel

from tools.train_demos import evaluate
from tools.train_demos.data import Split
from tools.train_demos.trigram import Trigram
from tools.train_demos.vocabulary import END, END_ID, bert_ids, encode

SENTENCES = 500
"""Held-out sentences whose word pieces are masked in turn."""


@dataclass(frozen=True, slots=True)
class HeldOutReport:
    """What the held-out text says about a checkpoint."""

    quality: tuple[str, ...]  # one sentence each
    answers: Mapping[str, str]  # example -> what the model answers


def bert_report(
    model: BertForPreTraining, tokenizer: Tokenizer, split: Split, *, examples: Sequence[str], seed: int
) -> HeldOutReport:
    """Measure masked words and sentence pairs on the held-out blocks.

    Args:
        model: A trained BERT.
        tokenizer: Its tokenizer.
        split: The text it was trained on, and the blocks kept away.
        examples: Sentences with one [MASK].
        seed: Chooses the sentences and the strangers in pairs.

    Returns:
        Quality and the five most likely pieces of every example.
    """
    lines = [line for block in split.held_out for line in block]
    order = np.random.default_rng([seed, 5]).permutation(len(lines))[:SENTENCES]
    masks = evaluate.mask_quality(model, tokenizer, [lines[index] for index in order])
    quality = [
        f"Masked words: {masks.pieces:,} word pieces of {masks.sentences} held-out sentences, each "
        f"masked in turn, punctuation not counted: the true piece is among the top 5 in "
        f"{masks.top5:.1%}, in first place in {masks.top1:.1%}."
    ]
    for count, name in ((1, "one line"), (2, "two lines"), (3, "three lines")):
        pairs, labels = evaluate.held_out_pairs(split.held_out, lines=count, seed=seed)
        if not pairs:
            continue
        result = evaluate.pair_quality(model, tokenizer, pairs, labels)
        quality.append(
            f"Next sentence, segments of {name}: {result.accuracy:.1%} of {result.pairs:,} "
            "held-out pairs, half of them with a second segment from another block."
        )
    answers = {text: ", ".join(top_pieces(model, tokenizer, text)) for text in examples}
    return HeldOutReport(tuple(quality), answers)


@torch.no_grad()
def top_pieces(model: BertForPreTraining, tokenizer: Tokenizer, text: str, count: int = 5) -> list[str]:
    """List the most likely word pieces for the first [MASK] of a text, most likely first."""
    ids = tokenizer.encode(text).ids
    hidden = model.eval().bert(input_ids=torch.tensor([ids])).last_hidden_state
    scores = model.cls.predictions(hidden[0, ids.index(bert_ids(tokenizer).mask)])
    return [str(tokenizer.id_to_token(index)) for index in scores.topk(count).indices.tolist()]


def gpt2_report(
    model: GPT2LMHeadModel, tokenizer: Tokenizer, split: Split, *, examples: Sequence[str], seed: int
) -> HeldOutReport:
    """Compare the perplexity on the held-out blocks with that of a trigram model.

    Args:
        model: A trained GPT-2.
        tokenizer: Its tokenizer.
        split: The text both models learn from, and the blocks kept away.
        examples: Beginnings to go on from.
        seed: Not used: nothing is drawn.

    Returns:
        Quality and the most likely continuation of every example.
    """
    del seed
    blocks = [_stream(tokenizer, block) for block in split.held_out]
    trigram = Trigram([_stream(tokenizer, split.train)], model.config.vocab_size)
    own = evaluate.gpt2_perplexity(model, blocks)
    other = trigram.perplexity(blocks)
    tokens = sum(len(block) - 1 for block in blocks)
    quality = (
        f"Perplexity per token: {own:.2f} on {tokens:,} held-out tokens in {len(blocks)} blocks "
        f"of consecutive lines ({END} after each line counts as a token; the model reads up to 127 "
        "tokens before each one, so it sees the preceding lines).",
        f"Trigram model with back-off (interpolated Kneser-Ney, same training lines, same held-out "
        f"tokens): {other:.2f}.",
    )
    answers = {text: continue_text(model, tokenizer, text) for text in examples}
    return HeldOutReport(quality, answers)


def _stream(tokenizer: Tokenizer, lines: Sequence[str]) -> list[int]:
    return [token for ids in encode(tokenizer, list(lines)) for token in (*ids, END_ID)]


@torch.no_grad()
def continue_text(model: GPT2LMHeadModel, tokenizer: Tokenizer, text: str, count: int = 16) -> str:
    """Append the most likely tokens to a text, up to `count` or the end of the line."""
    ids = tokenizer.encode(text).ids
    start = len(ids)
    for _ in range(count):
        seen = torch.tensor([ids[-model.config.n_positions :]])
        scores = model.eval()(input_ids=seen).logits[0, -1]
        best = int(scores.argmax())
        if best == END_ID:
            break
        ids.append(best)
    return tokenizer.decode(ids[start:]).strip()


CARD = """---
language: en
library_name: transformers
pipeline_tag: {pipeline}
---

# {name}

{description}

- Architecture: `{architecture}`, {layers} layers, width {width}, {heads} heads, up to {positions}
  positions, {vocab:,} tokens, {parameters:,} parameters (a tied matrix counted once).
- The output projection *is* the token embedding: one block of memory, stored once.

## Data

{notice}

The model was trained on {train:,} lines. {held_out} blocks of consecutive lines,
{held_out_lines:,} lines in all, were held out and measured only after the last step;
{watched} further blocks were monitored during training. Training lines that also occur in one of
these blocks were removed. The tokenizer saw only the training lines.

## Held-out quality

{quality}

## Recipe

```
{command}
```

{recipe}

`training_log.csv` contains the loss and {curve} every {log_every} steps.

## What it answers

{answers}

## Use and limits

Use it only to demonstrate what is inside a checkpoint. It was trained only on dictionary
glosses and their example sentences. It states wrong facts with confidence, repeats what its source
says about people and places, and reads at most {positions} tokens. Because it is small, its answers are often
of the right kind but wrong, and text that it generates soon repeats itself.
"""

RECIPE = {
    "bert": """MLM and NSP together, both losses at every step: one batch of single sentences
(`[CLS] s [SEP]`, the format in which the app fills in a mask) and one of pairs, about {tokens:,}
tokens each. A pair is a span of 1 to {longest_span} consecutive lines and either the span that
follows it (label 0) or one from elsewhere in the text (label 1). The model predicts
{mask_rate:.0%} of the tokens: 90% of them appear as `[MASK]`, 5% as a random token, 5% unchanged.
{common} {pieces} lowercase word pieces; 16 `[unusedN]` rows never occur in the input.""",
    "gpt2": """Windows of {positions} tokens of the running text, each starting at the beginning of
a line, with `<|endoftext|>` after every line; {tokens:,} tokens per step.
{common} Byte-level BPE with {pieces} tokens, cased.""",
}
COMMON = """Muon (rate {matrix_rate}) for the matrices between the layers and AdamW (rate {rate})
for the rest, weight decay {weight_decay}, {warmup} steps of warm-up, a constant rate, then a linear
decay to zero over the last {decay_steps:,} of {steps:,} steps. float32, one thread, no dropout."""


def write_card(
    folder: Path,
    *,
    name: str,
    description: str,
    model: PreTrainedModel,
    split: Split,
    report: HeldOutReport,
    recipe: Mapping[str, object],
    command: str,
    notice: str,
) -> None:
    """Write README.md into a checkpoint's folder.

    Args:
        folder: The checkpoint's folder.
        name: Title of the card.
        description: What it is, in a line.
        model: The trained model.
        split: The text it was trained on.
        report: What was measured.
        recipe: The settings of the run, by name; "kind" is "bert" or "gpt2".
        command: What to type to train it again.
        notice: Where the text is from and under which license.
    """
    config = model.config
    is_bert = recipe["kind"] == "bert"
    facts = dict(recipe) | {"pieces": f"{config.vocab_size:,}"}
    text = CARD.format(
        pipeline="fill-mask" if is_bert else "text-generation",
        name=name,
        description=description,
        architecture=type(model).__name__,
        layers=config.num_hidden_layers,
        width=config.hidden_size,
        heads=config.num_attention_heads,
        positions=config.max_position_embeddings,
        vocab=config.vocab_size,
        parameters=model.num_parameters(),
        notice=notice.strip(),
        train=len(split.train),
        held_out=len(split.held_out),
        held_out_lines=sum(map(len, split.held_out)),
        watched=len(split.watched),
        quality="\n".join(f"- {line}" for line in report.quality),
        command=command,
        recipe=RECIPE[str(recipe["kind"])].format(**facts, common=COMMON.format(**facts)),
        curve="the norms of the `[PAD]` row and of the median row"
        if is_bert
        else "the median norm of an embedding row",
        log_every=recipe["log_every"],
        answers="\n".join(f"- {given} → {answer}" for given, answer in report.answers.items()),
    )
    (folder / "README.md").write_text(text, encoding="utf-8")
