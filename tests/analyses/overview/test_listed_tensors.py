"""Every tensor by name: what it is tied to, the few that are sought, and many as few patterns."""

from __future__ import annotations

import pytest
import torch
from safetensors.torch import load_file

from inspector.analyses.overview.compute import overview
from inspector.analyses.overview.request import OverviewRequest
from inspector.analyses.overview.result import ListedTensor
from inspector.analyses.overview.view import view
from inspector.analyses.overview.words import tensor_lines
from inspector.demo import DEMOS
from inspector.errors import CheckpointError, RequestError
from inspector.models.tensors import StoredReader
from inspector.results.plain import to_json
from inspector.view.blocks import Bullets
from tests.conftest import silent
from tests.families import random_model, save_checkpoint


def listed(checkpoint, **options) -> tuple[ListedTensor, ...]:
    found = overview(checkpoint, progress=silent, **options).listed_tensors
    assert found is not None
    return found


def test_every_tensor_of_the_file_is_listed_as_its_header_has_it(open_path):
    folder = DEMOS["demo-gpt2"].folder
    stored = load_file(folder / "model.safetensors")
    checkpoint = open_path(folder)
    assert overview(checkpoint, progress=silent).listed_tensors is None
    found = {each.name: each for each in listed(checkpoint, tensors=True)}
    assert found.keys() == stored.keys()
    for name, tensor in stored.items():
        each = found[name]
        assert (each.shape, each.dtype) == (tuple(tensor.shape), str(tensor.dtype).removeprefix("torch."))
        assert (each.parameters, each.nbytes, each.file) == (tensor.numel(), tensor.nbytes, "model.safetensors")
    assert found["transformer.wte.weight"].tied_to == ("lm_head.weight",)
    assert {name for name, each in found.items() if each.tied_to} == {"transformer.wte.weight"}
    plain = to_json(overview(checkpoint, progress=silent, find="wte"))["listed_tensors"]
    assert plain == [
        {"name": "transformer.wte.weight", "shape": [4096, 128], "dtype": "float32", "parameters": 524_288,
         "nbytes": 2_097_152, "file": "model.safetensors", "tied_to": ["lm_head.weight"], "name_in_file": None},
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("architecture", "names"),
    [
        ("BertForMaskedLM", {"bert.embeddings.word_embeddings.weight": ("cls.predictions.decoder.weight",),
                             "cls.predictions.bias": ("cls.predictions.decoder.bias",)}),
        ("CohereForCausalLM", {"model.embed_tokens.weight": ("lm_head.weight",)}),
        ("T5ForConditionalGeneration", {"shared.weight": (
            "decoder.embed_tokens.weight", "encoder.embed_tokens.weight", "lm_head.weight")}),
        ("BertModel", {}),
    ],
)  # fmt: skip
def test_ties_are_those_that_a_loader_makes(open_model, architecture, names):
    found = listed(open_model(architecture), tensors=True)
    assert {each.name: each.tied_to for each in found if each.tied_to} == names


def test_names_on_the_same_bytes_are_tied_and_untied_copies_are_not(tmp_path, open_path):
    model = random_model("LlamaForCausalLM", tie_word_embeddings=False)
    folder = save_checkpoint(model, tmp_path / "untied")
    assert not [each for each in listed(open_path(folder), tensors=True) if each.tied_to]
    other = tmp_path / "shared"
    other.mkdir()
    weight = torch.ones(4, 3)
    torch.save({"a.weight": weight, "b.weight": weight, "c.weight": torch.ones(4, 3)}, other / "pytorch_model.bin")
    found = listed(open_path(other), tensors=True)
    assert [(each.name, each.tied_to) for each in found] == [
        ("a.weight", ("b.weight",)), ("b.weight", ("a.weight",)), ("c.weight", ()),
    ]  # fmt: skip


