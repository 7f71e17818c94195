"""Merges that PEFT itself made, and what went wrong with others: what the numbers prove of each."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import peft
import pytest
import torch
from bitsandbytes.functional import dequantize_4bit, quantize_4bit
from safetensors.torch import load_file, save_file

from inspector.analyses.merge_proof import words
from inspector.analyses.merge_proof.result import MergeProof
from inspector.catalog import answer
from inspector.errors import InspectorError
from tests.adapters import KINDS, LORA, TARGETS, make
from tests.conftest import silent

DTYPES = (torch.float32, torch.bfloat16, torch.float16)
WIDE: dict[str, Any] = {"hidden_size": 64, "intermediate_size": 128, "head_dim": 32}  # NF4 has blocks of 64


def merge(base: Any, adapter: Path, *, autocast: bool = True, safe: bool = False) -> Any:
    adapted: Any = peft.PeftModel.from_pretrained(copy.deepcopy(base), str(adapter), autocast_adapter_dtype=autocast)
    return adapted.merge_and_unload(safe_merge=safe)


@pytest.fixture
def proof(open_path, settings) -> Callable[..., MergeProof]:
    def ask(base: Path, adapter: Path, merged: Path, **parameters: Any) -> MergeProof:
        others = {"adapter": adapter, "merged": merged}
        named = {name: open_path(path).manifest.fingerprint for name, path in others.items()}
        return answer("verify-merge", open_path(base), progress=silent, **named, **parameters)

    return ask


def verdicts(found: MergeProof, *, targeted: bool = True) -> set[str]:
    return set(found.tensors[found.tensors["targeted"] == targeted]["verdict"])


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_what_peft_merged_replays(proof, tmp_path, kind, dtype):
    base, adapter, model = make(tmp_path, KINDS[kind](), dtype)
    for safe in (False, True):
        merge(model, adapter, safe=safe).save_pretrained(tmp_path / f"merged {safe}")
        found = proof(base, adapter, tmp_path / f"merged {safe}", rows="all")
        assert (found.verdict, found.dropped) == ("merged", ())
        assert verdicts(found) == {"merged"}
        assert verdicts(found, targeted=False) == {"unchanged"}
        if kind == "LoRA":
            assert found.procedure == ("P2" if safe and dtype != torch.float32 else "P1")
            assert found.coefficient == pytest.approx(1, abs=0.02)


@pytest.mark.parametrize("dtype", DTYPES[1:], ids=str)
def test_an_adapter_of_16_bits_is_told_from_one_of_32(proof, tmp_path, dtype):
    base, adapter, model = make(tmp_path, KINDS["LoRA"](), dtype)
    state = load_file(adapter / "adapter_model.safetensors")
    save_file({name: each.float() + 1e-4 for name, each in state.items()}, adapter / "adapter_model.safetensors")
    merge(model, adapter, autocast=False).save_pretrained(tmp_path / "merged")
    found = proof(base, adapter, tmp_path / "merged", rows="all")
    assert (found.verdict, found.procedure) == ("merged", "P3")


def test_a_sum_in_another_dtype_of_16_bits(proof, tmp_path):
    base, adapter, model = make(tmp_path, KINDS["LoRA"](), torch.bfloat16)
    merge(copy.deepcopy(model).to(torch.float16), adapter).to(torch.bfloat16).save_pretrained(tmp_path / "merged")
    found = proof(base, adapter, tmp_path / "merged", rows="all")
    assert (found.verdict, found.procedure) == ("merged", "P4")


def test_a_base_that_went_through_nf4(proof, tmp_path):
    """QLoRA's adapter, merged into what bitsandbytes makes of the base."""
    base, adapter, model = make(tmp_path, KINDS["LoRA"](), torch.bfloat16, **WIDE)
    coded = copy.deepcopy(model)
    for name, module in coded.named_modules():
        if name.endswith(("_proj",)):
            module.weight.data = dequantize_4bit(*quantize_4bit(module.weight.data, blocksize=64, quant_type="nf4"))
    merge(coded, adapter).save_pretrained(tmp_path / "merged")
    found = proof(base, adapter, tmp_path / "merged", rows="all")
    assert set(found.tensors[found.tensors["targeted"]]["procedure"]) == {"P5"}
    assert verdicts(found) == {"merged"}
    assert found.verdict == "other base"  # k_proj, which the adapter leaves alone, went through NF4 too


