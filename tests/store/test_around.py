"""Folders around checkpoints, laid out as training runs, the hub's cache and other libraries lay them out."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from inspector.errors import CheckpointError
from inspector.store.origins.around import checkpoints_in
from inspector.store.origins.on_disk import OnDisk
from inspector.store.origins.origin import Reach
from tests.families import random_model, save_checkpoint


@pytest.fixture(scope="module")
def saved(tmp_path_factory) -> Path:
    return save_checkpoint(random_model("BertForMaskedLM"), tmp_path_factory.mktemp("saved") / "model")


def refusal(open_path, folder: Path) -> str:
    with pytest.raises(CheckpointError) as caught:
        open_path(folder)
    return str(caught.value)


def test_a_training_runs_latest_checkpoint_is_named_first(saved, open_path, tmp_path):
    run = tmp_path / "run"
    for step in (500, 1000, 20):
        shutil.copytree(saved, run / f"checkpoint-{step}")
    (run / "runs").mkdir()
    (run / "trainer_state.json").write_text("{}")
    assert [path.name for path in checkpoints_in(run)] == ["checkpoint-1000", "checkpoint-500", "checkpoint-20"]
    said = refusal(open_path, run)
    assert f"The latest is {run}/checkpoint-1000; others: checkpoint-500, checkpoint-20." in said

    for step in (500, 1000):
        shutil.rmtree(run / f"checkpoint-{step}")
    checkpoint = open_path(run)
    assert checkpoint.heads["masked_lm"] == "present"
    assert [each for each in checkpoint.manifest.warnings if "'checkpoint-20'" in each]


def test_weights_of_the_folder_itself_come_before_those_of_its_checkpoints(saved, open_path, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(saved, run)
    shutil.copytree(saved, run / "checkpoint-5")
    assert checkpoints_in(run) == ()
    assert open_path(run).manifest.name == "run"


def hub_cache(root: Path, saved: Path, name: str, *versions: str) -> Path:
    """A model's folder in the hub's cache: files as links to blobs, refs/main for the newest."""
    home = root / f"models--{name.replace('/', '--')}"
    (home / "blobs").mkdir(parents=True)
    (home / "refs").mkdir()
    (home / "refs" / "main").write_text(versions[-1])
    for number, file in enumerate(sorted(saved.iterdir())):
        blob = home / "blobs" / f"{number:040x}"
        shutil.copy(file, blob)
        for version in versions:
            folder = home / "snapshots" / version
            folder.mkdir(parents=True, exist_ok=True)
            (folder / file.name).symlink_to(blob)
    return home


def test_the_hubs_cache_opens_at_the_version_that_it_calls_main(saved, open_path, tmp_path):
    home = hub_cache(tmp_path, saved, "org/tiny", "b" * 40, "a" * 40)
    checkpoint = open_path(home)
    assert checkpoint.manifest.name == "org/tiny"
    assert {file.path.parent.name for file in checkpoint.manifest.files if file.stamp} <= {"blobs"}
    assert [path.name for path in checkpoints_in(home)] == ["a" * 40, "b" * 40]
    (home / "refs" / "main").write_text("c" * 40)
    assert "2 folders with a checkpoint" in refusal(open_path, home)


def test_of_a_pipeline_of_diffusers_what_reads_text_is_offered(saved, open_path, tmp_path):
    pipeline = tmp_path / "pipeline"
    for part in ("text_encoder", "unet", "vae"):
        shutil.copytree(saved, pipeline / part)
    (pipeline / "model_index.json").write_text(json.dumps({"_class_name": "StableDiffusionPipeline"}))
    assert [path.name for path in checkpoints_in(pipeline)] == ["text_encoder"]
    assert open_path(pipeline).heads["masked_lm"] == "present"
    shutil.copytree(saved, pipeline / "text_encoder_2")
    assert f"Such as {pipeline}/text_encoder; others: text_encoder_2." in refusal(open_path, pipeline)


def test_folders_of_sentence_transformers_are_left_to_their_modules(saved, tmp_path):
    shutil.copytree(saved, tmp_path / "0_Transformer")
    (tmp_path / "modules.json").write_text("[]")
    assert checkpoints_in(tmp_path) == ()


def test_links_and_what_lies_outside_are_no_candidates(saved, tmp_path):
    (tmp_path / "inside").mkdir()
    (tmp_path / "inside" / "link").symlink_to(saved)
    shutil.copytree(saved, tmp_path / "elsewhere" / "a")
    assert checkpoints_in(tmp_path / "inside") == ()
    assert checkpoints_in(tmp_path / "elsewhere", within=(tmp_path / "inside",)) == ()
    assert checkpoints_in(tmp_path / "not there") == ()


def test_a_folder_that_strangers_name_is_searched_only_below_the_roots(saved, settings, tmp_path):
    shutil.copytree(saved, tmp_path / "root" / "run" / "checkpoint-1")
    reach = Reach(replace(settings, roots=(tmp_path / "root",)), restrict_paths=True)
    assert {path.parent.name for path in OnDisk(str(tmp_path / "root" / "run")).find(reach).files.values()} == {
        "checkpoint-1"
    }
    with pytest.raises(CheckpointError, match="cannot be opened here"):
        OnDisk(str(tmp_path)).find(reach)


@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("__0_0.distcp", "torch.distributed.checkpoint.format_utils dcp_to_torch"),
        ("pytorch_model_fsdp_0/__0_0.distcp", "torch.distributed.checkpoint.format_utils dcp_to_torch"),
        ("global_step10/zero_pp_rank_0_mp_rank_00_optim_states.pt", "zero_to_fp32.py . gathered"),
        ("flax_model.msgpack", "from_flax=True"),
        ("tf_model.h5", "from_tf=True"),
        ("model.onnx", "Open the checkpoint that it was exported from"),
    ],
)
def test_other_formats_are_named_with_what_converts_them(saved, open_path, tmp_path, name, command):
    folder = tmp_path / "model"
    shutil.copytree(saved, folder, ignore=shutil.ignore_patterns("*.safetensors"))
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_bytes(b"x")
    assert command in refusal(open_path, folder)
