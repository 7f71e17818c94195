"""What a checkpoint may state of a sentence encoder, and what is refused of it in one sentence."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

from inspector.analyses.similarity.compute import similarity
from inspector.errors import CheckpointError, InspectorError, NotInCheckpointError
from inspector.models.sentences.settings import read_settings
from inspector.store.origins.sources import choose_members
from tests.conftest import silent
from tests.pipelines import NEW, OLD, write_json
from tests.sentence_encoders import save_encoder

TEXTS = ("w1 w2 w3", "w5 w6")
LINEAR = {"out_features": 24, "activation_function": torch.nn.Identity()}
POOLING, DENSE, WHOLE = "1_Pooling/config.json", "2_Dense/config.json", "config_sentence_transformers.json"
BETWEEN = (
    "modules.json lists {kind} after Transformer and Pooling: this tool computes vectors of a Transformer, one "
    "Pooling, then Dense and Normalize, so there is no score to show."
)
REFUSED = [
    (POOLING, {"pooling_mode": "median"}, "pooling_mode in 1_Pooling/config.json is not one of cls, max, mean"),
    (POOLING, {"pooling_mode": {"a": 1}}, "pooling_mode in 1_Pooling/config.json is not one of"),
    (POOLING, {"pooling_mode": ["mean", "mean"]}, "pooling_mode in 1_Pooling/config.json is not one of"),
    (POOLING, {"pooling_mode": ["mean"] * 1_000}, "pooling_mode in 1_Pooling/config.json is not one of"),
    (POOLING, {"include_prompt": "yes"}, "include_prompt in 1_Pooling/config.json must be true or false"),
    (DENSE, {"activation_function": "os.system"}, "The activation of 2_Dense is 'os.system', not a plain one"),
    (DENSE, {"activation_function": "torch.nn.modules.activation.MultiheadAttention"}, "not a plain one of PyTorch"),
    (DENSE, {"activation_function": "torch.nn.modules.activation.PReLU"}, "not a plain one of PyTorch"),
    (DENSE, {"activation_function": "torch.nn.Softmax2d"}, "not a plain one of PyTorch"),
    (DENSE, {"activation_function": "torch.nn.GLU"}, "not a plain one of PyTorch"),
    (DENSE, {"activation_function": 7}, "not a plain one|must be the name of a class"),
    (DENSE, {"bias": 1}, "bias in 2_Dense/config.json must be true or false"),
    (DENSE, {"module_input_name": "token_embeddings"}, "read or write something else than sentence_embedding"),
    (
        WHOLE,
        {"similarity_fn_name": "jaccard"},
        "similarity_fn_name in config_sentence_transformers.json must be one of",
    ),
    (
        WHOLE,
        {"default_prompt_name": "none"},
        "default_prompt_name in config_sentence_transformers.json names no prompt",
    ),
    (WHOLE, {"default_prompt_name": ["none"]}, "names no prompt of the file"),
]


def ask(checkpoint: Any) -> Any:
    return similarity(checkpoint, texts=TEXTS, device="cpu", progress=silent)


@pytest.mark.parametrize(("file", "change", "sentence"), REFUSED)
def test_settings_that_the_library_does_not_write_are_refused(tmp_path, open_path, file, change, sentence):
    save_encoder(tmp_path / "encoder", dense=(LINEAR,))
    path = tmp_path / "encoder" / file
    write_json(path, json.loads(path.read_text("utf-8")) | change)
    with pytest.raises(InspectorError, match=sentence) as refused:
        ask(open_path(tmp_path / "encoder"))
    assert len(str(refused.value)) < 500


@pytest.mark.parametrize("kind", ["LayerNorm", "WordWeights", "Pooling"])
def test_modules_that_are_not_computed_are_named(tmp_path, open_path, kind):
    save_encoder(tmp_path / "encoder")
    listed = json.loads((tmp_path / "encoder" / "modules.json").read_text("utf-8"))
    listed.append({"idx": 2, "name": "2", "path": f"2_{kind}", "type": f"sentence_transformers.models.{kind}"})
    write_json(tmp_path / "encoder" / "modules.json", listed)
    with pytest.raises(InspectorError) as refused:
        ask(open_path(tmp_path / "encoder"))
    wanted = BETWEEN if kind != "Pooling" else BETWEEN.replace("Transformer and Pooling:", "Transformer:", 1)
    assert str(refused.value) == wanted.format(kind=kind)


@pytest.mark.parametrize(
    ("place", "kind"),
    [(0, "custom_st.Transformer"), (1, "my_pkg.Pooling"), (1, "sentence_transformers_more.Pooling"), (1, "Pooling")],
)
def test_modules_of_another_package_are_never_taken_for_the_librarys_own(tmp_path, open_path, place, kind):
    save_encoder(tmp_path / "encoder")
    listed = json.loads((tmp_path / "encoder" / "modules.json").read_text("utf-8"))
    listed[place]["type"] = kind
    write_json(tmp_path / "encoder" / "modules.json", listed)
    with pytest.raises(NotInCheckpointError) as refused:
        ask(open_path(tmp_path / "encoder"))
    assert str(refused.value) == (
        f"modules.json lists {kind}, which is code of another package and is never run here, so there is no score to "
        "show."
    )


@pytest.mark.parametrize("types", [OLD, NEW])
def test_modules_of_every_version_of_the_library_are_its_own(tmp_path, open_path, types):
    save_encoder(tmp_path / "encoder", normalize=True)
    listed = json.loads((tmp_path / "encoder" / "modules.json").read_text("utf-8"))
    wanted = ask(open_path(tmp_path / "encoder")).scores["score"].tolist()
    write_json(
        tmp_path / "encoder" / "modules.json", [each | {"type": kind} for each, kind in zip(listed, types, strict=True)]
    )
    assert ask(open_path(tmp_path / "encoder")).scores["score"].tolist() == wanted


def _nan(weight: torch.Tensor) -> dict[str, torch.Tensor]:
    return {"linear.weight": weight * float("nan"), "linear.bias": torch.zeros(24)}


LAYERS = {
    "another width": (
        {"linear.weight": torch.ones(24, 31), "linear.bias": torch.ones(24)},
        "does not fit vectors of 32",
    ),
    "a vector": ({"linear.weight": torch.ones(24), "linear.bias": torch.ones(24)}, "does not fit vectors of 32"),
    "another bias": (
        {"linear.weight": torch.ones(24, 32), "linear.bias": torch.ones(23)},
        "does not fit vectors of 32",
    ),
    "no bias": ({"linear.weight": torch.ones(24, 32)}, "must hold linear.bias and linear.weight"),
    "more": (
        {"linear.weight": torch.ones(24, 32), "linear.bias": torch.ones(24), "x": torch.ones(1)},
        "must hold linear.bias and linear.weight",
    ),
    "whole numbers": (
        {"linear.weight": torch.ones(24, 32, dtype=torch.int64), "linear.bias": torch.ones(24)},
        "must hold floating-point numbers",
    ),
    "NaN": (_nan(torch.ones(24, 32)), "contains NaN or infinity"),
}


@pytest.mark.parametrize("case", LAYERS)
def test_layers_that_do_not_fit_are_refused(tmp_path, open_path, case):
    state, sentence = LAYERS[case]
    save_encoder(tmp_path / "encoder", dense=(LINEAR,))
    save_file(state, tmp_path / "encoder" / "2_Dense" / "model.safetensors")
    with pytest.raises(InspectorError, match=f"^2_Dense/model.safetensors {sentence}"):
        ask(open_path(tmp_path / "encoder"))


def test_a_layer_that_is_not_there_is_never_made_up(tmp_path, open_path):
    save_encoder(tmp_path / "encoder", dense=(LINEAR,))
    weights = tmp_path / "encoder" / "2_Dense" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-10])
    with pytest.raises(CheckpointError, match=r"2_Dense/model.safetensors is truncated"):
        ask(open_path(tmp_path / "encoder"))
    weights.unlink()
    with pytest.raises(InspectorError, match="The weights of 2_Dense are not in this checkpoint"):
        ask(open_path(tmp_path / "encoder"))


def test_a_pooling_without_its_folder_is_not_stated(tmp_path, open_path):
    save_encoder(tmp_path / "encoder")
    (tmp_path / "encoder" / POOLING).unlink()
    checkpoint = open_path(tmp_path / "encoder")
    with pytest.raises(InspectorError, match=r"lists Pooling, but its folder with config.json is not there"):
        ask(checkpoint)


def test_a_path_out_of_the_folder_is_not_followed(tmp_path, open_path):
    save_encoder(tmp_path / "encoder")
    listed = json.loads((tmp_path / "encoder" / "modules.json").read_text("utf-8"))
    listed[1]["path"] = "../other/1_Pooling"
    write_json(tmp_path / "encoder" / "modules.json", listed)
    with pytest.raises(InspectorError, match=r"its folder with config.json is not there"):
        ask(open_path(tmp_path / "encoder"))


def test_files_of_modules_count_for_the_fingerprint_and_are_listed(tmp_path, open_path):
    save_encoder(tmp_path / "encoder", dense=(LINEAR,))
    before = open_path(tmp_path / "encoder").manifest
    assert {"1_Pooling+config.json", "2_Dense+config.json", "2_Dense+model.safetensors"} <= set(before.paths)
    assert not any(name.startswith("linear") for name in before.tensors.names)
    write_json(tmp_path / "encoder" / POOLING, {"embedding_dimension": 32, "pooling_mode": "cls"})
    after = open_path(tmp_path / "encoder").manifest
    assert after.fingerprint != before.fingerprint
    assert (read_settings(before).modes, read_settings(after).modes) == (("mean",), ("cls",))


def test_many_folders_that_look_like_modules_are_refused(tmp_path, open_path):
    save_encoder(tmp_path / "encoder")
    for number in range(1, 40):
        (tmp_path / "encoder" / f"{number}_Many").mkdir()
    with pytest.raises(
        CheckpointError, match=r"There are 40 folders beside modules.json that are called as modules are"
    ):
        open_path(tmp_path / "encoder")
    names = ["modules.json", "model.safetensors", *(f"{number}_Many/config.json" for number in range(1, 40))]
    with pytest.raises(CheckpointError, match=r"There are 39 folders beside modules.json"):
        choose_members(names)


def test_an_uploaded_folder_has_the_files_of_its_modules(tmp_path):
    save_encoder(tmp_path / "encoder", dense=(LINEAR,))
    names = [str(path.relative_to(tmp_path)) for path in Path(tmp_path / "encoder").rglob("*") if path.is_file()]
    chosen, ignored = choose_members(names)
    assert chosen["1_Pooling+config.json"] == "encoder/1_Pooling/config.json"
    assert chosen["2_Dense+model.safetensors"] == "encoder/2_Dense/model.safetensors"
    assert chosen["config.json"] == "encoder/config.json"
    assert ignored == ("README.md",)
    assert list(chosen)[-1].startswith(("1_", "2_"))  # the upload is called after the model's own weights
