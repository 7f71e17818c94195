"""Read every layer's hidden state as tokens, at every step from dot product to true logits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pandas as pd
import torch

from inspector.analyses.lens.request import LensRequest
from inspector.analyses.lens.result import Lens
from inspector.models.checkpoint import Checkpoint
from inspector.models.placing.device import release
from inspector.models.reading.frames import (
    WITHOUT_SOFTMAX,
    by_layer,
    cell_frame,
    pinned_frame,
    state_frame,
    with_tokens,
)
from inspector.models.reading.layers import choose_layers, layer_names
from inspector.models.reading.readout import COMPARED, Readout, block_states, join, overlap, rank_correlation, read
from inspector.models.reading.scores import LOGITS, NOTES
from inspector.models.reading.setting import Setting, prepare
from inspector.models.running import memory_guard
from inspector.progress import Progress
from inspector.request import answers

LARGE = 50_000_000  # scores of a layer, from which on memory is given back after each


@dataclass(slots=True)
class _Rung:
    """What was read of one layer's states at one rung, block by block."""

    reads: list[Readout]
    overlaps: list[torch.Tensor]
    correlations: list[torch.Tensor]


@answers(LensRequest)
def lens(checkpoint: Checkpoint, request: LensRequest, *, progress: Progress) -> Lens:
    """Ask at every layer and position which tokens the hidden state is nearest to.

    The true logits of an inner layer are the logit lens (nostalgebraist 2020): the head of the last
    layer applied early. "dot" and "cosine" compare with the *input* embeddings; the steps between
    are the head's own modules, one after the other.

    Args:
        checkpoint: With weights for at least the base model.
        request: The text, and which layers and tokens are read.
        progress: Told what is being done.

    Raises:
        NotInCheckpointError: If the file lacks the base model or a tokenizer.
        RequestError: If a parameter does not fit.
    """
    setting = prepare(
        checkpoint,
        progress=progress,
        text=request.text,
        pins=request.pins,
        decoder_text=request.decoder_text,
        device=request.device,
        dtype=request.dtype,
    )
    count = len(setting.run.hidden_states)
    chosen = choose_layers(request.layers, count)
    frames = _read_layers(setting, chosen, request.k, progress)
    tokens = checkpoint.require_tokens()
    return Lens(
        tokens=setting.tokens,
        rungs=setting.scorer.rungs,
        cells=with_tokens(by_layer(frames["cells"]), tokens, place=4),
        max_abs_error=setting.error,
        taken_from_model=setting.taken,
        warnings=setting.warnings,
        pinned=with_tokens(by_layer(frames["pinned"]), tokens, place=3),
        rung_notes={rung: NOTES[rung] for rung in setting.scorer.rungs},
        states=_agree(by_layer(frames["states"]), count - 1),
        layers=layer_names(count),
        tolerance=None if setting.error is None else setting.tolerance,
        device=str(setting.loaded.device),
        dtype=str(setting.loaded.dtype).removeprefix("torch."),
        milliseconds=setting.run.milliseconds,
        left_out=setting.left_out,
    )


def _read_layers(setting: Setting, chosen: Sequence[int], k: int, progress: Progress) -> dict[str, list[pd.DataFrame]]:
    """Read some layers, the last one first, and compare its logits with the model's own."""
    frames: dict[str, list[pd.DataFrame]] = {"cells": [], "pinned": [], "states": []}
    done = 0
    for layers in _passes(setting, chosen):
        progress(done / len(chosen), f"Layer {layers[0]}")
        with memory_guard(setting.loaded), torch.inference_mode():
            found = _read_pass(setting, layers, k)
        setting.run = setting.run.without_logits()  # nobody else holds them
        if len(setting.tokens) * setting.scorer.rows > LARGE:
            release(setting.loaded.device)  # what lies between the small results of large blocks
        for name, made in _frames(setting, found, layers).items():
            frames[name] += made
        done += len(layers)
    return frames


def _passes(setting: Setting, chosen: Sequence[int]) -> Iterator[Sequence[int]]:
    """The layers that are read together.

    A product with the vocabulary first waits for the matrix, which is far larger than the states of
    a short text: as many layers as fill a block read it once.
    """
    last = len(setting.run.hidden_states) - 1
    if last in chosen:  # first: then the model's own logits, the largest thing here, can go
        yield [last]
    inner = [layer for layer in chosen if layer != last]
    together = max(1, block_states(setting.scorer.rows) // max(1, len(setting.tokens)))
    for begin in range(0, len(inner), together):
        yield inner[begin : begin + together]


def _frames(setting: Setting, found: dict[str, _Rung], layers: Sequence[int]) -> dict[str, list[pd.DataFrame]]:
    """The tables of one pass, step after step."""
    frames: dict[str, list[pd.DataFrame]] = {"cells": [], "pinned": [], "states": []}
    for rung in setting.scorer.rungs:
        if rung not in found:  # true logits of an inner layer whose head is not known
            continue
        whole = join(found[rung].reads)
        compared = {
            name: torch.cat(values).cpu()
            for name, values in (("overlap", found[rung].overlaps), ("correlation", found[rung].correlations))
            if values
        }
        frames["cells"].append(cell_frame(whole, rung=rung, layers=layers))
        frames["states"].append(state_frame(whole, rung=rung, layers=layers, compared=compared))
        if len(setting.pins):
            frames["pinned"].append(pinned_frame(whole, rung=rung, layers=layers, pins=setting.pins))
    return frames


def _read_pass(setting: Setting, layers: Sequence[int], k: int) -> dict[str, _Rung]:
    """Read the states of some layers, one layer's after the other's, at every step."""
    rungs: dict[str, _Rung] = {}
    states = setting.run.hidden_states
    last = layers[0] == len(states) - 1
    hidden = states[layers[0]][0] if len(layers) == 1 else torch.cat([states[n][0] for n in layers])
    size = block_states(setting.scorer.rows)
    for begin in range(0, len(hidden), size):
        block = slice(begin, begin + size)
        best: tuple[torch.Tensor, torch.Tensor] | None = None  # scores and ids of the logits
        kept: torch.Tensor | None = None  # ids of the logits' top k
        for rung, scores in setting.score(hidden[block], block, last=last):
            correlation = None
            if rung == LOGITS:
                top = scores.topk(min(COMPARED, scores.shape[1]), dim=1)
                best = (top.values, top.indices)
                correlation = torch.ones(len(scores), device=scores.device)
            elif best is not None:
                correlation = rank_correlation(best[0], scores.gather(1, best[1]))
            found = read(
                scores,
                k=min(k, setting.scorer.rows),
                pins=setting.pins.to(scores.device),
                softmax=rung not in WITHOUT_SOFTMAX,
            )
            kept = found.ids if rung == LOGITS else kept
            here = rungs.setdefault(rung, _Rung([], [], []))
            here.reads.append(found)
            if correlation is not None and kept is not None:
                here.overlaps.append(overlap(found.ids, kept))
                here.correlations.append(correlation)
    return rungs


def _agree(states: pd.DataFrame, last: int) -> pd.DataFrame:
    """Say of each state whether its top token is that of the logits at the last layer."""
    final = states[(states["rung"] == LOGITS) & (states["layer"] == last)]
    if not len(final):
        return states.drop(columns="top")
    winner = dict(zip(final["position"].tolist(), final["top"].tolist(), strict=True))
    agrees = [
        float(winner[position] == top)
        for position, top in zip(states["position"].tolist(), states["top"].tolist(), strict=True)
    ]
    return states.drop(columns="top").assign(agrees=agrees)