def test_conv1d_keeps_its_weights_the_other_way_round(proof, tmp_path):
    """Attention's c_proj is square: shapes do not tell, and the adapter's own settings may be wrong."""
    config = peft.LoraConfig(r=4, lora_alpha=8, target_modules=["c_attn", "c_proj"])
    base, adapter, model = make(tmp_path, config, torch.float32, "GPT2LMHeadModel")
    settings = json.loads((adapter / "adapter_config.json").read_text())
    (adapter / "adapter_config.json").write_text(json.dumps(settings | {"fan_in_fan_out": False}))
    merge(model, adapter).save_pretrained(tmp_path / "merged")
    found = proof(base, adapter, tmp_path / "merged")
    assert (found.verdict, found.coefficient) == ("merged", pytest.approx(1, abs=1e-3))


def change(adapter: Path, **settings: Any) -> Path:
    path = adapter / "adapter_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | settings))
    return adapter


def saved(folder: Path, state: dict[str, torch.Tensor], like: Path) -> Path:
    folder.mkdir()
    save_file(state, folder / "model.safetensors", metadata={"format": "pt"})
    (folder / "config.json").write_bytes((like / "config.json").read_bytes())
    return folder


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_what_went_wrong_is_named(proof, tmp_path, dtype):
    base, adapter, model = make(tmp_path, KINDS["LoRA"](), dtype)
    once = merge(model, adapter)
    once.save_pretrained(tmp_path / "once")
    assert proof(base, adapter, tmp_path / "once").verdict == "merged"
    found = proof(base, adapter, base)
    assert (found.verdict, found.coefficient, found.identical) == ("not merged", 0, True)
    merge(once, adapter).save_pretrained(tmp_path / "twice")
    found = proof(base, adapter, tmp_path / "twice")
    assert (found.verdict, found.procedure) == ("merged more than once", None)
    assert found.coefficient == pytest.approx(2, abs=0.02)
    state, whole = load_file(base / "model.safetensors"), load_file(tmp_path / "once" / "model.safetensors")
    skipped = {name: state[name] if ".layers.1." in name else each for name, each in whole.items()}
    found = proof(base, adapter, saved(tmp_path / "skipped", skipped, base))
    assert found.verdict == "partly merged"
    wrong = found.tensors[found.tensors["verdict"] == "not merged"]
    assert set(wrong["layer"]) == {"1"}
    assert len(wrong) == len(TARGETS)
    random = {name: each + 0.02 * torch.randn(each.shape).to(each.dtype) for name, each in whole.items()}
    assert proof(base, adapter, saved(tmp_path / "other", random, base)).verdict == "other base"
    found = proof(base, change(adapter, lora_alpha=16), tmp_path / "once")
    assert (found.verdict, found.coefficient) == ("other alpha", pytest.approx(0.5, abs=0.01))


def test_a_head_that_was_left_behind(proof, tmp_path):
    base, adapter, model = make(tmp_path, KINDS["a whole head"](), torch.bfloat16)
    merge(model, adapter).save_pretrained(tmp_path / "merged")
    state, whole = (load_file(folder / "model.safetensors") for folder in (base, tmp_path / "merged"))
    old = saved(tmp_path / "old", whole | {"lm_head.weight": state["lm_head.weight"]}, base)
    found = proof(base, adapter, old)
    assert found.verdict == "partly merged"
    (head,) = found.tensors[found.tensors["name"] == "lm_head.weight"].to_dict("records")
    assert (head["targeted"], head["verdict"]) == (True, "not merged")
    del whole["lm_head.weight"]
    found = proof(base, adapter, saved(tmp_path / "without", whole, base))
    assert (found.verdict, found.dropped) == ("partly merged", ("lm_head.weight",))


