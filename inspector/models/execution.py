"""What one pass through a model runs, and how often."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import nn
from transformers import PreTrainedModel

from inspector.models.build import meta_model
from inspector.models.naming import input_embedding

EXAMPLE_IDS = 4  # tokens of the pass that counts reused modules
SMALL = 64_000_000  # bytes of weights that are quicker run than run without
LARGE = 4_000_000_000  # bytes from which a pass would read too much
KEPT = 64  # structures whose count is kept

Uses = tuple[tuple[str, int], ...]  # names of modules, and how often each is run

_kept: dict[tuple[type, str], Uses] = {}  # by class and configuration


def reused_modules(
    model: nn.Module, inputs: Mapping[str, torch.Tensor] | tuple[torch.Tensor, ...]
) -> list[tuple[str, int]]:
    """Count the modules that one forward pass runs more than once.

    Args:
        inputs: What its forward method takes, by name or in order.

    Returns:
        (first name of the module, uses), only modules that hold parameters, and of nested ones
        only the outermost.
    """
    uses: dict[str, int] = {}
    handles = []
    for name, module in model.named_modules():
        if name and any(True for _ in module.parameters()):

            def count(*_: object, name: str = name) -> None:
                uses[name] = uses.get(name, 0) + 1

            handles.append(module.register_forward_pre_hook(count))
    try:
        with torch.inference_mode():
            if isinstance(inputs, Mapping):
                model(**inputs)
            else:
                model(*inputs)
    finally:
        for handle in handles:
            handle.remove()
    repeated = {name: times for name, times in uses.items() if times > 1}
    return [
        (name, times)
        for name, times in repeated.items()
        if not any(name.startswith(f"{outer}.") for outer in repeated if outer != name)
    ]


def count_reuse(
    model: PreTrainedModel, *, loaded: Callable[[], PreTrainedModel] | None = None
) -> tuple[Uses, tuple[str, ...]]:
    """Run a few tokens through the model's structure, and count the modules run more than once.

    A large model's pass runs on the meta device, without weights, so that its file is not read for
    it; a small one's is quicker as it is, and some cannot run without numbers. A model that cannot
    run is said to be uncounted.

    Args:
        loaded: Gives the same model with its numbers, where it is on the meta device itself.

    Returns:
        (name, uses) of the modules, and warnings.
    """
    nbytes = sum(parameter.nbytes for parameter in model.parameters())
    on_meta = (lambda: model) if loaded else (lambda: meta_model(type(model), model.config))
    ways: list[Callable[[], Uses]] = []
    if loaded or nbytes > SMALL:
        ways.append(lambda: _count_on_meta(model, on_meta))
    if nbytes <= LARGE:
        ways.append(lambda: _count(loaded() if loaded else model))
    reason = "is too large to run just for this"
    for way in ways:
        try:
            return way(), ()
        except Exception:  # numbers may decide what is run, and meta tensors have none
            reason = "did not run on a short text"
    return (), (f"Reused modules were not counted: the model {reason}.",)


def _count_on_meta(model: PreTrainedModel, on_meta: Callable[[], PreTrainedModel]) -> Uses:
    """Count without numbers: once for a class and a configuration, which alone decide what is run."""
    structure = (type(model), model.config.to_json_string(use_diff=False))
    if structure not in _kept:
        counted = _count(on_meta())
        if len(_kept) >= KEPT:
            _kept.clear()
        _kept[structure] = counted
    return _kept[structure]


def _count(model: PreTrainedModel) -> Uses:
    return tuple(reused_modules(model, example_inputs(model)))


def example_inputs(model: PreTrainedModel) -> dict[str, torch.Tensor]:
    """The first few token ids, (1, positions), for the encoder and where there is one the decoder.

    Of one choice, (1, 1, positions), where the model compares choices; on the device of the
    model's input embedding.
    """
    embedding = input_embedding(model)
    ids = torch.arange(EXAMPLE_IDS, device=embedding.device).remainder(embedding.shape[0])[None]
    if type(model).__name__.endswith("ForMultipleChoice"):
        ids = ids[None]  # (1, choices, positions)
    both = {"input_ids": ids, "decoder_input_ids": ids}
    return both if model.config.is_encoder_decoder else {"input_ids": ids}
