"""Read hidden states as tokens, some layers at a time: those of a streamed pass while it goes on."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import pandas as pd
import torch

from inspector.analyses.lens.request import LensRequest
from inspector.analyses.lens.result import LensRows
from inspector.models.placing.device import release, wait
from inspector.models.reading.frames import (
    WITHOUT_SOFTMAX,
    by_layer,
    cell_frame,
    pinned_frame,
    state_frame,
    with_tokens,
)
from inspector.models.reading.ladder import Ladder
from inspector.models.reading.layers import choose_layers, layer_names
from inspector.models.reading.lens_run import STATES, LensRun, LensSetup
from inspector.models.reading.readout import COMPARED, Readout, block_states, join, overlap, rank_correlation, read
from inspector.models.reading.scores import COSINE, DOT, DOT_BIAS, LOGITS
from inspector.models.running import memory_guard
from inspector.models.tokens import Tokens
from inspector.progress import Progress, Show

LARGE = 50_000_000  # scores of a layer, from which on memory is given back after each
GROUPS = 3  # of the inner layers at least: each reads the vocabulary's matrix, 2 to 3 % of a streamed pass
BEFORE = (DOT, COSINE, DOT_BIAS)  # steps that no comparison with the model's own logits takes back
MOST_ROWS = 8_000  # of a partial answer

Frames = dict[str, list[pd.DataFrame]]


@dataclass(slots=True)
class _Rung:
    """What was read of one layer's states at one rung, block by block."""

    reads: list[Readout] = field(default_factory=list)
    overlaps: list[torch.Tensor] = field(default_factory=list)
    correlations: list[torch.Tensor] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Early:
    """Layers that were read before the pass had ended."""

    states: tuple[torch.Tensor, ...]
    ladder: Ladder | None
    rows: int  # tokens that were scored
    frames: Frames

    def holds(self, run: LensRun, layers: Sequence[int]) -> bool:
        """Whether the pass ended with these very states, and its head is still taken to have these steps."""
        final = run.forward.hidden_states
        same = all(state is final[layer] for state, layer in zip(self.states, layers, strict=True))
        return same and self.ladder is run.scorer.ladder and self.rows == run.scorer.rows


class LensReading:
    """What one text's layers say.

    Args:
        request: Which layers and tokens are read.
        tokens: Names the ids.
        show: Takes the rows that are known before the pass ends; None: nobody does.
        most_rows: That it takes.
    """

    def __init__(
        self, request: LensRequest, tokens: Tokens, show: Show[LensRows] | None, *, most_rows: int = MOST_ROWS
    ) -> None:
        self._request, self._tokens, self._show, self._most_rows = request, tokens, show, most_rows
        self._early: dict[tuple[int, ...], _Early] = {}
        self._frames: Frames = {"cells": [], "pinned": [], "states": []}
        self.milliseconds = 0.0  # of the pass that were spent here

    def follow(self, setup: LensSetup, states: Sequence[torch.Tensor], count: int) -> None:
        """Read the layers that a pass has done, as soon as there are as many as are read together.

        Args:
            setup: Of the text; its pass is under way.
            states: The hidden states so far, none of them the last.
            count: How many there will be.
        """
        if states[-1].dim() != STATES or states[-1].shape[1] != len(setup.tokens):
            return
        wait(setup.loaded.device)
        began = time.perf_counter()
        chosen = choose_layers(self._request.layers, count)
        for layers in _inner_groups(setup, chosen, count):
            if layers not in self._early and layers[-1] < len(states):
                here = tuple(states[layer] for layer in layers)
                self._early[layers] = _Early(
                    here, setup.scorer.ladder, setup.scorer.rows, self._read(setup, here, layers)
                )
                self._tell(setup, count)
        self.milliseconds += 1000 * (time.perf_counter() - began)

    def read_last(self, run: LensRun, progress: Progress) -> None:
        """Read the last layer, if it is chosen; what the model's own logits are needed for is done then."""
        count = len(run.forward.hidden_states)
        if count - 1 in choose_layers(self._request.layers, count):
            progress(0.0, f"Layer {count - 1}")
            self._keep(self._read(run, [run.forward.hidden_states[-1]], (count - 1,), last=True))

    def finish(self, run: LensRun, progress: Progress) -> Frames:
        """Read the inner layers that are left, and return all that was read."""
        count = len(run.forward.hidden_states)
        chosen = choose_layers(self._request.layers, count)
        done = int(count - 1 in chosen)
        for layers in _inner_groups(run, chosen, count):
            early = self._early.pop(layers, None)
            if early and early.holds(run, layers):
                self._keep(early.frames)
            else:
                progress(done / len(chosen), f"Layer {layers[0]}")
                self._keep(self._read(run, [run.forward.hidden_states[layer] for layer in layers], layers))
            done += len(layers)
        return self._frames

    def _keep(self, frames: Frames) -> None:
        for name, found in frames.items():
            self._frames[name] += found

    def _read(
        self, setup: LensSetup, states: Sequence[torch.Tensor], layers: Sequence[int], *, last: bool = False
    ) -> Frames:
        """Read some layers' states, and put them into tables."""
        with memory_guard(setup.loaded), torch.inference_mode():
            hidden = states[0][0] if len(states) == 1 else torch.cat([state[0] for state in states])
            found = _read_states(setup, hidden, self._request.k, last=last)
        if len(setup.tokens) * setup.scorer.rows > LARGE:
            release(setup.loaded.device)  # what lies between the small results of large blocks
        return _frames(setup, found, layers)

    def _tell(self, setup: LensSetup, count: int) -> None:
        """Show the best token of each cell that has been read, at the steps that need no head."""
        rungs = tuple(rung for rung in setup.scorer.rungs if rung in BEFORE)
        if not (self._show and rungs):
            return
        cells = by_layer([frame for early in self._early.values() for frame in early.frames["cells"]])
        best = pd.DataFrame(cells[(cells["rank"] == 0) & cells["rung"].isin(rungs)]).reset_index(drop=True)
        if len(best) <= self._most_rows:
            named = with_tokens(best, self._tokens, place=4)
            self._show(LensRows(tokens=setup.tokens, layers=layer_names(count), rungs=rungs, cells=named))