def test_a_stranger_among_the_other_tensors(proof, tmp_path):
    base, adapter, model = make(tmp_path, KINDS["LoRA"](), torch.float32)
    merged = merge(model, adapter)
    merged.model.norm.weight.data += 0.1
    merged.save_pretrained(tmp_path / "merged")
    found = proof(base, adapter, tmp_path / "merged")
    assert found.verdict == "other base"
    assert verdicts(found) == {"merged"}
    assert list(found.tensors[found.tensors["verdict"] == "changed"]["name"]) == ["model.norm.weight"]


def test_a_change_that_rounding_hides_proves_nothing(proof, tmp_path):
    base, adapter, model = make(tmp_path, KINDS["LoRA"](), torch.bfloat16)
    state = load_file(adapter / "adapter_model.safetensors")
    tiny = {name: each * (1e-9 if "lora_B" in name else 1) for name, each in state.items()}
    save_file(tiny, adapter / "adapter_model.safetensors", metadata={"format": "pt"})
    merge(model, adapter).save_pretrained(tmp_path / "merged")
    found = proof(base, adapter, tmp_path / "merged")
    assert found.verdict == "not checkable"
    assert "half a step" in found.tensors[found.tensors["targeted"]]["reason"].iloc[0]


def test_an_adapter_that_never_learned_is_not_called_merged(proof, tmp_path):
    base, adapter, model = make(tmp_path, KINDS["LoRA"](), torch.float32)
    state = load_file(adapter / "adapter_model.safetensors")
    dead = {name: each * (0 if "lora_B" in name else 1) for name, each in state.items()}
    save_file(dead, adapter / "adapter_model.safetensors", metadata={"format": "pt"})
    merge(model, adapter).save_pretrained(tmp_path / "merged")
    found = proof(base, adapter, tmp_path / "merged")
    assert (found.verdict, verdicts(found)) == ("not checkable", {"nothing to merge"})


def without(adapter: Path, *endings: str, **changed: torch.Tensor) -> None:
    path = adapter / "adapter_model.safetensors"
    state = {name: each for name, each in load_file(path).items() if not name.endswith(endings)}
    save_file(state | changed, path, metadata={"format": "pt"})


def test_an_adapter_with_a_part_that_is_not_replayed_proves_nothing(proof, tmp_path):
    base, adapter, model = make(tmp_path, KINDS["LoRA"](), torch.float32)
    merge(model, adapter).save_pretrained(tmp_path / "merged")
    assert proof(base, adapter, tmp_path / "merged").verdict == "merged"
    part = "base_model.model.model.embed_tokens.token_adapter.trainable_tokens_delta"
    without(adapter, **{part: torch.ones(2, 8)})
    found = proof(base, adapter, tmp_path / "merged")
    assert (found.verdict, found.procedure) == ("not checkable", None)
    assert any("cannot be replayed" in each for each in found.warnings)


BAD: dict[str, tuple[Callable[[Path], Any], str]] = {
    "unknown type": (lambda adapter: change(adapter, peft_type="NEWTUNE"), "type NEWTUNE"),
    "no alpha": (
        lambda adapter: (adapter / "adapter_config.json").write_text('{"peft_type": "LORA", "r": 4}'),
        "has no lora_alpha in adapter_config.json",
    ),
    "A without B": (lambda adapter: without(adapter, "lora_B.weight"), "without lora_B"),
    "no settings": (lambda adapter: (adapter / "adapter_config.json").unlink(), "has no adapter_config.json"),
    "a pattern": (lambda adapter: change(adapter, alpha_pattern={"(a|b)+": 2}), "which this tool does not read"),
}


