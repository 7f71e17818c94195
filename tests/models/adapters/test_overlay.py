"""A base with an adapter on it: the numbers of PEFT's own merge and model, wherever they are read."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import peft
import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import MistralConfig, MistralForCausalLM

import inspector
from inspector.catalog import answer
from inspector.errors import CheckpointError, NotInCheckpointError, RequestError
from inspector.models.adapters.overlay import adapted
from inspector.models.checkpoint import StagedCheckpoint
from inspector.models.loading import load
from tests.adapters import KINDS, LORA, make
from tests.conftest import silent
from tests.gguf_models import convert, small_model
from tests.store.foreign.test_mistral import consolidated, mistral_state

Open = Callable[[Path], StagedCheckpoint]
SMALL: dict[str, Any] = {"r": 4, "lora_alpha": 8}
TURNED: dict[str, Any] = {**SMALL, "fan_in_fan_out": True}
IA3 = peft.IA3Config
FAMILIES: dict[str, tuple[str, Callable[[], peft.PeftConfig]]] = {
    "GPT-2": ("GPT2LMHeadModel", lambda: peft.LoraConfig(**TURNED, target_modules=["c_attn", "c_proj", "c_fc"])),
    "GPT-2, DoRA": ("GPT2LMHeadModel", lambda: peft.LoraConfig(**TURNED, target_modules=["c_attn"], use_dora=True)),
    "GPT-2, tied": ("GPT2LMHeadModel", lambda: peft.LoraConfig(**TURNED, target_modules=["wte", "c_attn"])),
    "GPT-2, (IA)³": (
        "GPT2LMHeadModel",
        lambda: IA3(target_modules=["c_attn", "mlp.c_proj"], feedforward_modules=["mlp.c_proj"], fan_in_fan_out=True),
    ),
    "BERT": ("BertForMaskedLM", lambda: peft.LoraConfig(**SMALL, target_modules=["query", "dense"], bias="lora_only")),
    "BERT, biases": ("BertForMaskedLM", lambda: peft.LoraConfig(**SMALL, target_modules=["query"], lora_bias=True)),
    "BERT, DoRA of embeddings": (
        "BertForMaskedLM",
        lambda: peft.LoraConfig(**SMALL, target_modules=["word_embeddings", "query"], use_dora=True),
    ),
    "BERT, a classifier": (
        "BertForSequenceClassification",
        lambda: peft.LoraConfig(**SMALL, target_modules=["query", "value"], task_type="SEQ_CLS"),
    ),
    "T5": ("T5ForConditionalGeneration", lambda: peft.LoraConfig(**SMALL, target_modules=["q", "v", "wo"])),
    "T5, shared": ("T5ForConditionalGeneration", lambda: peft.LoraConfig(**SMALL, target_modules=["shared", "q"])),
}


def both(open_path: Open, base: Path, adapter: Path) -> StagedCheckpoint:
    return adapted(open_path(base), open_path(adapter))


def assert_as_merged(found: StagedCheckpoint, base: Path, adapter: Path, model: Any) -> None:
    """Every stored number is the one of PEFT's merge, but for the last bit of the dtype."""
    loaded = type(model).from_pretrained(base, dtype=model.dtype)
    state = peft.PeftModel.from_pretrained(loaded, str(adapter)).merge_and_unload().state_dict()
    read = found.read(found.tensors.names)
    assert read
    for name, tensor in read.items():
        step = 2 * torch.finfo(tensor.dtype).eps * float(state[name].abs().max())
        torch.testing.assert_close(tensor, state[name], rtol=0, atol=step, msg=name)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("kind", KINDS)
def test_every_number_is_that_of_a_merge(open_path: Open, tmp_path: Path, kind: str, dtype: torch.dtype) -> None:
    base, adapter, model = make(tmp_path, KINDS[kind](), dtype)
    assert_as_merged(both(open_path, base, adapter), base, adapter, model)


@pytest.mark.parametrize("case", FAMILIES)
def test_of_every_family(open_path: Open, tmp_path: Path, case: str) -> None:
    architecture, config = FAMILIES[case]
    base, adapter, model = make(tmp_path, config(), torch.float32, architecture)
    assert_as_merged(both(open_path, base, adapter), base, adapter, model)


