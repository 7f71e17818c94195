"""Whatever an adapter's files hold, it is measured and put on its base, or refused in one sentence."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from inspector.catalog import answer
from inspector.errors import InspectorError, NotInCheckpointError
from inspector.models.adapters.overlay import adapted
from inspector.models.checkpoint import StagedCheckpoint
from tests.adapters import KINDS, make
from tests.conftest import silent

Open = Callable[[Path], StagedCheckpoint]
WIDE, RANK = 32, 4
SHAPES = {
    "lora_A.weight": (RANK, WIDE),
    "lora_B.weight": (WIDE, RANK),
    "lora_embedding_A": (RANK, 60),
    "lora_embedding_B": (WIDE, RANK),
    "ia3_l": (WIDE, 1),
    **{f"hada_w{n}_a": (WIDE, RANK) for n in (1, 2)},
    **{f"hada_w{n}_b": (RANK, WIDE) for n in (1, 2)},
    "lokr_w1": (RANK, RANK),
    "lokr_w2": (8, 8),
    "lokr_w1_a": (RANK, 2),
    "lokr_w1_b": (2, RANK),
    "lokr_w2_a": (8, 2),
    "lokr_w2_b": (2, 8),
    **dict.fromkeys(("lora_B.bias", "lora_magnitude_vector"), (WIDE,)),
    **dict.fromkeys(("hada_t1", "lokr_t2", "vera_lambda_b", "base_layer.weight"), (WIDE, WIDE)),
}
GROUPS = [
    ["lora_A.weight", "lora_B.weight"],
    ["lora_embedding_A", "lora_embedding_B"],
    ["ia3_l"],
    ["hada_w1_a", "hada_w1_b", "hada_w2_a", "hada_w2_b"],
    ["lokr_w1", "lokr_w2"],
    ["lokr_w1_a", "lokr_w1_b", "lokr_w2"],
    ["lokr_w1", "lokr_w2_a", "lokr_w2_b"],
]
MODULES = ["model.layers.0.self_attn.q_proj", "model.layers.1.mlp.down_proj", "model.embed_tokens", "lm_head", "x"]
DTYPES = [torch.float32, torch.bfloat16, torch.int64, torch.bool, torch.float8_e4m3fn, torch.float64]
CASES = 250


def write(folder: Path, drawn: random.Random) -> None:
    """Write an adapter that is nearly one of PEFT's."""
    folder.mkdir()
    state = {}
    for module in drawn.sample(MODULES, drawn.randint(1, 3)):
        roles = drawn.choice(GROUPS) + drawn.sample(sorted(SHAPES), drawn.random() < 0.25)
        for role in roles:
            odd = tuple(drawn.choice((0, 1, 2, 4, WIDE, 60)) for _ in range(drawn.randint(0, 4)))
            shape = SHAPES[role] if drawn.random() < 0.8 else odd
            values = torch.randn(shape) * drawn.choice([0.0, 1.0, 1e-3, 1e30, float("nan")])
            kind = drawn.choice(DTYPES) if drawn.random() < 0.2 else torch.float32
            state[f"base_model.model.{module}.{role}"] = values.to(kind)
    save_file(state, folder / "adapter_model.safetensors")
    config = {
        "peft_type": drawn.choice(["LORA", "LORA", "IA3", "LOHA", "LOKR", "LN_TUNING", "VERA"]),
        "r": drawn.choice([0, RANK, 2.5, 99_999]),
        "lora_alpha": drawn.choice([0, 8, 1e4]),
        "alpha": drawn.choice([0, 8]),
        "rank_pattern": drawn.choice([{}, {"q_proj": 0}, {"a|b": 3}]),
    }
    (folder / "adapter_config.json").write_text(json.dumps(config), "utf-8")


def test_any_adapter_is_answered_or_refused(open_path: Open, tmp_path: Path) -> None:
    base = open_path(make(tmp_path, KINDS["LoRA"](), torch.float32)[0])
    drawn, refusals, answered = random.Random(11), list[str](), 0
    torch.manual_seed(0)
    for place in range(CASES):
        write(tmp_path / f"adapter-{place}", drawn)
        try:
            adapter = open_path(tmp_path / f"adapter-{place}")
            answer("adapter", adapter, base=base.manifest.fingerprint, progress=silent)
            both = adapted(base, adapter)
        except InspectorError as refusal:
            refusals.append(str(refusal))
            continue
        read = both.read(both.tensors.names)
        assert {name: each.shape for name, each in read.items()} == {each.name: each.shape for each in base.tensors}
        answered += 1
    assert not [each for each in refusals if "\n" in each or not each.endswith(".")]
    assert min(len(refusals), answered) > 5


def test_no_part_of_complex_numbers_is_left_out(open_path: Open, tmp_path: Path) -> None:
    base, adapter, _ = make(tmp_path, KINDS["LoRA"](), torch.float32)
    path = adapter / "adapter_model.safetensors"
    state = load_file(path)
    save_file({name: each * (1 + 1j) for name, each in state.items()}, path)
    with pytest.raises(NotInCheckpointError, match=r"holds complex numbers in .*lora_A\.weight, which no merge adds"):
        adapted(open_path(base), open_path(adapter))


def test_products_of_more_axes_are_refused(open_path: Open, tmp_path: Path) -> None:
    base = open_path(make(tmp_path, KINDS["LoKr"](), torch.float32)[0])
    folder = tmp_path / "turned"
    folder.mkdir()
    shapes = {"lokr_w1": (1, 48, 48), "lokr_w2_a": (8, 2), "lokr_w2_b": (2, 32, 1)}
    state = {f"base_model.model.model.embed_tokens.{role}": torch.ones(shape) for role, shape in shapes.items()}
    save_file(state, folder / "adapter_model.safetensors")
    (folder / "adapter_config.json").write_text(json.dumps({"peft_type": "LOKR", "r": 4, "alpha": 8}), "utf-8")
    with pytest.raises(NotInCheckpointError, match="whose shapes do not fit each other"):
        answer("adapter", open_path(folder), base=base.manifest.fingerprint, progress=silent)
