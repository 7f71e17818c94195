"""Run a loaded model: one timed forward pass, and its head on hidden states of one's choice."""

from __future__ import annotations

import inspect
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import torch
from transformers import PreTrainedModel

from inspector.errors import WorkerError
from inspector.models.naming import input_embedding
from inspector.models.placing.device import release, wait
from inspector.store.readers.levels import read_setting

if TYPE_CHECKING:
    from inspector.models.placing.stream import Stream

STREAM = "the device stream, which reads a block of layers at a time"
WAYS_ON = {"input": "a smaller dtype, a shorter text, or the CPU", "model": f"a smaller dtype, the CPU, or {STREAM}"}
ON_CPU = {"input": "a smaller dtype or a shorter text", "model": f"a smaller dtype, or {STREAM}"}
LARGE_LOGITS = 50_000_000  # numbers, from which on they are not all made at once where that can be
MEMORY_SHARE = 0.8  # of what a worker may use: the rest is for what an estimate leaves out
EXHAUSTED = re.compile(r"can't allocate memory|not enough memory|MPS backend out of memory")


@dataclass(frozen=True)
class Loaded:
    """A model on its device, every weight of it from the file."""

    model: PreTrainedModel
    device: torch.device
    dtype: torch.dtype
    spread: bool = False  # True: parts of it are brought in when it is their turn
    reason: str = ""  # why it runs there, as a sentence
    stream: Stream | None = None  # reads its blocks from the files whenever it runs

    @property
    def notes(self) -> tuple[str, ...]:
        """What is to be said beside an answer of how it was run."""
        return (self.reason,) if self.stream else ()

    @property
    def precision(self) -> str:
        """The name of its dtype, such as "float32"."""
        return str(self.dtype).removeprefix("torch.")

    @property
    def input_embedding(self) -> torch.Tensor:
        """(vocab, d_model), on the model's device, detached."""
        return input_embedding(self.model).detach()

    @cached_property
    def nbytes(self) -> int:
        """Of its weights and buffers, what is tied counted once."""
        held = (*self.model.parameters(), *self.model.buffers())
        return sum(tensor.nbytes for tensor in held)


@dataclass(frozen=True, slots=True)
class Replay:
    """The model's own forward method on some positions, its base model's output as it was."""

    model: PreTrainedModel
    inputs: dict[str, torch.Tensor]
    output: Any  # of the base model

    def logits(self, block: slice) -> torch.Tensor:
        """Run the head; (batch, positions of the block, vocab)."""
        return self._run(block)[0]

    def works(self) -> bool:
        """Whether the model does ask its base model, and not its parts."""
        return self._run(slice(0, 1))[1]

    def _run(self, block: slice) -> tuple[torch.Tensor, bool]:
        asked = False

        def answer(*_: Any, **__: Any) -> Any:
            nonlocal asked
            asked = True
            return self.output

        begin, end, _ = block.indices(self.inputs["input_ids"].shape[1])
        base = self.model.base_model
        base.forward = answer
        try:
            with torch.inference_mode():
                found = self.model(**self.inputs, use_cache=False, logits_to_keep=torch.arange(begin, end)).logits
        finally:
            del base.forward  # the class's own is there again
        return found, asked


@dataclass(frozen=True, slots=True)
class Forward:
    """One forward pass of one text or a batch."""

    # layers + 1 of (batch, positions, d_model); of the decoder where there are two stacks
    hidden_states: tuple[torch.Tensor, ...]
    logits: torch.Tensor | None  # (batch, positions, vocab); None without a head or if not asked
    milliseconds: float
    received: torch.Tensor | None  # what the output layer got, (batch, positions, width), if asked
    replay: Replay | None = None  # gives the logits where they are too large to be made at once

    def logits_of(self, block: slice) -> torch.Tensor | None:
        """The model's own logits at some positions, (batch, positions of the block, vocab)."""
        if self.replay:
            return self.replay.logits(block)
        return None if self.logits is None else self.logits[:, block]

    def without_logits(self) -> Forward:
        """The same, with nothing that holds logits."""
        return replace(self, logits=None, replay=None)