@pytest.mark.parametrize("stored", ["equal", "different", "shared"])
@pytest.mark.parametrize("target", ["lm_head", "embed_tokens"])
def test_a_tie_that_the_base_stores_twice(open_path: Open, tmp_path: Path, target: str, stored: str) -> None:
    config = peft.LoraConfig(**SMALL, target_modules=[target, "q_proj"])
    base, adapter, model = make(tmp_path, config, torch.float32, tie_word_embeddings=True)
    weights = load_file(base / "model.safetensors")
    head = weights["model.embed_tokens.weight"]
    weights["lm_head.weight"] = {"equal": head.clone(), "different": head + 1, "shared": head}[stored]
    (base / "model.safetensors").unlink()
    if stored == "shared":
        torch.save(weights, base / "pytorch_model.bin")
    else:
        save_file(weights, base / "model.safetensors", metadata={"format": "pt"})
    found = both(open_path, base, adapter)
    assert "lm_head.weight" in {*found.tensors.names, *found.manifest.aliases}
    assert_as_merged(found, base, adapter, model)


def test_predictions_are_those_of_the_model_with_its_adapter(open_path: Open, tmp_path: Path) -> None:
    base, adapter, model = make(tmp_path, KINDS["LoRA"](), torch.float32)
    found = both(open_path, base, adapter)
    wrapped = peft.PeftModel.from_pretrained(type(model).from_pretrained(base), str(adapter)).eval()
    merged = type(model)(model.config).eval()
    merged.load_state_dict(found.read(found.tensors.names))
    ids = torch.arange(10)[None]
    with torch.no_grad():
        expected, plain = wrapped(ids).logits, type(model).from_pretrained(base).eval()(ids).logits
        torch.testing.assert_close(merged(ids).logits, expected, rtol=1e-4, atol=1e-4)
    assert (expected - plain).abs().max() > 1e-2


def test_any_span_of_a_file_is_that_of_the_whole(open_path: Open, tmp_path: Path) -> None:
    base, adapter, _ = make(tmp_path, KINDS["LoRA"](), torch.bfloat16)
    found = both(open_path, base, adapter)
    (name,) = {tensor.file for tensor in found.tensors}
    size = (base / name).stat().st_size
    data, whole = found.manifest.bytes_of(name), np.zeros(size, np.uint8)
    data.into(0, whole.data)
    assert np.count_nonzero(whole != np.fromfile(base / name, np.uint8)) > 1000
    np.testing.assert_array_equal(data.map(0, size), whole)
    random = np.random.default_rng(0)
    for _ in range(300):
        begin, end = sorted(random.integers(0, size, 2))
        part = np.zeros(end - begin, np.uint8)
        data.into(int(begin), part.data)
        np.testing.assert_array_equal(part, whole[begin:end])
        if end > begin:
            np.testing.assert_array_equal(data.map(int(begin), int(end)), whole[begin:end])
    assert (base / name).read_bytes() != whole.tobytes()  # nothing was written


def test_its_fingerprint_is_of_both(open_path: Open, tmp_path: Path) -> None:
    base, adapter, _ = make(tmp_path / "one", KINDS["LoRA"](), torch.float32)
    _, other, _ = make(tmp_path / "two", KINDS["rsLoRA"](), torch.float32)
    found = [both(open_path, base, each).manifest for each in (adapter, other, adapter)]
    assert len({each.fingerprint for each in found} | {open_path(base).manifest.fingerprint}) == 3
    assert found[0].fingerprint == found[2].fingerprint
    assert found[0].name == "base + adapter"


def test_every_question_is_about_both(tmp_path: Path) -> None:
    base, adapter, model = make(tmp_path, KINDS["LoRA"](), torch.float32)
    loaded = peft.PeftModel.from_pretrained(type(model).from_pretrained(base), str(adapter))
    loaded.merge_and_unload().save_pretrained(tmp_path / "merged")
    found, merged = inspector.open(base, adapter=adapter), inspector.open(tmp_path / "merged")
    assert found.ask("compare", other=merged).result.tensors["relative_change"].max() < 1e-6
    changed = found.ask("compare", other=base).result.tensors.set_index("name")["status"]
    assert {name for name, status in changed.items() if status == "changed"} == {
        f"model.layers.{layer}.{each}.weight"
        for layer in (0, 1)
        for each in ("self_attn.q_proj", "self_attn.v_proj", "mlp.down_proj")
    }
    checks = [
        [(check.name, check.status) for check in each.ask("check", values="all").result.checks]
        for each in (found, merged)
    ]
    assert checks[0] == checks[1]
    assert found.overview().name == "base + adapter"
    with pytest.raises(RequestError, match=r"^base \+ adapter is a checkpoint with an adapter on it"):
        merged.ask("compare", other=found)


