"""Names that wrappers of a model put something into: DataParallel, FSDP, torch.compile, DeepSpeed, Lightning."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from inspector.analyses.lens.compute import lens
from inspector.analyses.masked_lm.compute import predict
from inspector.errors import CheckpointError
from inspector.store.foreign.wrappers import describe_wrappers, unwrapped
from tests.conftest import silent
from tests.families import random_model, save_checkpoint
from tests.models import alike

PASSING = {"milliseconds", "memory_nbytes", "warnings"}


class LightningLike(nn.Module):
    """As people write theirs: the model is a part, beside nothing else that has numbers."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model


WRAPS: dict[str, Callable[[nn.Module], nn.Module]] = {
    "DataParallel": nn.DataParallel,
    "compile": lambda model: torch.compile(model, backend="eager"),  # type: ignore[arg-type]
    "a module's part": LightningLike,
    "compiled in DataParallel": lambda model: nn.DataParallel(torch.compile(model, backend="eager")),  # type: ignore[arg-type]
}


def lightning(state: dict[str, torch.Tensor]) -> dict[str, Any]:
    """What Lightning's trainer saves, as its documentation lists it."""
    moments = {"exp_avg": torch.zeros(3), "exp_avg_sq": torch.zeros(3), "step": torch.tensor(10.0)}
    return {
        "epoch": 3, "global_step": 10, "pytorch-lightning_version": "2.4.0", "state_dict": state,
        "loops": {"fit_loop": {"state_dict": {}, "epoch_progress": {"total": {"ready": 1}}}},
        "callbacks": {"ModelCheckpoint": {"best_model_score": torch.tensor(0.3), "best_model_path": "/x"}},
        "optimizer_states": [{"state": {0: moments}, "param_groups": [{"lr": 1e-3, "params": [0]}]}],
        "lr_schedulers": [], "hparams_name": "kwargs", "hyper_parameters": {"lr": 1e-3},
    }  # fmt: skip


def rewritten(folder: Path, name: str, contents: Any) -> Path:
    """A checkpoint with other weights in the place of its own."""
    (folder / "model.safetensors").unlink()
    torch.save(contents, folder / name)
    return folder


@pytest.mark.parametrize("wrap", WRAPS)
@pytest.mark.parametrize("architecture", ["BertForMaskedLM", "GPT2LMHeadModel", "LlamaForCausalLM"])
def test_a_wrapped_model_answers_as_the_model_does(tmp_path, open_path, architecture, wrap):
    model = random_model(architecture)
    plain = save_checkpoint(model, tmp_path / "plain")
    state = WRAPS[wrap](model).state_dict()
    assert not set(state) & set(model.state_dict())
    other = rewritten(save_checkpoint(model, tmp_path / "wrapped"), "pytorch_model.bin", state)

    ours, theirs = (open_path(folder) for folder in (other, plain))
    assert sum("saved from a wrapper" in each for each in ours.manifest.warnings) == 1
    assert set(theirs.manifest.tensors.names) <= set(ours.manifest.tensors.names) <= set(model.state_dict())
    options: dict[str, Any] = {"progress": silent, "text": "w1 w2 w3", "k": 3, "device": "cpu", "dtype": "float32"}
    alike.same(lens(ours, **options), lens(theirs, **options), leaving=PASSING, exact=True)


def test_lightnings_file_is_read(tmp_path, open_path):
    model = random_model("BertForMaskedLM")
    plain = save_checkpoint(model, tmp_path / "plain")
    saved = lightning(LightningLike(model).state_dict())
    other = rewritten(save_checkpoint(model, tmp_path / "run"), "epoch=3-step=10.ckpt", saved)

    options: dict[str, Any] = {"progress": silent, "text": "w1 [MASK] w3", "device": "cpu", "dtype": "float32"}
    ours, theirs = (predict(open_path(folder), **options) for folder in (other, plain))
    alike.same(ours, theirs, leaving=PASSING, exact=False)


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        ("llama", ["model.embed_tokens.weight", "model.layers.0.mlp.up_proj.weight", "model.norm.weight"]),
        ("bart", ["model.shared.weight", "model.encoder.embed_tokens.weight", "model.decoder.layernorm.bias"]),
        ("molmo2", ["model.transformer.wte.weight", "model.vision_backbone.image_vit.weight"]),
        ("bert", ["bert.embeddings.word_embeddings.weight", "module.weight"]),
        ("", ["module", "module.weight"]),
        ("", []),
    ],
)
def test_names_of_a_models_own_stay(kind, names):
    assert unwrapped(names, {"model_type": kind}) == {}


def test_what_was_left_out_is_said():
    found = unwrapped(
        ["module._orig_mod.net.a.weight", "module._orig_mod.net.layer._checkpoint_wrapped_module.b.weight"], None
    )
    assert list(found.values()) == ["a.weight", "layer.b.weight"]
    said = describe_wrappers(found)
    for part in ("'module.'", "'_orig_mod.'", "'net.'", "'_checkpoint_wrapped_module.'", "'a.weight'"):
        assert part in said
    assert describe_wrappers({}) == ""


def test_two_names_that_become_one_are_refused():
    with pytest.raises(CheckpointError, match=r"'a\._orig_mod\.weight' and 'a\.weight' are both 'a\.weight'"):
        unwrapped(["a._orig_mod.weight", "a.weight"], None)
