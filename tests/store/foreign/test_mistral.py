"""Mistral's own files: consolidated.safetensors and params.json, run as its library runs them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from torch.nn import functional
from transformers import MistralConfig, MistralForCausalLM

from inspector.analyses.overview.compute import overview
from inspector.analyses.sharing.compute import sharing
from tests.analyses.compare.compare_truth import ask
from tests.conftest import silent
from tests.families import VOCAB, save_checkpoint

PARAMS: dict[str, Any] = {
    "dim": 32,
    "n_layers": 2,
    "head_dim": 16,
    "hidden_dim": 48,
    "n_heads": 4,
    "n_kv_heads": 2,
    "norm_eps": 1e-5,
    "rope_theta": 5000.0,
    "vocab_size": VOCAB,
}
IDS = torch.arange(3, 17)[None]


def mistral_state(**changes: Any) -> dict[str, torch.Tensor]:
    """Random weights under the names that mistral-inference gives them."""
    sizes = PARAMS | changes
    draw = torch.Generator().manual_seed(0)
    heads, kv = (sizes[key] * sizes["head_dim"] for key in ("n_heads", "n_kv_heads"))
    width, inner = sizes["dim"], sizes["hidden_dim"]
    shapes = {"tok_embeddings": (VOCAB, width), "norm": (width,), "output": (VOCAB, width)}
    for layer in range(sizes["n_layers"]):
        for name, shape in {
            "attention.wq": (heads, width), "attention.wk": (kv, width), "attention.wv": (kv, width),
            "attention.wo": (width, heads), "feed_forward.w1": (inner, width), "feed_forward.w2": (width, inner),
            "feed_forward.w3": (inner, width), "attention_norm": (width,), "ffn_norm": (width,),
        }.items():  # fmt: skip
            shapes[f"layers.{layer}.{name}"] = shape
    return {
        f"{name}.weight": torch.randn(shape, generator=draw) * 0.2 + (len(shape) == 1) for name, shape in shapes.items()
    }


def run(w: dict[str, torch.Tensor], ids: torch.Tensor) -> torch.Tensor:
    """Logits, as transformer.py and rope.py of mistral-inference compute them: neighbors are turned as one."""
    length, size = ids.shape[1], PARAMS["head_dim"]
    angles = torch.outer(torch.arange(length), PARAMS["rope_theta"] ** (-torch.arange(0, size, 2) / size))
    turns = torch.polar(torch.ones_like(angles), angles)[:, None]

    def norm(x: torch.Tensor, name: str) -> torch.Tensor:
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + PARAMS["norm_eps"]) * w[f"{name}.weight"]

    def turned(x: torch.Tensor) -> torch.Tensor:
        pairs = torch.view_as_complex(x.reshape(*x.shape[:-1], -1, 2).contiguous())
        return torch.view_as_real(pairs * turns).flatten(-2)

    x = w["tok_embeddings.weight"][ids[0]]
    for layer in range(PARAMS["n_layers"]):
        part = f"layers.{layer}"
        inner = norm(x, f"{part}.attention_norm")
        q, k, v = ((inner @ w[f"{part}.attention.w{each}.weight"].T).view(length, -1, size) for each in "qkv")
        q, k = turned(q), turned(k)
        k, v = (each.repeat_interleave(q.shape[1] // each.shape[1], 1) for each in (k, v))
        q, k, v = (each.transpose(0, 1)[None] for each in (q, k, v))
        mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + mixed[0].transpose(0, 1).reshape(length, -1) @ w[f"{part}.attention.wo.weight"].T
        inner = norm(x, f"{part}.ffn_norm")
        gate, up = (inner @ w[f"{part}.feed_forward.w{each}.weight"].T for each in "13")
        x = x + (functional.silu(gate) * up) @ w[f"{part}.feed_forward.w2.weight"].T
    return norm(x, "norm") @ w["output.weight"].T


def consolidated(folder: Path, state: dict[str, torch.Tensor], **changes: Any) -> Path:
    folder.mkdir()
    save_file(state, folder / "consolidated.safetensors")
    (folder / "params.json").write_text(json.dumps(PARAMS | changes))
    return folder


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_logits_are_those_of_mistrals_own_code(tmp_path, open_path, dtype):
    state = {name: each.to(dtype) for name, each in mistral_state().items()}
    checkpoint = open_path(consolidated(tmp_path / "m", state))
    names = dict(checkpoint.manifest.translated.names)
    config = MistralConfig.from_dict(checkpoint.config_values)
    model = MistralForCausalLM(config).eval()
    read = {name: each.float() for name, each in checkpoint.read(list(names)).items()}
    assert model.load_state_dict(read, strict=True)
    with torch.no_grad():
        logits = model(IDS).logits[0]
    assert (logits - run({name: each.float() for name, each in state.items()}, IDS)).abs().max() < 2e-4
    assert names["model.layers.1.self_attn.k_proj.weight"] == "layers.1.attention.wk.weight"
    assert any("Mistral's own format" in each for each in checkpoint.manifest.warnings)


def test_it_is_the_checkpoint_that_its_conversion_is(tmp_path, open_path):
    """Every question gets the answer that the converted files get."""
    mine = open_path(consolidated(tmp_path / "m", mistral_state()))
    model = MistralForCausalLM(MistralConfig.from_dict(mine.config_values))
    model.load_state_dict(mine.read(list(mine.tensors.names)), strict=True)
    theirs = open_path(save_checkpoint(model, tmp_path / "t"))
    assert ask(mine, theirs).counts == {"equal": len(mine.tensors)}
    one, other = (overview(each, progress=silent) for each in (mine, theirs))
    assert (one.unique_parameters, one.heads, one.architecture) == (
        other.unique_parameters,
        other.heads,
        other.architecture,
    )
    groups = [[(each.names, each.verdict) for each in sharing(of, progress=silent).groups] for of in (mine, theirs)]
    assert groups[0] == groups[1]


def test_a_tied_file_has_no_output(tmp_path, open_path):
    state = mistral_state()
    del state["output.weight"]
    checkpoint = open_path(consolidated(tmp_path / "m", state, tied_embeddings=True))
    assert checkpoint.config_values["tie_word_embeddings"]
    assert checkpoint.heads["causal_lm"] == "present"


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"moe": {"num_experts": 8}}, "it sets 'moe', which may change what the model computes"),
        ({"n_heads": "4"}, "its 'n_heads' is not a size"),
        ({"n_layers": 60}, "params.json"),
        ({"rope_theta": "x"}, "its 'rope_theta' is not a positive number"),
        ({"rope_theta": 10**400}, "its 'rope_theta' is not a positive number"),
        ({"rope_theta": float("nan")}, "its 'rope_theta' is not a positive number"),
        ({"rope_theta": 0}, "its 'rope_theta' is not a positive number"),
        ({"norm_eps": -1e-5}, "its 'norm_eps' is not a positive number"),
        ({"sliding_window": [None, 4]}, "its 'sliding_window' is not a size"),
    ],
)
def test_settings_that_are_not_known_leave_tensors_alone(tmp_path, open_path, changes, why):
    checkpoint = open_path(consolidated(tmp_path / "m", mistral_state(), **changes))
    assert checkpoint.manifest.config is None
    assert any(why in each for each in checkpoint.manifest.warnings)
    assert "layers.0.attention.wq.weight" in checkpoint.tensors.numbers


def test_metas_own_folder_is_not_called_mistrals(tmp_path, open_path):
    """Llama 3's params.json has the names of Mistral's tensors beside it."""
    folder = tmp_path / "m"
    folder.mkdir()
    torch.save(mistral_state(), folder / "consolidated.00.pth")
    llama = {"dim": 32, "ffn_dim_multiplier": 1.3, "multiple_of": 16, "n_heads": 4, "n_kv_heads": 2, "n_layers": 2,
             "norm_eps": 1e-5, "rope_theta": 500000.0, "use_scaled_rope": True, "vocab_size": VOCAB}  # fmt: skip
    (folder / "params.json").write_text(json.dumps(llama))
    said = (
        "params.json and the names of the tensors are as Mistral's or Meta's library writes them, but no model is "
        "built from it: it sets 'ffn_dim_multiplier', which may change what the model computes."
    )
    assert said in open_path(folder).manifest.warnings


@pytest.mark.parametrize(
    ("window", "theta", "said"),
    [
        (None, 1_000_000, "it is read as 1,000,000, as Mistral's library does."),
        (4096, 10_000, "it is read as 10,000, as earlier versions of Mistral's library do with a sliding window "
                       "(later ones: 1,000,000)."),
    ],
)  # fmt: skip
def test_a_missing_rope_theta_is_mistrals_own(window, theta, said, tmp_path, open_path):
    checkpoint = open_path(consolidated(tmp_path / "m", mistral_state(), rope_theta=None, sliding_window=window))
    config = checkpoint.config_values
    assert (config["rope_parameters"]["rope_theta"], config["sliding_window"]) == (theta, window)
    assert any(each.endswith(said) for each in checkpoint.manifest.warnings)


@pytest.mark.parametrize("wrapper", ["module.{}", "_orig_mod.{}", "module._orig_mod.{}", "_checkpoint_wrapped_module"])
def test_rows_are_turned_under_a_wrapper_too(wrapper, tmp_path, open_path):
    state = mistral_state()
    inside = {name: name.replace(".attention.", f".{wrapper}.attention.") for name in state}
    names = {name: wrapper.format(name) for name in state} if "{}" in wrapper else inside
    plain = open_path(consolidated(tmp_path / "m", state))
    wrapped = open_path(consolidated(tmp_path / "w", {names[name]: each for name, each in state.items()}))
    ours = list(plain.tensors.names)
    assert sorted(wrapped.tensors.names) == sorted(ours)
    mine, theirs = plain.read(ours), wrapped.read(ours)
    assert all(torch.equal(mine[name], theirs[name]) for name in ours)


def test_a_config_beside_it_counts_instead(tmp_path, open_path):
    config = MistralConfig(
        hidden_size=32, intermediate_size=48, num_hidden_layers=1, num_attention_heads=4, vocab_size=9
    )
    model = MistralForCausalLM(config)
    folder = save_checkpoint(model, tmp_path / "m")
    before = open_path(folder).manifest.fingerprint
    (folder / "params.json").write_text(json.dumps(PARAMS))
    after = open_path(folder).manifest
    assert after.fingerprint == before
    assert not after.translated.names