def _inner_groups(setup: LensSetup, chosen: Sequence[int], count: int) -> Iterator[tuple[int, ...]]:
    """The layers that are read together, without the last.

    A product with the vocabulary first waits for the matrix, which is far larger than the states of
    a short text: as many layers as fill a block read it once, but no more than a third of them, so
    that a streamed pass has rows to show long before it ends.
    """
    inner = [layer for layer in chosen if layer != count - 1]
    most = block_states(setup.scorer.rows, setup.loaded.device) // max(1, len(setup.tokens))
    together = max(1, min(most, -(-len(inner) // GROUPS)))
    for begin in range(0, len(inner), together):
        yield tuple(inner[begin : begin + together])


def _frames(setup: LensSetup, found: dict[str, _Rung], layers: Sequence[int]) -> Frames:
    """The tables of one pass, step after step."""
    frames: Frames = {"cells": [], "pinned": [], "states": []}
    for rung in setup.scorer.rungs:
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
        if len(setup.pins):
            frames["pinned"].append(pinned_frame(whole, rung=rung, layers=layers, pins=setup.pins))
    return frames


def _read_states(setup: LensSetup, hidden: torch.Tensor, k: int, *, last: bool) -> dict[str, _Rung]:
    """Read the states of some layers, one layer's after the other's, at every step."""
    rungs: dict[str, _Rung] = {}
    size = block_states(setup.scorer.rows, setup.loaded.device)
    for begin in range(0, len(hidden), size):
        block = slice(begin, begin + size)
        best: tuple[torch.Tensor, torch.Tensor] | None = None  # scores and ids of the logits
        kept: torch.Tensor | None = None  # ids of the logits' top k
        for rung, scores in setup.score(hidden[block], block, last=last):
            correlation = None
            if rung == LOGITS:
                top = scores.topk(min(COMPARED, scores.shape[1]), dim=1)
                best = (top.values, top.indices)
                correlation = torch.ones(len(scores), device=scores.device)
            elif best is not None:
                correlation = rank_correlation(best[0], scores.gather(1, best[1]))
            found = read(
                scores,
                k=min(k, setup.scorer.rows),
                pins=setup.pins.to(scores.device),
                softmax=rung not in WITHOUT_SOFTMAX,
            )
            kept = found.ids if rung == LOGITS else kept
            here = rungs.setdefault(rung, _Rung())
            here.reads.append(found)
            if correlation is not None and kept is not None:
                here.overlaps.append(overlap(found.ids, kept))
                here.correlations.append(correlation)
    return rungs
