"""The settings of the two demo runs, and what they build from a text."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from tokenizers import Tokenizer
from torch import Tensor
from transformers import BertConfig, BertForPreTraining, GPT2Config, GPT2LMHeadModel, PreTrainedModel

from tools.train_demos.batches import bert_batches, windows
from tools.train_demos.losses import bert_steps, gpt2_steps
from tools.train_demos.vocabulary import bert_ids, encode, train_bert_tokenizer, train_gpt2_tokenizer


@dataclass(frozen=True, slots=True)
class TrainingRecipe:
    """Everything that decides a run, besides the text."""

    kind: str  # "bert" or "gpt2"
    steps: int
    decay_steps: int  # the last steps, over which the learning rate falls to zero
    seed: int
    vocab_size: int
    width: int
    layers: int
    heads: int
    positions: int
    matrix_rate: float  # learning rate of Muon
    rate: float  # learning rate of AdamW
    tokens: int  # per batch; BERT takes two batches a step, one of singles and one of pairs
    weight_decay: float = 0.02
    warmup: int = 200
    mask_rate: float = 0.2
    longest_span: int = 3  # lines in a segment of a pair
    nsp_weight: float = 0.5
    log_every: int = 10


RECIPES = {
    "bert": TrainingRecipe(
        kind="bert",
        steps=6_500,
        decay_steps=2_750,
        seed=0,
        vocab_size=5120,
        width=160,
        layers=4,
        heads=4,
        positions=128,
        matrix_rate=0.002,
        rate=0.001,
        tokens=1200,
    ),
    "gpt2": TrainingRecipe(
        kind="gpt2",
        steps=2_750,
        decay_steps=1_000,
        seed=0,
        vocab_size=4096,
        width=128,
        layers=4,
        heads=4,
        positions=128,
        matrix_rate=0.003,
        rate=0.002,
        tokens=2048,
    ),
}


@dataclass(frozen=True, slots=True)
class Trainee:
    """A model, its tokenizer and what leaves gradients in it."""

    model: PreTrainedModel
    tokenizer: Tokenizer
    gradients: Iterator[float]  # each step leaves a gradient in the model and yields the loss
    batches: Iterator[object]  # what `gradients` draws from
    table: Tensor  # the token embeddings, (vocab, width)


def prepare_bert(recipe: TrainingRecipe, lines: tuple[str, ...]) -> Trainee:
    """Build an untrained BERT with MLM and NSP heads, tied, and its batches."""
    tokenizer = train_bert_tokenizer(lines, recipe.vocab_size)
    ids = bert_ids(tokenizer)
    config = BertConfig(
        vocab_size=ids.vocab_size,
        hidden_size=recipe.width,
        num_hidden_layers=recipe.layers,
        num_attention_heads=recipe.heads,
        intermediate_size=4 * recipe.width,
        max_position_embeddings=recipe.positions,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        pad_token_id=ids.pad,
        tie_word_embeddings=True,
    )
    torch.manual_seed(recipe.seed)
    model = BertForPreTraining(config)
    batches = bert_batches(
        encode(tokenizer, lines),
        ids,
        tokens=recipe.tokens,
        positions=recipe.positions,
        longest=recipe.longest_span,
        mask_rate=recipe.mask_rate,
        seed=recipe.seed,
    )
    gradients = bert_steps(model, batches, recipe.nsp_weight)
    return Trainee(model, tokenizer, gradients, batches, model.bert.embeddings.word_embeddings.weight)


def prepare_gpt2(recipe: TrainingRecipe, lines: tuple[str, ...]) -> Trainee:
    """Build an untrained GPT-2, tied, and its batches."""
    tokenizer = train_gpt2_tokenizer(lines, recipe.vocab_size)
    config = GPT2Config(
        vocab_size=tokenizer.get_vocab_size(),
        n_embd=recipe.width,
        n_layer=recipe.layers,
        n_head=recipe.heads,
        n_positions=recipe.positions,
        resid_pdrop=0.0,
        embd_pdrop=0.0,
        attn_pdrop=0.0,
        bos_token_id=0,
        eos_token_id=0,
        tie_word_embeddings=True,
    )
    torch.manual_seed(recipe.seed)
    model = GPT2LMHeadModel(config)
    batches = windows(
        encode(tokenizer, lines),
        0,
        width=recipe.positions,
        batch=max(1, recipe.tokens // recipe.positions),
        seed=recipe.seed,
    )
    return Trainee(model, tokenizer, gpt2_steps(model, batches), batches, model.transformer.wte.weight)


PREPARE = {"bert": prepare_bert, "gpt2": prepare_gpt2}