def refusal(open_path: Open, base: Path, adapter: Path) -> str:
    with pytest.raises(NotInCheckpointError) as caught:
        both(open_path, base, adapter)
    return str(caught.value)


def test_what_is_no_plain_change_is_refused_by_name(open_path: Open, tmp_path: Path) -> None:
    head = peft.LoraConfig(**TURNED, target_modules=["c_attn"], modules_to_save=["lm_head"])
    base, adapter, _ = make(tmp_path / "tied", head, torch.float32, "GPT2LMHeadModel")
    assert refusal(open_path, base, adapter) == (
        "adapter brings lm_head.weight whole, which base ties to transformer.wte.weight: with it, the two are no "
        "longer one. Merge it, and open the result."
    )
    llama, lora, _ = make(tmp_path / "llama", KINDS["LoRA"](), torch.float32)
    assert refusal(open_path, base, lora).startswith("adapter changes model.layers.0.")
    assert "is a whole model, not an adapter" in refusal(open_path, llama, base)
    assert "not a whole model" in refusal(open_path, lora, lora)
    _, vera, _ = make(tmp_path / "vera", peft.VeraConfig(target_modules=["q_proj"]), torch.float32)
    assert "of type VERA, which this tool cannot merge" in refusal(open_path, llama, vera)


@pytest.mark.parametrize(
    ("architecture", "targets", "said"),
    [
        ("llama", ["q_proj"], "base stores model.layers.0.self_attn.q_proj.weight with its rows in another order than"),
        ("gemma", ["input_layernorm"], "base stores model.layers.0.input_layernorm.weight with 1 added to each number"),
    ],
    ids=["rows", "norms"],
)
def test_numbers_that_a_gguf_file_has_otherwise_are_refused(
    open_path: Open, tmp_path: Path, architecture: str, targets: list[str], said: str
) -> None:
    model = small_model(architecture)
    (tmp_path / "base").mkdir()
    convert(model, tmp_path / "base" / "model.gguf", architecture)
    norms = "norm" in targets[0]
    config = peft.LNTuningConfig(target_modules=targets) if norms else peft.LoraConfig(**SMALL, target_modules=targets)
    peft.get_peft_model(model, config).save_pretrained(str(tmp_path / "adapter"))
    found = refusal(open_path, tmp_path / "base", tmp_path / "adapter")
    assert found.startswith(said)
    assert found.endswith("save base with transformers, and give that.")


def test_what_a_gguf_file_has_as_the_model_takes_an_adapter(open_path: Open, tmp_path: Path) -> None:
    model = small_model("llama")
    (tmp_path / "base").mkdir()
    convert(model, tmp_path / "base" / "model.gguf", "llama")
    config = peft.LoraConfig(**SMALL, target_modules=["v_proj"], init_lora_weights=False)
    changed: Any = peft.get_peft_model(model, config)
    changed.save_pretrained(str(tmp_path / "adapter"))
    state = changed.merge_and_unload().state_dict()
    found = both(open_path, tmp_path / "base", tmp_path / "adapter")
    for name, tensor in found.read(found.tensors.names).items():
        torch.testing.assert_close(tensor, state[name], rtol=0, atol=1e-5, msg=name)


def test_mistrals_order_of_rows_is_refused(open_path: Open, tmp_path: Path) -> None:
    base = consolidated(tmp_path / "base", mistral_state())
    model = MistralForCausalLM(MistralConfig.from_dict(dict(open_path(base).config_values)))
    lora = peft.LoraConfig(**SMALL, target_modules=["k_proj"])
    peft.get_peft_model(model, lora).save_pretrained(str(tmp_path / "adapter"))
    assert "k_proj.weight with its rows in another order" in refusal(open_path, base, tmp_path / "adapter")


def test_a_second_adapter_is_refused(open_path: Open, tmp_path: Path) -> None:
    base, adapter, _ = make(tmp_path, KINDS["LoRA"](), torch.float32)
    with pytest.raises(NotInCheckpointError, match=r"^base \+ adapter has an adapter already: merge that one"):
        adapted(both(open_path, base, adapter), open_path(adapter))
    with pytest.raises(NotInCheckpointError, match="has an adapter already"):
        inspector.open(base, adapter=adapter).with_adapter(inspector.open(adapter))