def forward(
    loaded: Loaded,
    ids: torch.Tensor,
    type_ids: torch.Tensor | None = None,
    *,
    head: bool,
    every_layer: bool = False,
    decoder_ids: torch.Tensor | None = None,
    capture: bool = False,
    attention: torch.Tensor | None = None,
    by_blocks_from: int | None = None,
) -> Forward:
    """Run a model on token ids.

    Args:
        ids: (batch, positions).
        type_ids: Segment of each position, same shape; left out for models without segments.
        head: Whether to run the head too; without it only the base model runs.
        every_layer: Whether to keep every hidden state; else only the last.
        decoder_ids: (batch, positions) that the decoder reads, where the model has one.
        capture: Whether to keep what the output layer receives.
        attention: 1 where a token is, 0 for padding, same shape; None: no padding.
        by_blocks_from: Numbers, from which on logits are made a block at a time by `logits_of`, if the model can
            make some alone; None: they are always made at once.

    Raises:
        WorkerError: If the device has too little memory.
    """
    # What brings a spread model's parts in hangs on its methods, which a replay would replace.
    some = head and not capture and not loaded.spread
    later = some and by_blocks_from is not None and _keeps_some(loaded.model, ids, by_blocks_from)
    model = loaded.model if head and not later else loaded.model.base_model
    # Of some models the base model is the one with the head, which gives no last_hidden_state.
    every = every_layer or head or (model is loaded.model and has_output_layer(model))
    inputs = {"input_ids": ids.to(loaded.device)}
    attention = torch.ones_like(ids) if attention is None else attention
    inputs["attention_mask"] = attention.to(loaded.device)
    if type_ids is not None and (read_setting(loaded.model.config, "type_vocab_size").value or 0) > 1:
        inputs["token_type_ids"] = type_ids.to(loaded.device)
    if decoder_ids is not None:
        inputs["decoder_input_ids"] = decoder_ids.to(loaded.device)
    received: list[torch.Tensor] = []
    with memory_guard(loaded), torch.inference_mode(), _capturing(loaded, received, on=capture):
        started = time.perf_counter()
        output = model(**inputs, output_hidden_states=every, **without_cache(model))
        wait(loaded.device)
        milliseconds = 1000 * (time.perf_counter() - started)
    if every:
        decoder = getattr(output, "decoder_hidden_states", None)
        hidden_states = tuple(output.hidden_states if decoder is None else decoder)
    else:
        hidden_states = (output.last_hidden_state,)
    replay = Replay(loaded.model, inputs, output) if later else None
    if replay and not replay.works():
        return forward(
            loaded, ids, type_ids, head=head, every_layer=every_layer, decoder_ids=decoder_ids, attention=attention
        )
    return Forward(
        tuple(each.to(loaded.device) for each in hidden_states),  # a spread model's lie all over
        getattr(output, "logits", None) if head else None,
        milliseconds,
        received[-1] if received else None,
        replay,
    )


def without_cache(model: Any) -> dict[str, bool]:
    """The argument that keeps a forward method from keeping keys and values, where it takes one."""
    takes = inspect.signature(model.forward).parameters
    open_ended = any(each.kind is inspect.Parameter.VAR_KEYWORD for each in takes.values())
    return {"use_cache": False} if open_ended or "use_cache" in takes else {}


def has_output_layer(model: Any) -> bool:
    """Whether a model maps its hidden states to tokens."""
    return model.get_output_embeddings() is not None


def _keeps_some(model: PreTrainedModel, ids: torch.Tensor, by_blocks_from: int) -> bool:
    """Whether logits are too many to be made at once, and the model can make some of them."""
    many = ids.numel() * (read_setting(model.config, "vocab_size").value or 0) >= by_blocks_from
    return many and "logits_to_keep" in inspect.signature(model.forward).parameters


@contextmanager
def _capturing(loaded: Loaded, received: list[torch.Tensor], *, on: bool) -> Iterator[None]:
    """Keep what the output layer is given."""
    layer = loaded.model.get_output_embeddings() if on else None
    if layer is None:
        yield
        return
    handle = layer.register_forward_pre_hook(lambda _, given: received.append(given[0].detach()))
    try:
        yield
    finally:
        handle.remove()


@contextmanager
def memory_guard(loaded: Loaded, what: str = "input") -> Iterator[None]:
    """Turn the device's out-of-memory into a sentence and give the memory back.

    Raises:
        WorkerError: If the device has too little memory.
    """
    try:
        yield
    except RuntimeError as error:  # OutOfMemoryError is one; the CPU and MPS raise it bare
        if not isinstance(error, torch.OutOfMemoryError) and not EXHAUSTED.search(str(error)):
            raise
        release(loaded.device)
        kind = loaded.device.type
        raise WorkerError(
            f"The {kind} device has too little memory left for this {what}: use "
            f"{(ON_CPU if kind == 'cpu' else WAYS_ON)[what]}."
        ) from error
