"""Estimate how long a streamed pass takes: blocks are read and run, and the rest follows by its bytes."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch

from inspector.models.execution import count_reuse, example_inputs
from inspector.models.placing.placement import shown_size
from inspector.models.placing.routing import Experts
from inspector.models.running import Loaded, memory_guard, wait, without_cache

if TYPE_CHECKING:
    from inspector.models.checkpoint import Checkpoint
    from inspector.models.placing.streaming import Stream

TOKENS = 16  # of the pass that is timed
RUN = 2  # blocks that run for it: the first pays for what torch sets up lazily


@dataclass(frozen=True, slots=True)
class Estimate:
    """How long the blocks of one pass take."""

    seconds: float
    basis: str  # one sentence: what was measured


class _EnoughError(Exception):
    """A pass has run as far as it is timed."""


@dataclass(slots=True)
class _Stopwatch:
    """Times the blocks that run, and ends the pass after a few."""

    device: torch.device
    most: int
    began: float = 0.0
    taken: list[tuple[str, float]] = field(default_factory=list)

    def start(self, *_: object) -> None:
        """Begin with a block."""
        self.began = time.monotonic()

    def stop(self, name: str) -> None:
        """End with it."""
        wait(self.device)
        self.taken.append((name, time.monotonic() - self.began))
        if len(self.taken) == self.most:
            raise _EnoughError


def estimate(checkpoint: Checkpoint, loaded: Loaded, stream: Stream) -> Estimate | None:
    """Run a few tokens through the first blocks of a streamed model, and say how long all of them take.

    Returns:
        None where the model does not run on a few tokens.
    """
    tokens = min(TOKENS, checkpoint.positions or TOKENS)
    watch = _Stopwatch(loaded.device, min(RUN, len(stream.blocks)))
    handles: list[Any] = []
    for name in stream.blocks:
        module = loaded.model.get_submodule(name)
        handles.append(module.register_forward_pre_hook(watch.start, prepend=True))
        handles.append(module.register_forward_hook(lambda *_, name=name: watch.stop(name)))
    try:
        with memory_guard(loaded), torch.inference_mode():
            loaded.model(**example_inputs(loaded.model, tokens), **without_cache(loaded.model))
    except _EnoughError:
        pass
    finally:
        for handle in handles:
            handle.remove()
    return _estimate(checkpoint, loaded, stream, watch, tokens) if watch.taken else None


def _estimate(checkpoint: Checkpoint, loaded: Loaded, stream: Stream, watch: _Stopwatch, tokens: int) -> Estimate:
    name, seconds = watch.taken[-1]
    nbytes = {block: nbytes_of(checkpoint, stream, block, tokens) for block in stream.blocks}
    uses = dict(count_reuse(loaded.model)[0])
    total = sum(uses.get(block, 1) * each for block, each in nbytes.items())
    place = list(nbytes).index(name) + 1
    basis = (
        f"Measured here: block {place} of {len(nbytes)} ({shown_size(nbytes[name])}) took {seconds:.2g} s to read and "
        f"run with {tokens} tokens. The estimate scales this to {shown_size(total)} in total. Longer texts take "
        "longer, and blocks in the system's file cache less."
    )
    return Estimate(seconds * total / max(1, nbytes[name]), basis)


def nbytes_of(checkpoint: Checkpoint, stream: Stream, block: str, tokens: int) -> int:
    """What is read of the files for a block: of a mixture as many experts as tokens can be routed to."""
    read = _stored(checkpoint, (source for each in stream.needed(stream.blocks[block]) for source, _ in each.sources))
    for experts in stream.mixtures:
        if experts.path.startswith(f"{block}."):
            whole = _stored(checkpoint, (source for each in experts.recipes for source, _ in each.sources))
            read += whole * min(experts.count, tokens * _routed(checkpoint, experts)) // experts.count
    return read


def _routed(checkpoint: Checkpoint, experts: Experts) -> int:
    """Experts that a token is routed to; all of them where the config does not say."""
    return getattr(checkpoint.config, "num_experts_per_tok", None) or experts.count


def _stored(checkpoint: Checkpoint, names: Iterable[str]) -> int:
    total = 0
    for name in names:
        coded = checkpoint.quantized.get(name)
        parts = coded.parts.values() if coded else (checkpoint.manifest.by_name[name],)
        total += sum(part.nbytes for part in parts)
    return total
