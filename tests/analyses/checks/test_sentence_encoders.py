"""Folders of sentence-transformers are judged by what it loads of them: the class, the unused head, the length."""

from __future__ import annotations

import shutil
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from inspector.analyses.checks.compute import check
from inspector.analyses.checks.result import Check
from inspector.analyses.overview.compute import overview
from inspector.analyses.sharing.compute import sharing
from inspector.analyses.tokenization.compute import tokenize
from inspector.analyses.training.compute import training
from inspector.errors import CheckpointError
from inspector.models.checkpoint import StagedCheckpoint
from tests.conftest import silent
from tests.families import MODELS, random_model, save_checkpoint
from tests.pipelines import DENSE, NEW, OLD, add_modules, save_base, set_config, write_json
from tests.store.store_builders import opened, pack, uploaded

run_tokenize: Any = tokenize
# What sentence-transformers loads, and the class with a head that its training may have begun from
BASES = {
    "MPNetModel": "MPNetForMaskedLM",
    "BertModel": "BertForPreTraining",
    "DistilBertModel": "DistilBertForMaskedLM",
    "XLMRobertaModel": "XLMRobertaForMaskedLM",
    "Qwen2Model": "Qwen2ForCausalLM",
    "T5EncoderModel": "T5ForConditionalGeneration",
}
WITHOUT_POOLER = {"MPNetModel", "XLMRobertaModel"}  # as the base of a masked LM is built
LAYOUTS = {"old names": (OLD, ""), "new names": (NEW, ""), "dense": (DENSE, ""), "in a folder": (OLD, "0_Transformer")}


def checks_of(checkpoint: StagedCheckpoint) -> dict[str, Check]:
    return {each.name: each for each in check(checkpoint, progress=silent).checks}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("base", BASES)
def test_the_class_that_is_loaded_decides(tmp_path, open_path, base, layout):
    types, inner = LAYOUTS[layout]
    folder = add_modules(save_base(BASES[base], tmp_path / "encoder"), types, inner=inner)
    checkpoint = open_path(folder)
    checks = checks_of(checkpoint)
    assert [each.name for each in checks.values() if each.status == "fail"] == []
    stored = load_file((folder / inner) / "model.safetensors")
    whole = f"{sum(each.numel() for each in stored.values()):,} parameters of {base}"
    if base in WITHOUT_POOLER:
        whole = f"parameters of {base} but its pooler"
    weights, left_over = checks["Heads and weights"], checks["Left-over tensors"]
    assert weights.status == left_over.status == "ok"
    assert weights.detail.startswith(f"All {whole} are in the file")
    runs = " → ".join(each.rpartition(".")[2] for each in types)
    assert weights.detail.partition("sentence-transformers loads")[2].startswith(
        f" it as {base} and runs {runs} (modules.json). config.json names {BASES[base]}, which it does not load: the "
        "file lacks"
    )
    assert left_over.detail == f"{base} has a place for every tensor."
    described = overview(checkpoint, progress=silent)
    assert described.pipeline == tuple(each.rpartition(".")[2] for each in types)
    assert not any(BASES[base] in warning for warning in described.warnings)
    assert training(checkpoint, progress=silent).model_class == base


