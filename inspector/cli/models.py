"""Verbs that run the model."""

from __future__ import annotations

from typing import Annotated

import typer

from inspector.cli.answering import AsJson, Device, Dtype, Source, Text, answer, app

Pair = Annotated[str, typer.Option("--pair", help="The second text.")]


@app.command()
def heads(
    checkpoint: Source,
    text: Text,
    pair: Pair = "",
    choices: Annotated[
        list[str] | None, typer.Option("--choice", help="One of the endings (repeatable).")
    ] = None,
    head: Annotated[
        str | None, typer.Option("--head", help="Default: the one that config.json names.")
    ] = None,
    k: Annotated[int, typer.Option("-k", help="Next tokens listed.")] = 10,
    new_tokens: Annotated[
        int, typer.Option("--new-tokens", help="Steps of the continuation.")
    ] = 12,
    temperature: Annotated[
        float, typer.Option("--temperature", help="0: the likeliest token at each step.")
    ] = 0.0,
    seed: Annotated[int, typer.Option("--seed", help="Of the sampling.")] = 0,
    longest_answer: Annotated[
        int, typer.Option("--longest-answer", help="Tokens of an answer span.")
    ] = 15,
    right_answer: Annotated[
        tuple[int, int] | None,
        typer.Option("--right-answer", help="First and last position, for the loss."),
    ] = None,
    device: Device = "auto",
    dtype: Dtype = "auto",
    as_json: AsJson = False,
) -> None:
    """What does each task head answer?"""
    answer(
        "heads", checkpoint, as_json=as_json, text=text, pair=pair, choices=tuple(choices or ()),
        head=head, k=k, new_tokens=new_tokens, temperature=temperature, seed=seed,
        longest_answer=longest_answer, answer=right_answer, device=device, dtype=dtype,
    )  # fmt: skip


@app.command()
def pretrain(
    checkpoint: Source,
    text: Text,
    pair: Pair = "",
    follows: Annotated[
        bool, typer.Option("--follows/--does-not-follow", help="The next-sentence label.")
    ] = True,
    share: Annotated[float, typer.Option("--share", help="Of the tokens that are chosen.")] = 0.15,
    seed: Annotated[int, typer.Option("--seed", help="Of the choice.")] = 0,
    device: Device = "auto",
    dtype: Dtype = "auto",
    as_json: AsJson = False,
) -> None:
    """What do masking and the next sentence ask of the model?"""
    answer(
        "pretrain", checkpoint, as_json=as_json, text=text, pair=pair, follows=follows,
        share=share, seed=seed, device=device, dtype=dtype,
    )  # fmt: skip


@app.command()
def tokenize(
    checkpoint: Source,
    texts: Annotated[
        list[str], typer.Option("--text", help="A text (repeatable: a batch, padded).")
    ],
    pair: Pair = "",
    as_json: AsJson = False,
) -> None:
    """What tokens does a text become?"""
    answer("tokenize", checkpoint, as_json=as_json, texts=tuple(texts), pair=pair)
