"""Verbs that run the model."""

from __future__ import annotations

from typing import Annotated

import typer

from inspector.cli.answering import AsJson, Device, Dtype, Source, Text, answer, app, refusals
from inspector.errors import RequestError

Pins = Annotated[
    list[str] | None, typer.Option("--pin", help="Follow this token everywhere (repeatable).")
]
Pair = Annotated[str, typer.Option("--pair", help="The second text.")]
DecoderText = Annotated[
    str, typer.Option("--decoder-text", help="What the decoder has written so far.")
]


@app.command()
def lens(
    checkpoint: Source,
    text: Text,
    k: Annotated[int, typer.Option("-k", help="Tokens for each cell.")] = 5,
    layers: Annotated[
        str | None, typer.Option("--layers", help='Such as "0,6,12" or "0-3"; default: all.')
    ] = None,
    pins: Pins = None,
    decoder_text: DecoderText = "",
    device: Device = "auto",
    dtype: Dtype = "auto",
    as_json: AsJson = False,
) -> None:
    """What does each layer's hidden state say in tokens?"""
    with refusals():
        chosen = None if layers is None else parse_layers(layers)
    answer(
        "lens", checkpoint, as_json=as_json, text=text, k=k, layers=chosen, pins=tuple(pins or ()),
        decoder_text=decoder_text, device=device, dtype=dtype,
    )  # fmt: skip


@app.command()
def placement(
    checkpoint: Source,
    task: Annotated[
        str | None, typer.Option("--task", help="Default: the language model's, else the base.")
    ] = None,
    device: Device = "auto",
    dtype: Dtype = "auto",
    as_json: AsJson = False,
) -> None:
    """Where would the model run, and in which precision?"""
    answer(
        "placement", checkpoint, as_json=as_json, task=task, device=device, dtype=dtype,
    )  # fmt: skip


@app.command()
def ladder(
    checkpoint: Source,
    text: Text,
    layer: Annotated[int, typer.Option("--layer", help="0 = embeddings; -1: the last.")] = -1,
    position: Annotated[int, typer.Option("--position", help="Token; -1: the last.")] = -1,
    k: Annotated[int, typer.Option("-k", help="Tokens from the top of each rung.")] = 5,
    pins: Pins = None,
    decoder_text: DecoderText = "",
    device: Device = "auto",
    dtype: Dtype = "auto",
    as_json: AsJson = False,
) -> None:
    """What does each step of the head do to a token?"""
    answer(
        "ladder", checkpoint, as_json=as_json, text=text, layer=layer, position=position, k=k,
        pins=tuple(pins or ()), decoder_text=decoder_text, device=device, dtype=dtype,
    )  # fmt: skip


@app.command()
def predict(
    checkpoint: Source,
    text: Text,
    k: Annotated[int, typer.Option("-k", help="Tokens for each mask.")] = 10,
    targets: Annotated[
        str, typer.Option("--targets", help="Rank these words alone, comma-separated.")
    ] = "",
    masks: Annotated[
        list[int] | None,
        typer.Option("--mask", help="Mask this token too, counted from 0 (repeatable)."),
    ] = None,
    order: Annotated[
        str, typer.Option("--order", help="Of joint answers: left (to right) or sure (easiest).")
    ] = "left",
    device: Device = "auto",
    dtype: Dtype = "auto",
    as_json: AsJson = False,
) -> None:
    """What does the model predict for a mask?"""
    wanted = tuple(target.strip() for target in targets.split(",") if target.strip())
    answer(
        "predict", checkpoint, as_json=as_json, text=text, masks=tuple(masks or ()), k=k,
        targets=wanted, order=order, device=device, dtype=dtype,
    )  # fmt: skip


@app.command()
def plausibility(
    checkpoint: Source,
    text: Text,
    by: Annotated[
        str, typer.Option("--by", help="token, or word: its later pieces are masked too.")
    ] = "token",
    device: Device = "auto",
    dtype: Dtype = "auto",
    as_json: AsJson = False,
) -> None:
    """How plausible is every token in its own place?"""
    answer(
        "plausibility", checkpoint, as_json=as_json, text=text, by=by, device=device, dtype=dtype,
    )  # fmt: skip


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


def parse_layers(text: str) -> tuple[int, ...]:
    """Read a list of layers such as "0,6,12" or "0-3,12".

    Raises:
        RequestError: If it is none.
    """
    layers: list[int] = []
    for part in text.split(","):
        first, _, last = part.strip().partition("-")
        last = last or first
        if not first.isdecimal() or not last.isdecimal() or len(last) > 4:
            raise RequestError(
                f'--layers {text[:40]!r} is no list of layers: write "0,6" or "0-3".'
            )
        if int(first) > int(last):
            raise RequestError(f"--layers {part.strip()!r} counts down: write {last}-{first}.")
        layers += range(int(first), int(last) + 1)
    return tuple(layers)