@pytest.mark.parametrize("inner", ["", "0_Transformer"])
@pytest.mark.parametrize("packed", [True, False], ids=["archive", "files"])
def test_an_upload_keeps_its_modules(tmp_path, settings, packed, inner):
    folder = add_modules(save_base("BertForMaskedLM", tmp_path / "encoder"), inner=inner)
    files = {f"encoder/{path.relative_to(folder)}": path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    if packed:
        files = {"encoder.zip": pack(folder, tmp_path / "encoder.zip").read_bytes()}
    manifest, _ = opened(uploaded(settings, files), settings)
    checkpoint = StagedCheckpoint(manifest, settings=settings)
    assert manifest.name == "encoder"
    assert checks_of(checkpoint)["Heads and weights"].status == "ok"
    assert checkpoint.pipeline is not None
    assert (checkpoint.pipeline.modules, checkpoint.pipeline.longest) == (("Transformer", "Pooling", "Normalize"), 32)


@pytest.mark.parametrize("modules", [b"[", b'[{"type": "a"}, {"type": "a"}', b"\xff"])
def test_modules_that_are_no_json_are_refused(tmp_path, open_path, modules):
    folder = save_base("BertForMaskedLM", tmp_path / "encoder")
    (folder / "modules.json").write_bytes(modules)
    with pytest.raises(CheckpointError, match=r"^modules\.json is not valid JSON|unmatched brackets"):
        open_path(folder)
    (folder / "modules.json").write_bytes(b" " * 1_000_001)
    with pytest.raises(CheckpointError, match=r"^modules\.json has 1,000,001 bytes, more than the limit of 1,000,000"):
        open_path(folder)


@pytest.mark.parametrize(
    "modules", [{}, [], 7, [1], [{"type": 3}], [{"type": "../x"}], [{"type": "a.b"}] * 101, [{"type": "a" * 300}]]
)
def test_modules_of_another_kind_say_nothing(tmp_path, open_path, modules):
    folder = save_base("BertForMaskedLM", tmp_path / "encoder")
    write_json(folder / "modules.json", modules)
    checkpoint = open_path(folder)
    assert checkpoint.pipeline is None
    assert checks_of(checkpoint)["Heads and weights"].status == "fail"  # as without the file: config.json decides


def test_a_linked_folder_of_the_transformer_is_not_followed(tmp_path, open_path):
    folder = add_modules(save_base("BertForMaskedLM", tmp_path / "encoder"), inner="0_Transformer")
    shutil.move(folder / "0_Transformer", tmp_path / "elsewhere")
    (folder / "0_Transformer").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(CheckpointError, match="no weights"):
        open_path(folder)


def test_the_head_that_a_pipeline_does_not_load_may_be_there(tmp_path, open_path):
    folder = add_modules(save_checkpoint(random_model("BertForMaskedLM"), tmp_path / "headed"))
    checks = checks_of(open_path(folder))
    heads = [name for name in load_file(folder / "model.safetensors") if name.startswith("cls.")]
    assert checks["Heads and weights"].status == "ok"
    assert "config.json names BertForMaskedLM, which it does not load." in checks["Heads and weights"].detail
    left_over = checks["Left-over tensors"]
    assert [each.subject for each in left_over.evidence] == sorted(heads)
    assert (left_over.severity, left_over.next_step) == ("note", "")


@pytest.mark.parametrize(("pooled", "severity"), [(True, "note"), (False, "minor")])
def test_a_pooler_is_missed_only_where_it_is_used(tmp_path, open_path, pooled, severity):
    folder = save_base("BertForMaskedLM", tmp_path / "encoder")  # built without a pooler
    set_config(folder, architectures=["BertModel"])
    checkpoint = open_path(add_modules(folder, OLD if pooled else OLD[:1] + OLD[2:]))
    assert checks_of(checkpoint)["Heads and weights"].severity == severity


def test_another_task_loads_another_class(tmp_path, open_path):
    folder = save_base("BertForMaskedLM", tmp_path / "encoder")
    checkpoint = open_path(add_modules(folder, transformer_task="fill-mask"))
    assert checkpoint.config.architectures == ["BertForMaskedLM"]
    assert checks_of(checkpoint)["Heads and weights"].status == "fail"


@pytest.mark.parametrize(
    ("said_here", "longest", "said"),
    [
        ({"max_seq_length": 32}, 32, "max_seq_length in sentence_bert_config.json"),
        ({"max_seq_length": 500}, 64, ""),
        ({"do_lower_case": True}, 48, "model_max_length in tokenizer_config.json"),
        ({"max_seq_length": 10**12, "do_lower_case": True}, 48, "model_max_length in tokenizer_config.json"),
    ],
)
def test_texts_are_cut_where_the_pipeline_cuts(tmp_path, open_path, said_here, longest, said):
    folder = save_base("BertForMaskedLM", tmp_path / "encoder")
    write_json(folder / "tokenizer_config.json", {"model_max_length": 48})
    checkpoint = open_path(add_modules(folder, **said_here))
    found = run_tokenize(checkpoint, progress=silent, texts=["w1 " * 100])
    assert (found.longest, found.longest_said) == (longest, said)
    start = f"The text has 102 tokens. sentence-transformers keeps {longest} ({said})" if said else "The text has 102"
    assert found.warnings[0].startswith(start)
    assert any("lowercases" in warning for warning in found.warnings) == ("do_lower_case" in said_here)


@pytest.mark.parametrize(("kind", "said"), [("bert", "max_position_embeddings of BertConfig"), ("nobodys", "")])
def test_texts_are_cut_at_the_positions_of_a_class_that_is_known(tmp_path, open_path, kind, said):
    folder = save_base("BertForMaskedLM", tmp_path / "encoder")
    write_json(folder / "tokenizer_config.json", {"model_max_length": 80, "tokenizer_class": "BertTokenizer"})
    checkpoint = open_path(add_modules(set_config(folder, model_type=kind), do_lower_case=True))
    found = run_tokenize(checkpoint, progress=silent, texts=["w1 " * 100])
    assert (found.longest, found.longest_said) == (64, said)


@pytest.mark.parametrize("architecture", [name for name in MODELS if name.endswith("ForMaskedLM")])
def test_sharing_calls_what_is_in_the_file_by_its_own_names(tmp_path, open_path, architecture):
    folder = save_base(architecture, tmp_path / "base")
    stored = load_file(folder / "model.safetensors")
    checkpoint = open_path(folder)
    result = sharing(checkpoint, progress=silent)
    groups, lacking = result.groups, checks_of(checkpoint)["Heads and weights"].evidence
    lost = sum(each.problem == "not in the file" for each in lacking)
    assert result.warnings == (
        f"The file lacks {lost} tensors of its own class, such as {lacking[0].subject}: a loader "
        "would fill them with random numbers.",
    )
    assert groups
    for group in groups:
        assert set(group.in_file) <= stored.keys()
        ended = group.in_file[0] if group.in_file else "a loader fills it with random numbers"
        assert group.reason.endswith(f"{ended}.")
        assert [member.stored_as for member in group.members if member.stored_as] == list(group.in_file)


def test_a_whole_file_under_its_base_class_is_called_by_its_own_names(tmp_path, open_path):
    folder = save_checkpoint(random_model("BartForConditionalGeneration"), tmp_path / "whole")
    set_config(folder, architectures=["BartModel"])
    (group,) = sharing(open_path(folder), progress=silent).groups
    assert (group.names[-1], group.in_file) == ("shared.weight", ("model.shared.weight",))
    assert group.reason.endswith("the file stores one copy, as model.shared.weight.")


def test_a_shape_that_does_not_fit_is_told_by_the_files_own_name(tmp_path, open_path):
    folder = save_base("BertForMaskedLM", tmp_path / "base")
    stored = load_file(folder / "model.safetensors")
    stored["encoder.layer.0.output.dense.bias"] = torch.zeros(7)
    save_file(stored, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(CheckpointError, match=r"^encoder\.layer\.0\.output\.dense\.bias is 7 in the file but 32"):
        sharing(open_path(folder), progress=silent)
