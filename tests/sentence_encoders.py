"""Small random sentence encoders, saved by sentence-transformers itself."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Dense, Normalize, Pooling, Transformer

from tests.families import random_model, save_checkpoint

WIDTH = 32  # of every model of tests.families


def save_encoder(
    folder: Path,
    architecture: str = "BertForMaskedLM",
    *,
    pooling: str | tuple[str, ...] = "mean",
    dense: tuple[dict[str, Any], ...] = (),
    normalize: bool = False,
    include_prompt: bool = True,
    longest: int | None = 32,
    lowers: bool = False,
    padding_side: str = "right",
    seed: int = 0,
    **whole: Any,
) -> SentenceTransformer:
    """Save an encoder into a folder.

    Args:
        pooling: The modes.
        dense: The options of each linear layer after it.
        longest: Tokens at which texts are cut; None: no file says.
        lowers: Whether texts are lowercased.
        padding_side: Of the tokenizer.
        seed: Of the weights.
        whole: Options of the whole: prompts, default_prompt_name, similarity_fn_name.

    Returns:
        The encoder as the library loads it from there.
    """
    plain = folder.parent / f"{folder.name}-plain"
    save_checkpoint(random_model(architecture, seed=seed, pad_token_id=0).base_model, plain)
    settings = {"tokenizer_class": "BertTokenizer", "padding_side": padding_side, "do_lower_case": False}
    (plain / "tokenizer_config.json").write_text(json.dumps(settings), encoding="utf-8")
    torch.manual_seed(seed)
    transformer = Transformer(str(plain), max_seq_length=longest, do_lower_case=lowers)
    mode: Any = pooling
    modules: list[Any] = [transformer, Pooling(WIDTH, pooling_mode=mode, include_prompt=include_prompt)]
    width = WIDTH * (1 if isinstance(pooling, str) else len(pooling))
    for each in dense:
        modules.append(Dense(width, **each))
        width = each["out_features"]
    if normalize:
        modules.append(Normalize())
    SentenceTransformer(modules=modules, device="cpu", **whole).save_pretrained(str(folder))
    if longest is None:  # the library writes down what it took
        saved = json.loads((folder / "tokenizer_config.json").read_text("utf-8"))
        del saved["model_max_length"]
        (folder / "tokenizer_config.json").write_text(json.dumps(saved), encoding="utf-8")
    return SentenceTransformer(str(folder), device="cpu")
