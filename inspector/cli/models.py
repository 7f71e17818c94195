"""Verbs that run the model."""

from __future__ import annotations

from typing import Annotated

import typer

from inspector.cli.answering import AsJson, Device, Dtype, Source, Text, answer, app, refusals
from inspector.errors import RequestError

Pins = Annotated[
    list[str] | None, typer.Option("--pin", help="Follow this token everywhere (repeatable).")
]
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
        chosen = parse_layers(layers) if layers else None
    answer(
        "lens", checkpoint, as_json=as_json, text=text, k=k, layers=chosen, pins=tuple(pins or ()),
        decoder_text=decoder_text, device=device, dtype=dtype,
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
        str, typer.Option("--targets", help="Rank these tokens alone, comma-separated.")
    ] = "",
    device: Device = "auto",
    dtype: Dtype = "auto",
    as_json: AsJson = False,
) -> None:
    """What does the model predict for a mask?"""
    wanted = tuple(target.strip() for target in targets.split(",") if target.strip())
    answer(
        "predict", checkpoint, as_json=as_json, text=text, k=k, targets=wanted, device=device,
        dtype=dtype,
    )  # fmt: skip


def parse_layers(text: str) -> tuple[int, ...]:
    """Read a list of layers such as "0,6,12" or "0-3,12".

    Raises:
        RequestError: If it is none.
    """
    layers: list[int] = []
    for part in text.split(","):
        first, _, last = part.strip().partition("-")
        if not first.isdecimal() or not (last or first).isdecimal() or len(last or first) > 4:
            raise RequestError(f'{text[:40]!r} is no list of layers: write "0,6,12" or "0-3".')
        layers += range(int(first), int(last or first) + 1)
    return tuple(layers)
