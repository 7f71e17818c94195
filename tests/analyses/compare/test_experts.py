"""Experts that one checkpoint stores one by one and another fused are compared as the same tensors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from inspector.analyses.compare.compute import compare
from tests.conftest import silent
from tests.families import random_model, save_checkpoint

FAMILIES = ["MixtralForCausalLM", "Qwen2MoeForCausalLM", "Qwen3MoeForCausalLM", "DeepseekV3ForCausalLM"]
PLACES = ("experts.gate_up_proj", "experts.down_proj")


def save_fused(model: Any, folder: Path) -> Path:
    """Save a model with the experts as its class holds them."""
    save_checkpoint(model, folder)
    path = folder / "model.safetensors"
    state = {name: each for name, each in load_file(path).items() if ".experts." not in name}
    state |= {name: each.clone() for name, each in model.state_dict().items() if name.endswith(PLACES)}
    save_file(state, path, metadata={"format": "pt"})
    return folder


@pytest.mark.parametrize("architecture", FAMILIES)
@pytest.mark.parametrize("fused_first", [False, True])
def test_two_layouts_of_the_same_numbers_are_equal(tmp_path, open_path, architecture, fused_first):
    model = random_model(architecture)
    alone = open_path(save_checkpoint(model, tmp_path / "a"))
    fused = open_path(save_fused(model, tmp_path / "b"))
    one, other = (fused, alone) if fused_first else (alone, fused)
    result = compare(one, progress=silent, other=other.manifest.fingerprint)
    assert result.counts == {"equal": len(alone.tensors)}
    assert result.summary[0] == f"All {len(alone.tensors)} tensors have the same numbers in both."
    parts = result.tensors[result.tensors["matched"] == "part"]
    single = [each.name for each in alone.tensors if ".experts." in each.name]
    assert sorted(parts["name" if not fused_first else "other_name"]) == sorted(single)


def test_a_change_of_one_expert_is_measured_where_it_is(tmp_path, open_path):
    model = random_model("Qwen3MoeForCausalLM")
    alone = open_path(save_checkpoint(model, tmp_path / "a"))
    place = "model.layers.1.mlp.experts.gate_up_proj"
    with torch.no_grad():
        up = model.get_parameter(place)[2, 48:]
        before, change = up.clone(), torch.full_like(up, 0.5)
        up += change
    fused = open_path(save_fused(model, tmp_path / "b"))
    result = compare(alone, progress=silent, other=fused.manifest.fingerprint)
    assert result.counts["changed"] == 1
    (row,) = [dict(zip(result.tensors.columns, row, strict=True))
              for row in result.tensors[result.tensors["status"] == "changed"].itertuples(index=False)]  # fmt: skip
    assert (row["name"], row["other_name"]) == ("model.layers.1.mlp.experts.2.up_proj.weight", f"{place}[2, 48:96]")
    assert row["relative_change"] == pytest.approx((change.norm() / before.norm()).item())


@pytest.mark.parametrize("lost", ["3.down_proj", "1.down_proj", "0.up_proj"])
def test_experts_of_which_one_is_lost_have_no_partners(tmp_path, open_path, lost):
    """What no loader can put together is compared with nothing, and no expert with another one."""
    model = random_model("Qwen3MoeForCausalLM")
    folder = save_checkpoint(model, tmp_path / "a")
    state = load_file(folder / "model.safetensors")
    del state[f"model.layers.1.mlp.experts.{lost}.weight"]
    save_file(state, folder / "model.safetensors", metadata={"format": "pt"})
    result = compare(
        open_path(folder), progress=silent, other=open_path(save_fused(model, tmp_path / "b")).manifest.fingerprint
    )
    assert "changed" not in result.counts
    (whole,) = result.tensors.loc[result.tensors["status"] == "added", "name"]
    assert whole == f"model.layers.1.mlp.experts.{'down' if 'down' in lost else 'gate_up'}_proj"