@pytest.mark.parametrize("bad", BAD)
def test_what_cannot_be_an_adapter_is_refused_in_a_sentence(proof, tmp_path, bad):
    base, adapter, _ = make(tmp_path, KINDS["LoRA"](), torch.float32)
    spoil, said = BAD[bad]
    spoil(adapter)
    with pytest.raises(InspectorError, match=said) as refused:
        proof(base, adapter, base)
    assert str(refused.value).count("\n") == 0


def test_an_adapter_of_another_base_is_refused(proof, tmp_path, saved_models):
    _, adapter, _ = make(tmp_path, KINDS["LoRA"](), torch.float32)
    other = saved_models("LlamaForCausalLM", hidden_size=16, head_dim=8)
    with pytest.raises(InspectorError, match=r"does not fit .*down_proj is 32×48, and the weight there is 16×48"):
        proof(other, adapter, other)


def test_each_place_takes_what_belongs_there(proof, tmp_path):
    base, adapter, _ = make(tmp_path, KINDS["LoRA"](), torch.float32)
    with pytest.raises(InspectorError, match="base is a whole model, not an adapter"):
        proof(base, base, base)
    with pytest.raises(InspectorError, match=r"This is a LoRA adapter .* not a whole model"):
        proof(adapter, adapter, base)
    with pytest.raises(InspectorError, match=r"adapter cannot be the merged model\. This is a LoRA adapter"):
        proof(base, adapter, adapter)


def test_the_headline_names_a_sample(proof, tmp_path):
    base, adapter, model = make(tmp_path, KINDS["LoRA"](), torch.float32)
    merge(model, adapter).save_pretrained(tmp_path / "merged")
    for rows, said in (
        ("64", "bit by bit in 64 rows of each"),
        ("all", "bit by bit. The sum is rounded once (PEFT's default)."),
    ):
        found = proof(base, adapter, tmp_path / "merged", rows=rows)
        assert (found.verdict, found.rows) == ("merged", rows)
        assert said in words.headline(found)


def test_a_sample_says_less_than_all_rows(proof, tmp_path):
    base, adapter, model = make(tmp_path, KINDS["LoRA"](), torch.float32, vocab_size=130)
    merged = merge(model, adapter)
    merged.lm_head.weight.data[1] += 0.1  # the second of 130 is not among 64 evenly spaced rows
    merged.save_pretrained(tmp_path / "merged")
    assert proof(base, adapter, tmp_path / "merged").verdict == "merged"
    assert proof(base, adapter, tmp_path / "merged", rows="all").verdict == "other base"


@pytest.mark.parametrize("target", ["lm_head", "embed_tokens"])
def test_a_second_copy_of_a_tie_is_judged_as_the_first(proof, tmp_path, target):
    config = peft.LoraConfig(**{**LORA, "target_modules": [target, "q_proj"]})
    base, adapter, model = make(tmp_path, config, torch.float32, tie_word_embeddings=True)
    merged = merge(model, adapter)
    for folder, whole in ((base, model), (tmp_path / "merged", merged)):
        whole.save_pretrained(folder)
        state = load_file(folder / "model.safetensors")
        state["lm_head.weight"] = state["model.embed_tokens.weight"].clone()
        save_file(state, folder / "model.safetensors", metadata={"format": "pt"})
    found = proof(base, adapter, tmp_path / "merged", rows="all")
    assert (found.verdict, found.dropped, found.counts.get("changed", 0)) == ("merged", (), 0)
    judged = found.tensors.set_index("name")["verdict"]
    assert judged["lm_head.weight"] == judged["model.embed_tokens.weight"] == "merged"
    state["lm_head.weight"] += 1e-2
    save_file(state, tmp_path / "merged" / "model.safetensors", metadata={"format": "pt"})
    judged = proof(base, adapter, tmp_path / "merged", rows="all").tensors.set_index("name")["verdict"]
    first, second = ("lm_head", "model.embed_tokens") if target == "lm_head" else ("model.embed_tokens", "lm_head")
    assert "changed" in set(judged) or "other base" in set(judged)
    assert judged[f"{first}.weight"] != judged[f"{second}.weight"]
