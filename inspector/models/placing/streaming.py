"""Run a model that memory does not hold: its blocks of layers have weights only while they run.

A block's weights are mapped from the checkpoint's files just before its forward pass and let go
after it, through the loader's own conversion where it merges, splits or renames tensors. What is
beside the blocks stays: mapped where the model computes on the CPU in the stored dtype, so that it
takes no memory of its own, and converted once elsewhere.

accelerate's hooks, given the files' index, take about as long for a plain model (`tools.bench
streaming`). They know no conversion: a mixture's experts would all have to be merged first, and codes
all be turned into numbers.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch
from accelerate import init_empty_weights
from torch import nn
from transformers import PreTrainedModel
from transformers.modeling_utils import local_torch_dtype

from inspector.errors import CheckpointError, RequestError
from inspector.models.build import own_config, require, task_class
from inspector.models.memory import named_tensors
from inspector.models.naming import TensorRecipe, embedding_names
from inspector.models.placing.pacing import estimate, rounds
from inspector.models.placing.placement import Plan, find_blocks, shown_size
from inspector.models.placing.routing import AT_ONCE, Experts, find_experts, join, run_routed
from inspector.models.placing.stream import Stream
from inspector.models.weightless.outline import build_outline
from inspector.models.weightless.zeroed import Zeroing
from inspector.progress import time_left
from inspector.settings import MB

if TYPE_CHECKING:
    from inspector.models.checkpoint import StagedCheckpoint


def stream_model(checkpoint: StagedCheckpoint, task: str, plan: Plan, *, experts_nbytes: int = AT_ONCE) -> Stream:
    """Build the model for a task with what is beside its blocks, and have these read in turn.

    Args:
        task: One of build.TASKS, or build.OWN.
        plan: In which precision, and where it computes.
        experts_nbytes: Of a mixture's experts that are read at once; one expert at least.

    Raises:
        NotInCheckpointError: If the file lacks weights that the task needs.
        CheckpointError: If the model cannot be built, or computes weights itself.
        RequestError: If a block alone is too large, or there is none.
    """
    model_class = task_class(checkpoint.config, task)
    zeroing = Zeroing()
    model, missing = build_outline(checkpoint, model_class, dtype=plan.dtype, initialize=zeroing.initialize)
    zero = zeroing.rows(model)
    require(missing, task=task, name=checkpoint.name, gap=checkpoint.gap)
    held = dict(named_tensors(model))
    recipes: dict[int, TensorRecipe] = {}
    for recipe in checkpoint.places(model).recipes:
        for name in recipe.names:
            recipes.setdefault(id(held[name]), recipe)
    mixtures = find_experts(model, held, recipes, checkpoint.outlines, experts_nbytes)
    stream = Stream(checkpoint, model, plan.device, held, recipes, mixtures=mixtures)
    routed = frozenset().union(*(experts.names for experts in mixtures))
    blocks = {
        block: [name for name in held if name.startswith(f"{block}.") and name not in routed]
        for block in find_blocks(model)
    }
    inside = routed.union(*blocks.values())
    stay = {id(held[name]) for name in held if name not in inside or id(held[name]) not in recipes}
    going = stream.blocks = {
        block: [name for name in names if id(held[name]) not in stay] for block, names in blocks.items()
    }
    beside = [name for name in held if id(held[name]) in stay]
    most = max((experts.at_once * experts.nbytes for experts in mixtures), default=0)
    _refuse_large(checkpoint, stream, beside, going, routed=most)
    _settle(stream, beside, missing, _computed(checkpoint, model_class, plan.dtype))
    if zero:
        _set_to_zero(stream, zero)
    for number, (block, names) in enumerate(going.items(), start=1):
        _come_and_go(stream, block, names, number=number, count=len(going))
    for experts in mixtures:
        _route(stream, experts)
    return stream


def _come_and_go(stream: Stream, block: str, names: Sequence[str], *, number: int, count: int) -> None:
    """Have some tensors in the model only while a module of it runs."""

    def enter(_: nn.Module, received: tuple[object, ...]) -> None:
        told = f"Block {number} of {count}"
        if number == 1:
            stream.progress(0.0, told)
        seconds = _left(stream, number, count, received)
        stream.progress((number - 1) / count, told if seconds is None else f"{told}, {time_left(seconds)}")
        made = stream.make(names)
        for name in names:
            stream.put(name, made[id(stream.held[name])])

    def leave(*_: object) -> None:
        for name in names:
            stream.put(name, stream.held[name])

    module = stream.model.get_submodule(block)
    module.register_forward_pre_hook(enter)
    module.register_forward_hook(leave, always_call=True)


def _left(stream: Stream, number: int, count: int, received: tuple[object, ...]) -> float | None:
    """How many seconds the blocks from one on take, by those before it; the first, by what is measured for it.

    Returns:
        None where nobody can tell, or blocks run several times in a pass.
    """
    if rounds(stream) > 1:
        return None
    if number > 1:
        return (time.monotonic() - stream.began) / (number - 1) * (count - number + 1)
    hidden = next(iter(received), None)
    told = estimate(stream, hidden.shape[:-1].numel()) if isinstance(hidden, torch.Tensor) else None
    stream.began = time.monotonic()
    return told.seconds if told else None


def _route(stream: Stream, experts: Experts) -> None:
    """Have the experts of a module in the model only while tokens are routed to them."""
    module: Any = stream.model.get_submodule(experts.path)

    def put(chosen: list[int]) -> None:
        made = stream.read(list(experts.of(chosen)))
        for name in experts.names:
            stream.put(name, made[id(stream.held[name])])

    def forward(hidden: torch.Tensor, index: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
        try:
            return join(run_routed(module, experts, put, hidden, index), hidden, weights)
        finally:
            module.num_experts = experts.count
            for name in experts.names:
                stream.put(name, stream.held[name])

    module.forward = forward


def _settle(
    stream: Stream, names: Iterable[str], missing: frozenset[str], computed: Mapping[str, torch.Tensor]
) -> None:
    """Put what stays into a model: read, computed, or NaN where the files lack it."""
    made = stream.make(names)
    for name in names:
        meta = stream.held[name]
        if id(meta) in made:
            value = made[id(meta)]
        elif name in computed:
            value = computed[name].to(stream.device, meta.dtype)
        elif name in missing:
            value = made[id(meta)] = nn.Parameter(
                torch.full_like(meta, torch.nan, device=stream.device), requires_grad=False
            )
        else:
            value = made[id(meta)] = _initialized(stream, name)
        stream.put(name, value)


def _set_to_zero(stream: Stream, rows: Sequence[int]) -> None:
    """Set the rows of the input embedding to zero that the class sets to zero after it has loaded a file."""
    names = embedding_names(stream.model)
    changed = stream.model.get_parameter(names[0]).detach().clone()
    changed[list(rows)] = 0
    value = nn.Parameter(changed, requires_grad=False)
    for name in names:
        stream.put(name, value)


def _initialized(stream: Stream, name: str) -> torch.Tensor:
    """A parameter that no file needs to hold, as its class fills it: sines of positions.

    Raises:
        CheckpointError: If the class leaves it as it is.
    """
    module = stream.model.get_submodule(name.rpartition(".")[0])
    empty = torch.full_like(stream.held[name], torch.nan, device="cpu")
    stream.put(name, nn.Parameter(empty, requires_grad=False))
    stream.model._init_weights(module)
    if empty.isnan().any():
        raise CheckpointError(
            f"The files lack {name}, and {type(stream.model).__name__} does not initialize it: set INSPECTOR_MODEL_MB "
            "higher, so that the whole model is loaded at once."
        )
    return nn.Parameter(empty.to(stream.device), requires_grad=False)


def _computed(
    checkpoint: StagedCheckpoint, model_class: type[PreTrainedModel], dtype: torch.dtype
) -> dict[str, torch.Tensor]:
    """The tables that a class makes by itself, such as the frequencies of its positions."""
    with local_torch_dtype(dtype), init_empty_weights(include_buffers=False):
        return dict(model_class(own_config(model_class, checkpoint.config)).named_buffers())


def _refuse_large(
    checkpoint: StagedCheckpoint,
    stream: Stream,
    beside: Sequence[str],
    blocks: Mapping[str, Sequence[str]],
    *,
    routed: int,
) -> None:
    """Refuse a model that does not fit a block at a time either; `routed`: bytes of experts at once."""
    kind, allowed = type(stream.model).__name__, checkpoint.settings.model_nbytes
    higher = f"set INSPECTOR_MODEL_MB higher than {allowed / MB:,.0f}"
    if not blocks:
        raise RequestError(
            f"{kind} has no list of layers that can be read one at a time, so {checkpoint.name} cannot be "
            f"streamed: {higher}."
        )
    largest = max(blocks, key=lambda block: _copied(checkpoint, stream, blocks[block]))
    wanted = _copied(checkpoint, stream, beside) + _copied(checkpoint, stream, blocks[largest]) + routed
    if wanted > allowed:
        raise RequestError(
            f"To stream {checkpoint.name} as {kind}, {shown_size(wanted)} of weights must be in memory at once "
            f"({largest}, and the weights outside the blocks), but the limit is {shown_size(allowed)}: {higher}, or "
            "choose the precision of its files."
        )


def _copied(checkpoint: StagedCheckpoint, stream: Stream, names: Iterable[str]) -> int:
    """Bytes of some tensors that take memory of their own: all but what is used as it is mapped."""
    stored, summed = checkpoint.outlines, checkpoint.manifest.summed
    return sum(
        stored[source].numel() * stream.held[recipe.place].itemsize
        for recipe in stream.needed(names)
        for source, _ in recipe.sources
        if recipe.converter
        or source in checkpoint.changed
        or source in summed
        or stream.device.type != "cpu"
        or stored[source].dtype != stream.held[recipe.place].dtype
    )
