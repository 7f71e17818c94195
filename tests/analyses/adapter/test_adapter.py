"""What an adapter changes, compared with the change that PEFT itself computes."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import peft
import pytest
import torch
from safetensors.torch import load_file, save_file

from inspector.analyses.adapter.figures import norm_map
from inspector.analyses.adapter.result import Adapter
from inspector.catalog import answer
from inspector.demo import ADAPTERS, DEMOS
from inspector.errors import InspectorError, NotInCheckpointError
from inspector.models.adapters import sizes
from inspector.report.making import make_report
from inspector.results.checkpoint import Opened
from inspector.view.view import Headline
from tests.adapters import KINDS, LORA, TARGETS, make
from tests.conftest import silent

FLOAT = torch.float32
MEASURED = sorted(KINDS.keys() - {"(IA)³"})
CONV1D = {"r": 4, "lora_alpha": 8, "target_modules": ["c_attn", "c_proj"]}


@pytest.fixture
def ask(open_path) -> Callable[..., Adapter]:
    def asked(adapter: Path, base: Path | None = None) -> Adapter:
        named = {"base": open_path(base).manifest.fingerprint} if base else {}
        return answer("adapter", open_path(adapter), progress=silent, **named)

    return asked


def deltas(base: Any, adapter: Path) -> dict[str, torch.Tensor]:
    """Module -> what PEFT adds to its weight, in float64; of DoRA, before magnitudes."""
    adapted: Any = peft.PeftModel.from_pretrained(base, str(adapter)).double()
    return {
        name.removeprefix("base_model.model."): module.get_delta_weight("default").detach()
        for name, module in adapted.named_modules()
        if hasattr(module, "get_delta_weight") and hasattr(module, "base_layer")
    }


def effective(matrix: torch.Tensor) -> float:
    values = torch.linalg.svdvals(matrix)
    shares = values[values > 1e-9 * values[0]] / values.sum()
    return float((-(shares * shares.log()).sum()).exp())


@pytest.mark.parametrize("kind", MEASURED)
def test_norms_and_ranks_are_those_of_pefts_own_product(ask, tmp_path, kind):
    _, adapter, model = make(tmp_path, KINDS[kind](), FLOAT)
    found, expected = ask(adapter), deltas(model, adapter)
    assert set(found.targets["module"]) == set(expected)
    for row in found.targets.to_dict("records"):
        delta = expected[row["module"]]
        assert row["norm"] == pytest.approx(float(delta.norm()), rel=1e-5)
        assert row["shape"] == " × ".join(map(str, delta.shape))
        assert row["finite"]
        assert not row["dead"]
        if kind != "LoHa":
            assert row["effective_rank"] == pytest.approx(effective(delta), rel=1e-3)
    assert found.parameters == sum(each.numel() for each in load_file(adapter / "adapter_model.safetensors").values())


def test_a_transposed_layer_has_the_same_norm(ask, tmp_path):
    _, adapter, model = make(tmp_path, peft.LoraConfig(**CONV1D), FLOAT, "GPT2LMHeadModel")
    found, expected = ask(adapter), deltas(model, adapter)
    assert len(found.targets)
    for row in found.targets.to_dict("records"):
        assert row["norm"] == pytest.approx(float(expected[row["module"]].norm()), rel=1e-5)


@pytest.mark.parametrize("kind", ["LoRA", "LoKr"])
def test_a_rank_beyond_what_is_decomposed_has_a_norm_alone(ask, tmp_path, monkeypatch, kind):
    _, adapter, model = make(tmp_path, KINDS[kind](), FLOAT)
    monkeypatch.setattr(sizes, "MOST_VALUES", 1)
    found, expected = ask(adapter), deltas(model, adapter)
    assert found.targets["effective_rank"].isna().all()
    for row in found.targets.to_dict("records"):
        assert row["norm"] == pytest.approx(float(expected[row["module"]].norm()), rel=1e-5)


def test_patterns_decide_rank_and_scale(ask, tmp_path):
    _, adapter, model = make(tmp_path, KINDS["patterns"](), FLOAT)
    layers = {
        name.removeprefix("base_model.model."): (module.r["default"], module.scaling["default"])
        for name, module in peft.PeftModel.from_pretrained(model, str(adapter)).named_modules()
        if hasattr(module, "lora_A")
    }
    rows = ask(adapter).targets.to_dict("records")
    assert {row["module"]: (row["rank"], row["scale"]) for row in rows} == layers


def rewrite(adapter: Path, change: Callable[[str, torch.Tensor], torch.Tensor]) -> None:
    file = adapter / "adapter_model.safetensors"
    save_file({name: change(name, each).contiguous() for name, each in load_file(file).items()}, file)


def test_what_changes_nothing_and_what_is_not_finite_is_named(ask, tmp_path):
    _, adapter, _ = make(tmp_path, KINDS["LoRA"](), FLOAT)

    def spoil(name: str, each: torch.Tensor) -> torch.Tensor:
        if "0.self_attn.q_proj.lora_B" in name:
            return torch.zeros_like(each)
        return each.fill_(math.nan) if "1.self_attn.v_proj.lora_A" in name else each

    rewrite(adapter, spoil)
    found = ask(adapter)
    rows = {row["module"]: row for row in found.targets.to_dict("records")}
    assert [name for name, row in rows.items() if row["dead"]] == ["model.layers.0.self_attn.q_proj"]
    assert [name for name, row in rows.items() if not row["finite"]] == ["model.layers.1.self_attn.v_proj"]
    (drawn,) = norm_map(found.targets, title="a", subtitle="b").to_dict()["data"]
    texts = [text for row in drawn["text"] for text in row]
    assert (texts.count("∅"), texts.count("!"), len(texts)) == (1, 1, 6)


@pytest.mark.parametrize("spread", [1.0, 0.01, 0.001])
def test_what_survives_is_what_pefts_merge_keeps(ask, tmp_path, spread):
    base, adapter, model = make(tmp_path, KINDS["LoRA"](), torch.bfloat16)
    rewrite(adapter, lambda name, each: each * spread if "lora_B" in name else each)
    found = ask(adapter, base).survival
    before = {name: each.double() for name, each in model.state_dict().items()}
    merged: Any = peft.PeftModel.from_pretrained(model, str(adapter)).merge_and_unload()
    kept = {name: each.double() - before[name] for name, each in merged.state_dict().items()}
    meant = {
        f"{name}.weight": each
        for name, each in deltas(make(tmp_path / "b", KINDS["LoRA"](), FLOAT)[2], adapter).items()
    }
    one, two = (torch.cat([each[name].flatten() for name in meant]) for each in (kept, meant))
    assert found is not None
    assert found.dtype == "bfloat16"
    assert found.effective_alpha == pytest.approx(float(one @ two / (two @ two)), abs=0.01)
    assert found.noise == pytest.approx(float((one - two).norm() / two.norm()), abs=0.01)
    assert found.share == pytest.approx(float((one != 0).double().mean()), abs=0.02)


@pytest.mark.parametrize(
    ("options", "tied", "says"),
    [
        ({"modules_to_save": ["lm_head"]}, True, "the two differ"),
        ({"target_modules": ["embed_tokens", "q_proj"]}, True, "both change"),
        ({"modules_to_save": ["lm_head"]}, False, ""),
        ({}, True, ""),
    ],
)
def test_what_a_merge_does_to_a_tie_is_what_peft_does(ask, tmp_path, options, tied, says):
    config = peft.LoraConfig(**{**LORA, **options})
    base, adapter, model = make(tmp_path, config, FLOAT, tie_word_embeddings=tied)
    found = ask(adapter, base)
    assert [warning for warning in found.warnings if says and says in warning] == list(found.warnings)
    assert bool(found.warnings) == bool(says)
    was = model.get_input_embeddings().weight.detach().clone()
    merged: Any = peft.PeftModel.from_pretrained(model, str(adapter)).merge_and_unload()
    one, two = merged.get_input_embeddings().weight, merged.get_output_embeddings().weight
    if says == "the two differ":
        assert not torch.equal(one, two)
    elif says:
        assert torch.equal(one, two)
        assert not torch.equal(one, was)
    alone = ask(adapter)
    assert bool(alone.warnings) == bool(options)
    assert alone.replaced == (("lm_head.weight",) if "modules_to_save" in options else alone.replaced)


def test_ia3_has_no_norm_without_its_base(ask, tmp_path):
    base, adapter, _ = make(tmp_path, KINDS["(IA)³"](), torch.bfloat16)
    found = ask(adapter)
    assert found.targets["norm"].isna().all()
    assert found.survival is None
    survived = ask(adapter, base).survival
    assert survived is not None
    assert 0.9 < survived.effective_alpha < 1.1


Spoil = Callable[[str, torch.Tensor], torch.Tensor]
SETTINGS: dict[str, tuple[dict[str, Any], str]] = {
    "no alpha": ({"lora_alpha": None}, "has no lora_alpha in adapter_config.json"),
    "no type": ({"peft_type": None}, "has no adapter_config.json with a type"),
    "unknown type": ({"peft_type": "NOISE"}, "an adapter of type NOISE"),
    "a pattern": ({"alpha_pattern": {"(a+)+$": 2}}, "gives a rank or a scale by the expression '(a+)+$'"),
}
TENSORS: dict[str, tuple[Spoil, str]] = {
    "rank 0": (lambda name, each: each[:0] if "lora_A" in name else each[:, :0], "rank 0"),
    "ranks apart": (
        lambda name, each: each[:2] if "q_proj.lora_A" in name else each,
        "do not fit each other (lora_A 2 × 32, lora_B 32 × 4)",
    ),
    "vectors": (lambda _, each: each.flatten(), "do not fit each other"),
}


def refusal(ask: Callable[..., Adapter], adapter: Path) -> str:
    with pytest.raises(NotInCheckpointError) as refused:
        ask(adapter)
    assert "\n" not in str(refused.value)
    return str(refused.value)


@pytest.mark.parametrize("fault", SETTINGS)
def test_settings_that_leave_the_change_open_are_refused(ask, tmp_path, fault):
    _, adapter, _ = make(tmp_path, KINDS["LoRA"](), FLOAT)
    changes, sentence = SETTINGS[fault]
    file = adapter / "adapter_config.json"
    kept = json.loads(file.read_text()) | changes
    file.write_text(json.dumps({name: value for name, value in kept.items() if value is not None}))
    assert sentence in refusal(ask, adapter)


@pytest.mark.parametrize("fault", TENSORS)
def test_shapes_that_no_product_has_are_refused(ask, tmp_path, fault):
    _, adapter, _ = make(tmp_path, KINDS["LoRA"](), FLOAT)
    spoil, sentence = TENSORS[fault]
    rewrite(adapter, spoil)
    assert sentence in refusal(ask, adapter)


def test_an_embedding_with_more_axes_is_refused(ask, tmp_path):
    _, adapter, _ = make(tmp_path, KINDS["embeddings"](), FLOAT)
    rewrite(adapter, lambda name, each: each[..., None] if "lora_embedding" in name else each)
    assert "do not fit each other (lora_embedding_A 4 × 60 × 1" in refusal(ask, adapter)


def test_magnitudes_of_another_size_are_refused(ask, tmp_path):
    base, adapter, _ = make(tmp_path, KINDS["DoRA"](), FLOAT)
    rewrite(adapter, lambda name, each: each[:3] if "magnitude" in name else each)
    with pytest.raises(NotInCheckpointError, match="does not fit"):
        ask(adapter, base)


@pytest.mark.parametrize(("lost", "left"), [("lora_B", "lora_A"), ("lora_A", "lora_B")])
def test_half_a_product_is_refused(ask, tmp_path, lost, left):
    _, adapter, _ = make(tmp_path, KINDS["LoRA"](), FLOAT)
    file = adapter / "adapter_model.safetensors"
    save_file({name: each for name, each in load_file(file).items() if f"0.self_attn.q_proj.{lost}" not in name}, file)
    assert f"holds {left} of model.layers.0.self_attn.q_proj without {lost}" in refusal(ask, adapter)


def test_a_model_is_no_adapter_and_an_adapter_no_base(ask, tmp_path):
    base, adapter, _ = make(tmp_path, KINDS["LoRA"](), FLOAT)
    with pytest.raises(NotInCheckpointError, match="is a whole model, not an adapter"):
        ask(base)
    with pytest.raises(NotInCheckpointError, match="not a whole model"):
        ask(adapter, adapter)
    other, _, _ = make(tmp_path / "other", KINDS["LoRA"](), FLOAT, hidden_size=64)
    with pytest.raises(NotInCheckpointError, match="does not fit"):
        ask(adapter, other)


def test_a_pickled_adapter_is_read_without_being_unpickled(ask, tmp_path):
    _, adapter, _ = make(tmp_path, KINDS["LoRA"](), FLOAT)
    expected = ask(adapter).targets["norm"].tolist()
    file = adapter / "adapter_model.safetensors"
    torch.save(load_file(file), adapter / "adapter_model.bin")
    file.unlink()
    assert ask(adapter).targets["norm"].tolist() == expected

    class Runs:
        def __reduce__(self) -> tuple[Any, ...]:
            return (tmp_path.joinpath("ran").touch, ())

    torch.save({"base_model.model.q.lora_A.weight": Runs()}, adapter / "adapter_model.bin")
    with pytest.raises(InspectorError):
        ask(adapter)
    assert not (tmp_path / "ran").exists()


def test_targets_are_listed_once(ask, tmp_path):
    _, adapter, _ = make(tmp_path, KINDS["LoRA"](), FLOAT)
    found = ask(adapter)
    assert len(found.targets) == 2 * len(TARGETS)
    assert (found.type, found.base, found.base_name, found.survival) == ("LORA", None, None, None)
    assert set(found.targets["layer"]) == {"0", "1"}


def test_a_report_of_an_adapter_says_what_it_changes(open_path, tmp_path):
    _, adapter, _ = make(tmp_path, KINDS["LoRA"](), FLOAT)
    checkpoint = open_path(adapter)
    opened = Opened(checkpoint.manifest.fingerprint, f"path:{adapter}", checkpoint.name, ())

    def asked(verb: str, _: Any, **parameters: Any) -> Any:
        return answer(verb, checkpoint, progress=silent, **parameters)

    (part,) = make_report(asked, opened, sections=("overview",)).parts
    assert [each.verb for each in part.requests] == ["overview", "adapter"]
    assert "norms" in [figure.name for figure in part.figures]
    assert any("changes 6 weights" in each.text for each in part.elements if isinstance(each, Headline))


def test_the_demo_names_its_base(ask):
    (name,) = ADAPTERS
    assert ask(ADAPTERS[name].folder).base in DEMOS