def test_another_vocabulary_is_refused(open_path: Open, tmp_path: Path) -> None:
    whole = peft.LoraConfig(**LORA, modules_to_save=["embed_tokens"])
    _, adapter, _ = make(tmp_path / "one", whole, torch.float32, vocab_size=70)
    base, _, _ = make(tmp_path / "two", KINDS["LoRA"](), torch.float32)
    said = refusal(open_path, base, adapter)
    assert said.startswith("adapter brings model.embed_tokens.weight in the shape 70 × ")
    assert said.endswith("its vocabulary was resized. Merge it, and open the result.")


@pytest.mark.parametrize("how", ["pissa", "lora_ga"])
def test_an_adapter_of_a_residual_model_warns(open_path: Open, tmp_path: Path, how: str) -> None:
    base, adapter, _ = make(tmp_path, KINDS["LoRA"](), torch.float32)
    path = adapter / "adapter_config.json"
    path.write_text(json.dumps(json.loads(path.read_text("utf-8")) | {"init_lora_weights": how}), "utf-8")
    (warning,) = (each for each in both(open_path, base, adapter).manifest.warnings if how in each)
    assert "belongs to the residual model" in warning
    assert warning in answer("overview", both(open_path, base, adapter), progress=silent).warnings


def test_an_activated_lora_is_never_merged(open_path: Open, tmp_path: Path) -> None:
    config = peft.LoraConfig(**LORA, task_type="CAUSAL_LM", alora_invocation_tokens=[200_000, 7])
    base, adapter, model = make(tmp_path, config, torch.float32)
    loaded: Any = peft.PeftModel.from_pretrained(model, str(adapter))
    with pytest.raises(NotImplementedError, match="does not support merging"):
        loaded.merge_and_unload()
    said = (
        "adapter is an activated LoRA (aLoRA): it changes only what follows its invocation tokens, so no merge does "
        "what it does, and PEFT refuses to make one."
    )
    assert refusal(open_path, base, adapter) == f"{said} Open base alone."
    opened = open_path(adapter)
    assert opened.manifest.adapter.endswith("not a whole model: open its base model.")
    assert said in answer("adapter", opened, progress=silent).warnings
    fingerprint = opened.manifest.fingerprint
    merged = open_path(base)
    others = {"adapter": fingerprint, "merged": merged.manifest.fingerprint}
    assert said in answer("verify-merge", merged, progress=silent, **others).warnings


def test_a_checkpoint_of_another_process_takes_no_adapter(tmp_path: Path) -> None:
    _, adapter, model = make(tmp_path, KINDS["LoRA"](), torch.float32)
    with pytest.raises(RequestError, match="was not opened in this process"):
        inspector.wrap(model).with_adapter(inspector.open(adapter))


def test_weights_that_it_changes_count_as_memory(open_path: Open, tmp_path: Path) -> None:
    base, adapter, _ = make(tmp_path, KINDS["LoRA"](), torch.float32)
    found = both(open_path, base, adapter)
    changed = [each for each in found.tensors if each.name.split(".")[-2] in LORA["target_modules"]]
    nbytes = sum(each.nbytes for each in changed)
    assert found.manifest.summed == {each.name for each in changed}
    fits, short = (
        StagedCheckpoint(found.manifest, settings=replace(found.settings, model_nbytes=most))
        for most in (nbytes, nbytes - 1)
    )
    assert fits.state.keys() == {each.name for each in found.tensors}
    with pytest.raises(CheckpointError, match="weights that the adapter changes in base \\+ adapter take"):
        _ = short.state
    assert open_path(base).manifest.summed == frozenset()


def test_a_block_that_is_streamed_takes_memory_for_what_it_changes(open_path: Open, tmp_path: Path) -> None:
    base, adapter, _ = make(tmp_path, KINDS["LoRA"](), torch.float32)
    alone, found = open_path(base), both(open_path, base, adapter)
    few = replace(alone.settings, model_nbytes=1000)
    assert load(StagedCheckpoint(alone.manifest, settings=few), "causal_lm", device="stream").stream
    with pytest.raises(RequestError, match="of weights must be in memory at once"):
        load(StagedCheckpoint(found.manifest, settings=few), "causal_lm", device="stream")