def test_what_is_sought_is_found_in_names_shapes_dtypes_and_files(open_path):
    checkpoint = open_path(DEMOS["demo-gpt2"].folder)
    assert [each.name for each in listed(checkpoint, find="H.1.MLP")] == [
        "transformer.h.1.mlp.c_fc.bias", "transformer.h.1.mlp.c_fc.weight",
        "transformer.h.1.mlp.c_proj.bias", "transformer.h.1.mlp.c_proj.weight",
    ]  # fmt: skip
    assert {each.shape for each in listed(checkpoint, find="4,096 × 128")} == {(4096, 128)}
    assert len(listed(checkpoint, find="model.safetensors")) == len(listed(checkpoint, tensors=True))


@pytest.mark.parametrize(
    ("find", "near"),
    [("transformer.wte.wieght", "transformer.wte.weight"), ("c_attm", "c_attn"), ("mlp.c_fcc", "mlp.c_fc")],
)
def test_what_is_not_there_gets_a_did_you_mean(open_path, find, near):
    with pytest.raises(RequestError) as error:
        listed(open_path(DEMOS["demo-gpt2"].folder), find=find)
    assert str(error.value) == (
        f"No tensor of demo-gpt2 has {find!r} in its name, shape, dtype or file: did you mean {near!r}? "
        "`overview --tensors` lists all 52."
    )


def test_a_name_that_the_file_lacks_is_refused_with_the_nearest(open_path):
    manifest = open_path(DEMOS["demo-gpt2"].folder).manifest
    with pytest.raises(CheckpointError) as error:
        StoredReader(manifest).read(["transformer.h.3.mlp.c_fc.wight"])
    assert str(error.value) == (
        "There is no tensor 'transformer.h.3.mlp.c_fc.wight' in demo-gpt2: did you mean "
        "'transformer.h.3.mlp.c_fc.weight'? `overview --tensors` lists all 52."
    )


def experts() -> list[ListedTensor]:
    def tensor(name: str, shape: tuple[int, ...], file: str, tied: tuple[str, ...] = ()) -> ListedTensor:
        numel = shape[0] * shape[-1]
        return ListedTensor(name, shape, "float8_e4m3fn", numel, numel, file, tied)

    rows = [tensor("model.embed_tokens.weight", (64, 8), "1.safetensors", ("lm_head.weight",))]
    for layer in range(3, 61):
        file = f"{layer % 5}.safetensors"
        rows += [
            tensor(f"model.layers.{layer}.mlp.experts.{expert}.gate_proj.weight", (2048, 7168), file)
            for expert in range(256)
        ]
    return [*rows, tensor("model.layers.7.odd.weight", (2, 2), "1.safetensors")]


def test_many_names_are_few_lines():
    assert tensor_lines(experts()) == [
        "model.embed_tokens.weight · 64 × 8 float8_e4m3fn · 512 B · 1.safetensors · tied to lm_head.weight",
        "model.layers.[3–60].mlp.experts.[0–255].gate_proj.weight · 14,848 tensors of 2,048 × 7,168 float8_e4m3fn · "
        "218.0 GB · 5 files",
        "model.layers.7.odd.weight · 2 × 2 float8_e4m3fn · 4 B · 1.safetensors",
    ]


def test_gaps_and_shapes_keep_apart():
    def tensor(layer: int, width: int) -> ListedTensor:
        return ListedTensor(f"h.{layer}.w", (width,), "float32", width, 4 * width, "m.bin", ())

    assert tensor_lines([tensor(0, 2), tensor(1, 3), tensor(2, 2), tensor(5, 2)]) == [
        "h.[0…5].w · 3 tensors of 2 float32 · 24 B",
        "h.1.w · 3 float32 · 12 B",
    ]


def test_a_terminal_shows_the_lines_and_what_they_add_up_to(open_path):
    result = overview(open_path(DEMOS["demo-gpt2"].folder), progress=silent, tensors=True)
    shown = view(result, OverviewRequest(tensors=True), name="demo-gpt2")
    assert shown.headline.text == "demo-gpt2: 52 tensors, 1,334,016 numbers, 5.3 MB."
    (lines,) = shown.beside
    assert isinstance(lines, Bullets)
    assert list(lines.items) == tensor_lines(result.listed_tensors or ())
    assert "transformer.h.[0–3].attn.c_attn.weight · 4 tensors of 128 × 384 float32 · 786.4 KB" in lines.items
