"""Logits at chosen positions of many texts of any lengths, in few padded passes."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

import torch

from inspector.errors import NotInCheckpointError
from inspector.models.checkpoint import StagedCheckpoint
from inspector.models.placing.device import wait
from inspector.models.reading.ladder import build_ladder
from inspector.models.running import Forward, Loaded, forward, memory_guard
from inspector.store.readers.levels import read_setting

MOST_SCORES = 64_000_000  # of a pass whose head cannot be run on chosen positions alone


@dataclass(frozen=True, slots=True)
class Room:
    """What a pass and a block of the head may take."""

    tokens: int = 4_096  # of a pass, padding included; a single row may have more
    block: int = 8_000_000  # scores of the head at once
    # Tokens of padding that cost as much as another pass: it reads every weight again, and an
    # accelerator waits for its launch.
    padding: tuple[tuple[str, int], ...] = (("cpu", 32), ("cuda", 2_048), ("mps", 512))


USUAL = Room()


@dataclass(frozen=True, slots=True)
class Row:
    """One text as ids, and where its logits are wanted."""

    ids: tuple[int, ...]
    type_ids: tuple[int, ...]  # segment of each position
    positions: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Answered:
    """Logits of one row, or of a part of it where it asks for more than a block of the head."""

    index: int  # of the row
    logits: torch.Tensor  # (positions, vocab) in float32, on the device; an inference tensor
    milliseconds: float  # of its pass: the base model, and the head on its block
    start: int = 0  # place in the row's positions of the first that is answered here


def masked_logits(
    checkpoint: StagedCheckpoint, loaded: Loaded, rows: Sequence[Row], *, room: Room = USUAL
) -> Iterator[Answered]:
    """Read every row and answer each as if it were read alone.

    Rows of similar lengths share a pass, padded on the right with the config's padding id, which
    families that count positions from ids expect there. Padding is masked from attention; models
    outside the table of families may still see it (ConvBERT's convolutions, FNet's Fourier
    transform), so of those only rows of one length share a pass.

    Args:
        rows: Ids that the model has rows and positions for, in any order.
        room: What a pass and a block of scores may take.

    Yields:
        Answers, shortest rows first; those of one row in order. At most a block of scores is held at
        once, besides what the taker keeps.

    Raises:
        NotInCheckpointError: If the model answers without logits.
        WorkerError: If the device has too little memory.
    """
    family = checkpoint.family
    ladder = build_ladder(loaded.model, family) if family else None
    vocab = checkpoint.embedding.shape[0]
    scores_a_token = 0 if ladder else vocab
    for members in passes(rows, loaded, padded=family is not None, scores=scores_a_token, room=room):
        run = _read(loaded, [rows[index] for index in members], head=ladder is None, vocab=vocab)
        for part in _parts(rows, members, max(1, room.block // vocab)):
            picked = _pick(run, part, rows, members, logits=ladder is None, name=checkpoint.name)
            started = time.perf_counter()
            with memory_guard(loaded), torch.inference_mode():
                logits = (ladder.logits(picked) if ladder else picked).float()
                wait(loaded.device)
            milliseconds = run.milliseconds + 1000 * (time.perf_counter() - started)
            sizes = [len(places) for _, places in part]
            for (index, places), answer in zip(part, logits.split(sizes), strict=True):
                yield Answered(index, answer, milliseconds, places.start)


def passes(
    rows: Sequence[Row], loaded: Loaded, *, padded: bool, scores: int, room: Room = USUAL
) -> Iterator[list[int]]:
    """Indices of the rows that are read together, shortest first."""
    worth = dict(room.padding).get(loaded.device.type, 0) if padded else 0
    most = min(room.tokens, MOST_SCORES // scores) if scores else room.tokens
    together: list[int] = []
    padding = 0
    for index in sorted(range(len(rows)), key=lambda index: len(rows[index].ids)):
        length = len(rows[index].ids)
        if together:
            padding += len(together) * (length - len(rows[together[-1]].ids))
            if padding > worth or length * (len(together) + 1) > most:
                yield together
                together, padding = [], 0
        together.append(index)
    if together:
        yield together


def _read(loaded: Loaded, rows: Sequence[Row], *, head: bool, vocab: int) -> Forward:
    """Run rows, the last of which is the longest, as one padded batch."""
    longest = len(rows[-1].ids)
    pad = read_setting(loaded.model.config, "pad_token_id").value
    pad = pad if isinstance(pad, int) and 0 <= pad < vocab else 0
    ids = torch.tensor([row.ids + (pad,) * (longest - len(row.ids)) for row in rows])
    type_ids = torch.tensor([row.type_ids + (0,) * (longest - len(row.ids)) for row in rows])
    lengths = torch.tensor([len(row.ids) for row in rows])
    attention = (torch.arange(longest) < lengths[:, None]).long()
    return forward(loaded, ids, type_ids, head=head, attention=attention)


def _parts(rows: Sequence[Row], members: Sequence[int], most: int) -> Iterator[list[tuple[int, range]]]:
    """Cut the wanted positions into blocks of so many: row, and places in its positions."""
    wanted = [(index, place) for index in members for place in range(len(rows[index].positions))]
    for first in range(0, len(wanted), most):
        block = wanted[first : first + most]
        part = []
        for index, same in groupby(block, key=lambda pair: pair[0]):
            places = [place for _, place in same]
            part.append((index, range(places[0], places[-1] + 1)))
        yield part


def _pick(
    run: Forward,
    part: Sequence[tuple[int, range]],
    rows: Sequence[Row],
    members: Sequence[int],
    *,
    logits: bool,
    name: str,
) -> torch.Tensor:
    """What the base model, or the whole model, answered at the wanted positions: (wanted, ...)."""
    source = run.logits if logits else run.hidden_states[-1]
    if source is None:
        raise NotInCheckpointError(f"{name} returns no logits.")
    line = {index: number for number, index in enumerate(members)}
    batch = [line[index] for index, places in part for _ in places]
    positions = [rows[index].positions[place] for index, places in part for place in places]
    with torch.inference_mode():
        return source[batch, positions]
