"""Do to a model what people do to models, and see to it that no new number is random."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from transformers import PreTrainedModel

from inspector.models.naming import input_embedding

NEW_ROWS = 8  # that the vocabulary grows by

# A model, and name -> the name whose tensor it is or could be; the model is changed in place.
Apply = Callable[[PreTrainedModel, Mapping[str, str]], None]


@dataclass(frozen=True, slots=True)
class ChangeRecipe:
    """One way to make a change."""

    title: str
    code: str  # as one would write it
    apply: Apply
    format: str = "safetensors"  # it is saved as
    round_trip: bool = False  # True: what matters is the model that is loaded again
    own_dtype: bool = False  # True: it is trained in the dtype that the change gave it
    needs_output: bool = False  # True: only for models with an output layer


def _keep(model: PreTrainedModel, edges: Mapping[str, str]) -> None:
    """Change nothing."""


def _untie(model: PreTrainedModel, edges: Mapping[str, str]) -> None:
    model.config.tie_word_embeddings = False
    _clone_each(model, output_names(model, edges))


def _tie(model: PreTrainedModel, edges: Mapping[str, str]) -> None:
    model.config.tie_word_embeddings = True
    model.tie_weights()


def _clone(model: PreTrainedModel, edges: Mapping[str, str]) -> None:
    _clone_each(model, edges)


def _resize(model: PreTrainedModel, edges: Mapping[str, str]) -> None:
    rows = len(input_embedding(model))
    model.resize_token_embeddings(rows + NEW_ROWS, mean_resizing=False)
    _fill_new_rows(model, rows)


def _replace_input(model: PreTrainedModel, edges: Mapping[str, str]) -> None:
    """Grow the look-up alone, as hand-written code does."""
    old: Any = model.get_input_embeddings()
    rows, columns = old.weight.shape
    like: Any = {"dtype": old.weight.dtype, "device": old.weight.device}
    grown = nn.Embedding(rows + NEW_ROWS, columns, padding_idx=old.padding_idx, **like)
    with torch.no_grad():
        grown.weight[:rows] = old.weight
    model.set_input_embeddings(grown)
    _fill_new_rows(model, rows)


def _to_float16(model: PreTrainedModel, edges: Mapping[str, str]) -> None:
    model.half()


def _to_bfloat16(model: PreTrainedModel, edges: Mapping[str, str]) -> None:
    nn.Module.to(model, torch.bfloat16)


def _cast_output(model: PreTrainedModel, edges: Mapping[str, str]) -> None:
    output: Any = model.get_output_embeddings()
    half = torch.bfloat16 if output.weight.dtype == torch.float16 else torch.float16
    output.weight = nn.Parameter(output.weight.detach().to(half))


UNCHANGED = ChangeRecipe("As it is", "model", _keep)
TIE = ChangeRecipe("Tie the output layer", "model.config.tie_word_embeddings = True; model.tie_weights()", _tie)
RECIPES: dict[str, tuple[ChangeRecipe, ...]] = {
    "untie": (
        ChangeRecipe(
            "Give the output layer its own copy",
            "model.config.tie_word_embeddings = False; output.weight = Parameter(weight.clone())",
            _untie,
        ),
    ),
    "clone": (
        ChangeRecipe(
            "Clone every tied tensor, config unchanged", "output.weight = Parameter(embedding.weight.clone())", _clone
        ),
    ),
    "resize": (
        ChangeRecipe("Resize the model", f"model.resize_token_embeddings(vocab + {NEW_ROWS})", _resize),
        ChangeRecipe(
            "Replace only the input embedding",
            f"model.set_input_embeddings(Embedding(vocab + {NEW_ROWS}, d_model))",
            _replace_input,
        ),
    ),
    "half": (
        ChangeRecipe("Cast the model to float16", "model.half()", _to_float16, own_dtype=True),
        ChangeRecipe("Cast the model to bfloat16", "model.to(torch.bfloat16)", _to_bfloat16, own_dtype=True),
        ChangeRecipe(
            "Cast only the output matrix",
            "output.weight = Parameter(output.weight.half())",
            _cast_output,
            own_dtype=True,
            needs_output=True,
        ),
    ),
    "reload": (
        ChangeRecipe(
            "Save as safetensors, load again",
            "model.save_pretrained(folder); Model.from_pretrained(folder)",
            _keep,
            round_trip=True,
        ),
        ChangeRecipe(
            "Save as .bin, load again",
            'torch.save(model.state_dict(), "pytorch_model.bin"); Model.from_pretrained(folder)',
            _keep,
            format="pytorch",
            round_trip=True,
        ),
    ),
}


def output_names(model: PreTrainedModel, edges: Iterable[str]) -> list[str]:
    """Those of the names that are parameters of the output layer."""
    output = model.get_output_embeddings()
    if output is None:
        return []
    modules = model.named_modules(remove_duplicate=False)
    prefixes = [f"{name}." for name, module in modules if module is output]
    return [name for name in edges if any(name.startswith(prefix) for prefix in prefixes)]


def _clone_each(model: PreTrainedModel, names: Iterable[str]) -> None:
    for name in names:
        module_name, _, attribute = name.rpartition(".")
        module = model.get_submodule(module_name)
        copied = getattr(module, attribute).detach().clone()
        setattr(module, attribute, nn.Parameter(copied))


def _fill_new_rows(model: PreTrainedModel, rows: int) -> None:
    """Set every new row to the mean of the old ones: a library would draw them at random."""
    grown = {
        id(tensor): tensor
        for module in (model.get_input_embeddings(), model.get_output_embeddings())
        if module is not None
        for tensor in module.parameters(recurse=False)
    }
    with torch.no_grad():
        for tensor in grown.values():
            if tensor.shape[0] > rows:
                tensor[rows:] = tensor[:rows].float().mean(dim=0).to(tensor.dtype)
