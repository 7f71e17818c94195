"""What a loader makes of each tensor, compared with what transformers itself reports of the same files."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file

from inspector.analyses.checks import words_loading as words
from inspector.analyses.checks.compute import check
from inspector.analyses.checks.result import Check, Checks, LoadingRow, read_checks
from inspector.errors import CheckpointError
from inspector.models.checkpoint import StagedCheckpoint
from inspector.names import fits
from inspector.results.plain import to_json
from tests.conftest import silent
from tests.families import (
    ENCODER_DECODER,
    MODELS,
    RENAMED,
    UNLIKE,
    UNLISTED,
    UNLISTED_MASKED,
    WITHOUT_HEAD,
    random_model,
    save_checkpoint,
)
from tests.store.store_builders import Shards

SOUND = sorted(MODELS | WITHOUT_HEAD | ENCODER_DECODER | UNLISTED | UNLISTED_MASKED | RENAMED | UNLIKE)
THREE = ("BertForMaskedLM", "LlamaForCausalLM", "T5ForConditionalGeneration")
MIXTURES = ("MixtralForCausalLM", "Qwen3MoeForCausalLM", "DeepseekV3ForCausalLM")
GROUPED = ("LlamaForCausalLM", "Qwen3ForCausalLM", "GemmaForCausalLM")
NORM = {
    "BertForMaskedLM": "bert.encoder.layer.0.output.LayerNorm.weight",
    "LlamaForCausalLM": "model.layers.0.input_layernorm.weight",
    "T5ForConditionalGeneration": "encoder.block.0.layer.0.layer_norm.weight",
}
HURT = frozenset({"new", "dropped", "wrong shape", "doubled"})
State = dict[str, torch.Tensor]


@pytest.fixture
def checked(open_path: Callable[[Path], StagedCheckpoint]) -> Callable[[Path], Checks]:
    return lambda path: check(open_path(path), values="none", progress=silent)


def named(checks: Checks, name: str = words.TAB) -> Check:
    (found,) = (each for each in checks.checks if each.name == name)
    return found


def change(folder: Path, alter: Callable[[State], Any]) -> None:
    """Change the stored tensors, in place."""
    file = folder / "model.safetensors"
    state = {name: tensor.clone() for name, tensor in load_file(file).items()}
    alter(state)
    save_file(state, file, metadata={"format": "pt"})


def say(folder: Path, **settings: Any) -> None:
    """Change settings of config.json."""
    file = folder / "config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | settings))


def loaded(folder: Path, architecture: str) -> dict[str, set[str]]:
    """What transformers itself reports: which keys are missing, unexpected, of another shape."""
    model_class: Any = getattr(transformers, architecture)
    _, info = model_class.from_pretrained(folder, output_loading_info=True, ignore_mismatched_sizes=True)
    return info | {"mismatched_keys": {name for name, *_ in info["mismatched_keys"]}}


def hurt(checks: Checks) -> dict[str, set[str]]:
    """Outcome -> names, of single tensors that are not simply taken."""
    found: dict[str, set[str]] = {}
    for row in checks.loading:
        if row.outcome in HURT:
            found.setdefault(row.outcome, set()).add(row.file_name or row.class_name)
    return found


@pytest.mark.parametrize("architecture", SOUND)
def test_a_sound_checkpoint_of_any_family_is_loaded_whole_and_without_a_finding(checked, tmp_path, architecture):
    folder = save_checkpoint(random_model(architecture), tmp_path / "sound", tokenizer=False)
    checks = checked(folder)
    assert named(checks).status == "ok"
    assert hurt(checks) == {}
    assert sum(row.count for row in checks.loading) == len(load_file(folder / "model.safetensors"))
    assert not any(loaded(folder, architecture).values())
    assert read_checks(to_json(checks)).loading == checks.loading


@pytest.mark.parametrize("architecture", THREE)
def test_a_lost_tensor_is_new_in_the_class(checked, tmp_path, architecture):
    folder = save_checkpoint(random_model(architecture), tmp_path / "lost", tokenizer=False)
    change(folder, lambda state: state.pop(NORM[architecture]))
    assert (
        hurt(checked(folder)) == {"new": loaded(folder, architecture)["missing_keys"]} == {"new": {NORM[architecture]}}
    )


@pytest.mark.parametrize("architecture", THREE)
def test_a_tensor_that_the_class_has_no_place_for_is_dropped(checked, tmp_path, architecture):
    folder = save_checkpoint(random_model(architecture), tmp_path / "more", tokenizer=False)
    change(folder, lambda state: state.update({"adapter.gate.weight": torch.ones(4, 4)}))
    assert hurt(checked(folder)) == {"dropped": loaded(folder, architecture)["unexpected_keys"]}


@pytest.mark.parametrize("architecture", THREE)
def test_a_tensor_of_another_shape(checked, tmp_path, architecture):
    folder = save_checkpoint(random_model(architecture), tmp_path / "shape", tokenizer=False)
    change(folder, lambda state: state.update({NORM[architecture]: torch.ones(31)}))
    assert hurt(checked(folder)) == {"wrong shape": loaded(folder, architecture)["mismatched_keys"]}


def test_what_the_class_lists_as_not_its_own_is_ignored(checked, tmp_path):
    model = random_model("DeepseekV3ForCausalLM")
    folder = save_checkpoint(model, tmp_path / "listed", tokenizer=False)
    listed = "model.layers.61.enorm.weight"  # of the layer for multi-token prediction of the largest one
    change(folder, lambda state: state.update({listed: torch.ones(32)}))
    rows = {row.file_name: row.outcome for row in checked(folder).loading}
    assert rows[listed] == "ignored"
    assert not loaded(folder, "DeepseekV3ForCausalLM")["unexpected_keys"]


@pytest.mark.parametrize("architecture", MIXTURES)
def test_experts_are_fused_and_folded(checked, tmp_path, architecture):
    folder = save_checkpoint(random_model(architecture), tmp_path / "experts", tokenizer=False)
    stored = [name for name in load_file(folder / "model.safetensors") if ".experts." in name]
    rows = [row for row in checked(folder).loading if row.outcome == "fused"]
    assert len(rows) == 3
    assert sum(row.count for row in rows) == len(stored)
    assert {name for name in stored for row in rows if fits(name, row.pattern)} == set(stored)
    assert {row.class_name.rpartition(".")[2] for row in rows} == {"gate_up_proj", "down_proj"}


@pytest.mark.parametrize("architecture", MIXTURES)
@pytest.mark.parametrize("number", [3, 999_999_999])
def test_experts_that_are_not_there_or_far_past_the_last(checked, tmp_path, architecture, number):
    folder = save_checkpoint(random_model(architecture), tmp_path / "gap", tokenizer=False)

    def move(state: State) -> None:
        for name in [each for each in state if ".layers.1." in each and ".experts.3." in each]:
            tensor = state.pop(name)
            if number != 3:
                state[name.replace(".experts.3.", f".experts.{number}.")] = tensor

    change(folder, move)
    checks = checked(folder)
    if number != 3:  # it comes after the others, in whose order transformers fuses them
        assert {row.outcome for row in checks.loading} <= {"loaded", "renamed", "fused"}
        return
    assert named(checks, "Config and shapes").severity == "critical"
    wrong = [row for row in checks.loading if row.outcome == "wrong shape"]
    assert {row.count for row in wrong} == {3}
    assert all(".layers.[1]." in row.file_name for row in wrong)


@pytest.mark.parametrize("architecture", MIXTURES)
def test_experts_that_are_stored_one_by_one_and_fused(checked, tmp_path, architecture):
    model = random_model(architecture)
    folder = save_checkpoint(model, tmp_path / "both", tokenizer=False)
    fused = {name: each.detach().clone() for name, each in model.state_dict().items() if ".experts.down_proj" in name}
    change(folder, lambda state: state.update(fused))
    rows = [row for row in checked(folder).loading if row.outcome == "doubled"]
    assert sum(row.count for row in rows) == len(fused)


def test_a_tensor_in_two_shards_is_doubled(checked, tmp_path):
    shards = Shards(tmp_path / "twice")
    name = min(shards.state)
    shards.put("overlay.safetensors", {name: shards.state[name]})
    shards.list(**{name: "overlay.safetensors"})
    assert hurt(checked(shards.folder)) == {"doubled": {name}}


@pytest.mark.parametrize(
    ("architecture", "other"),
    [("LlamaForCausalLM", "mistral"), ("Qwen2ForCausalLM", "llama"), ("RobertaForMaskedLM", "bert")],
)
def test_a_class_of_another_kind_of_model(checked, tmp_path, architecture, other):
    folder = save_checkpoint(random_model(architecture), tmp_path / "kind", tokenizer=False)
    say(folder, model_type=other)
    found = named(checked(folder))
    assert (found.severity, found.evidence[0].subject) == ("major", architecture)
    assert type(transformers.AutoModel.from_pretrained(folder)).__name__.lower() == f"{other}model"


@pytest.mark.parametrize("architecture", GROUPED)
def test_heads_that_do_not_divide_into_groups(checked, tmp_path, architecture):
    model = random_model(architecture, num_attention_heads=4, num_key_value_heads=2, head_dim=8)
    folder = save_checkpoint(model, tmp_path / "groups", tokenizer=False)
    assert named(checked(folder)).status == "ok"

    def widen(state: State) -> None:
        state |= {name: torch.ones(24, 32) for name in state if name.endswith(("k_proj.weight", "v_proj.weight"))}

    change(folder, widen)
    say(folder, num_key_value_heads=3)
    found = named(checked(folder))
    assert [each.problem for each in found.evidence] == [words.UNEVEN_GROUPS]
    crippled: Any = getattr(transformers, architecture).from_pretrained(folder)
    with pytest.raises((RuntimeError, ValueError, IndexError)):
        crippled(torch.tensor([[1, 2, 3]]))


@pytest.mark.parametrize("architecture", GROUPED)
def test_a_config_of_another_number_of_groups(checked, tmp_path, architecture):
    model = random_model(architecture, num_attention_heads=4, num_key_value_heads=2, head_dim=8)
    folder = save_checkpoint(model, tmp_path / "heads", tokenizer=False)
    say(folder, num_key_value_heads=4)
    found = named(checked(folder))
    assert {each.problem for each in found.evidence} == {words.OTHER_HEADS}
    assert {each.count for each in found.evidence} == {2}
    assert found.evidence[0].detail.startswith("It has 16 rows, as for 2 heads of 8, but config.json sets num_")


@pytest.mark.parametrize("architecture", GROUPED)
def test_layers_ahead_that_config_declares_and_the_files_lack(checked, tmp_path, architecture):
    folder = save_checkpoint(random_model(architecture), tmp_path / "ahead", tokenizer=False)
    say(folder, num_nextn_predict_layers=1)
    found = named(checked(folder))
    assert [(each.problem, each.severity) for each in found.evidence] == [(words.FEWER_AHEAD, "note")]  # as in exports
    assert found.status == "ok"
    parts = {"model.layers.2.enorm.weight": torch.ones(32), "model.layers.2.eh_proj.weight": torch.ones(32, 64)}
    change(folder, lambda state: state.update(parts))
    assert named(checked(folder)).status == "ok"
    assert {row.outcome for row in checked(folder).loading if ".layers.2." in row.file_name} == {"dropped"}
    say(folder, num_nextn_predict_layers=2)
    found = named(checked(folder))
    assert [(each.severity, each.count) for each in found.evidence] == [("minor", 1)]
    assert "the files hold only 1 of these layers" in found.detail


def test_an_index_of_a_million_names_is_refused_in_a_sentence(checked, tmp_path):
    shards = Shards(tmp_path / "million")
    shards.list(**{f"g.{number}": shards.names[0] for number in range(1_000_000)})
    with pytest.raises(CheckpointError, match=r"\(1,000,000 of 1,000,021 tensors are missing\)") as refused:
        checked(shards.folder)
    assert len(str(refused.value)) < 500


def test_the_table_is_cut_where_names_have_no_pattern(checked, tmp_path):
    folder = save_checkpoint(random_model("LlamaForCausalLM"), tmp_path / "names", tokenizer=False)
    change(folder, lambda state: state.update({f"more_{number}x.weight": torch.ones(1) for number in range(400)}))
    rows: tuple[LoadingRow, ...] = checked(folder).loading
    assert len(rows) == 300
    assert Counter(row.outcome for row in rows)["dropped"] == 300
