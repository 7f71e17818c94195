"""Hand-made checkpoints and modules, each with a tie that other searches get wrong."""

from __future__ import annotations

import json

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import nn

import inspector
from inspector.analyses.checks.compute import check
from inspector.analyses.sharing.compute import find_sharing, sharing
from inspector.analyses.sharing.compute_verdicts import SharingEvidence, find_groups, judge
from inspector.models import execution
from inspector.models.copies import StoredCopies
from inspector.store.readers.ranges import PlainBytes
from tests.conftest import silent
from tests.families import ENCODER_DECODER, MODELS, WITHOUT_HEAD, random_model, save_checkpoint

WTE, HEAD = "transformer.wte.weight", "lm_head.weight"


def share(checkpoint):
    return sharing(checkpoint, progress=silent)


def brute_force(module: nn.Module) -> set[frozenset[str]]:
    """Names of parameters and buffers that have an address in common, every pair compared."""
    spans = {}
    named = [*module.named_parameters(remove_duplicate=False),
             *module.named_buffers(remove_duplicate=False)]  # fmt: skip
    for name, tensor in named:
        assert tensor.is_contiguous(), name
        spans[name] = (tensor.data_ptr(), tensor.data_ptr() + tensor.nbytes)
    groups: list[set[str]] = [{name} for name in spans]
    for one, (begin, end) in spans.items():
        for other, (first, last) in spans.items():
            if begin < last and first < end:
                joined = [group for group in groups if one in group or other in group]
                groups = [group for group in groups if group not in joined]
                groups.append(set().union(*joined))
    return {frozenset(group) for group in groups if len(group) > 1}


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("architecture", sorted(MODELS | WITHOUT_HEAD | ENCODER_DECODER))
def test_every_family_by_brute_force(tmp_path, open_path, architecture, tied):
    model = random_model(architecture, tie_word_embeddings=tied)
    live = find_sharing(model)
    opened = share(open_path(save_checkpoint(model, tmp_path / "model")))
    truth = brute_force(model)
    for found in (live, opened):
        assert {frozenset(group.names) for group in found.groups if group.in_memory} == truth
        assert found.unique_parameters == model.num_parameters()
        assert found.warnings == ()
    facts = [(group.names, group.verdict, group.declared) for group in opened.groups]
    assert facts == [(group.names, group.verdict, group.declared) for group in live.groups]
    assert opened.reused_modules == live.reused_modules
    assert {group.file_relation for group in live.groups} <= {"no file"}
    relation = {True: "one copy", False: "different numbers"}
    assert all(group.file_relation == relation[group.in_memory] for group in opened.groups)


def test_tied_and_saved_as_bin(tmp_path, open_path):
    model = random_model("GPT2LMHeadModel")
    folder = tmp_path / "bin"
    model.config.architectures = ["GPT2LMHeadModel"]
    model.config.save_pretrained(folder)
    torch.save(model.state_dict(), folder / "pytorch_model.bin")
    (group,) = share(open_path(folder)).groups
    assert (group.verdict, group.file_relation) == ("tied", "one storage")
    assert group.in_file == group.names == (HEAD, WTE)
    assert "2 names on one storage" in group.reason
    assert (group.listed_parameters, group.unique_parameters) == (2 * 60 * 32, 60 * 32)
    assert (group.listed_nbytes, group.unique_nbytes) == (2 * 60 * 32 * 4, 60 * 32 * 4)


def test_tensors_that_the_class_has_no_place_for(tmp_path, open_path):
    folder = save_checkpoint(random_model("BertForPreTraining"), tmp_path / "base")
    config = json.loads((folder / "config.json").read_text())
    config["architectures"] = ["BertModel"]
    (folder / "config.json").write_text(json.dumps(config))
    tensors = load_file(folder / "model.safetensors")
    tensors["bert.embeddings.position_ids"] = torch.arange(64)[None]
    save_file(tensors, folder / "model.safetensors")
    (warning,) = share(open_path(folder)).warnings
    heads = [name for name in tensors if name.startswith("cls.")]
    assert warning.startswith(f"BertModel has no place for {len(heads)} tensors of the file")
    assert min(heads) in warning


def test_one_tensor_without_a_place_is_one(tmp_path, open_path):
    folder = save_checkpoint(random_model("BertForPreTraining"), tmp_path / "one")
    tensors = load_file(folder / "model.safetensors")
    tensors["extra.weight"] = torch.ones(2)
    del tensors["bert.pooler.dense.bias"]
    save_file(tensors, folder / "model.safetensors")
    warnings = share(open_path(folder)).warnings
    assert any(
        text.startswith("BertForPreTraining has no place for 1 tensor of the file, such as extra") for text in warnings
    )
    assert any(text.startswith("The file lacks 1 tensor of its own class, such as bert.pooler") for text in warnings)


def test_tied_with_two_equal_copies_in_the_file(tmp_path, open_path):
    folder = save_checkpoint(random_model("GPT2LMHeadModel"), tmp_path / "twice")
    tensors = load_file(folder / "model.safetensors")
    tensors[HEAD] = tensors[WTE].clone()
    save_file(tensors, folder / "model.safetensors")
    (group,) = share(open_path(folder)).groups
    assert (group.verdict, group.file_relation) == ("tied", "equal copies")


def test_stored_under_the_output_name_alone(tmp_path, open_path):
    folder = save_checkpoint(random_model("GPT2LMHeadModel"), tmp_path / "alias")
    tensors = load_file(folder / "model.safetensors")
    tensors[HEAD] = tensors.pop(WTE)
    save_file(tensors, folder / "model.safetensors")
    (group,) = share(open_path(folder)).groups
    assert (group.verdict, group.in_file, group.file_relation) == ("tied", (HEAD,), "one copy")
    assert torch.equal(load_file(folder / "model.safetensors")[HEAD], tensors[HEAD])


def test_alias_in_the_metadata_of_an_untied_model(tmp_path, open_path):
    model = random_model("GPT2LMHeadModel", tie_word_embeddings=False)
    folder = save_checkpoint(model, tmp_path / "listed")
    tensors = load_file(folder / "model.safetensors")
    del tensors[HEAD]
    save_file(tensors, folder / "model.safetensors", metadata={HEAD: WTE, "format": "pt"})
    (group,) = share(open_path(folder)).groups
    assert (group.verdict, group.aliases, group.in_file) == ("alias only", (HEAD,), (WTE,))


def test_sharded_files(tmp_path, open_path):
    folder = tmp_path / "shards"
    model = random_model("BertForPreTraining")
    model.save_pretrained(folder, max_shard_size="20KB")
    assert len(list(folder.glob("*.safetensors"))) > 2
    result = share(open_path(folder))
    assert [group.verdict for group in result.groups] == ["tied", "tied"]
    assert len({member for member in result.tensors["file"] if member}) > 2


def test_adapter_merged_into_the_head_while_the_config_says_tied(tmp_path, open_path):
    model = random_model("GPT2LMHeadModel")
    folder = save_checkpoint(model, tmp_path / "merged")
    tensors = load_file(folder / "model.safetensors")
    low_rank = torch.randn(60, 2) @ torch.randn(2, 32) / 100
    tensors[HEAD] = tensors[WTE] + low_rank
    save_file(tensors, folder / "model.safetensors")
    assert json.loads((folder / "config.json").read_text())["tie_word_embeddings"]
    (group,) = share(open_path(folder)).groups
    assert (group.verdict, group.declared, group.in_memory) == ("declared only", True, False)
    assert f"largest difference {low_rank.abs().max():.3g}" in group.reason


def test_t5_whose_file_brings_another_head(tmp_path, open_path):
    folder = save_checkpoint(random_model("T5ForConditionalGeneration"), tmp_path / "t5")
    tensors = load_file(folder / "model.safetensors")
    tensors[HEAD] = torch.randn(60, 32)
    save_file(tensors, folder / "model.safetensors")
    groups = share(open_path(folder)).groups
    broken = next(group for group in groups if HEAD in group.names)
    assert (broken.verdict, broken.in_memory) == ("declared only", False)
    tied = [set(group.names) for group in groups if group.verdict == "tied"]
    assert tied == [{"shared.weight", "encoder.embed_tokens.weight", "decoder.embed_tokens.weight"}]


@pytest.mark.parametrize(
    "architecture",
    [
        "T5ForConditionalGeneration",
        "MT5ForConditionalGeneration",
        "UMT5ForConditionalGeneration",
        "LongT5ForConditionalGeneration",
    ],
)
def test_t5_whose_config_says_untied_breaks_no_tie(tmp_path, open_path, architecture):
    """As flan-T5 is saved: its config class sets tie_word_embeddings to true all the same."""
    model = random_model(architecture)
    model.lm_head.weight = nn.Parameter(torch.randn(60, 32))
    folder = save_checkpoint(model, tmp_path / "flan")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"tie_word_embeddings": False}))
    checkpoint = open_path(folder)
    result = share(checkpoint)
    whole, tied = sorted(result.groups, key=lambda group: -len(group.names))
    assert (whole.verdict, whole.declared) == ("diverged", False)
    assert "config.json sets tie_word_embeddings to false" in whole.reason
    assert tied.verdict == "tied"
    assert "the class declares it, whatever config.json says" in tied.reason
    truth = type(model).from_pretrained(folder)
    assert {frozenset(tied.names)} == brute_force(truth)
    assert result.unique_parameters == truth.num_parameters()
    ties = next(c for c in check(checkpoint, progress=silent).checks if c.name == "Ties")
    assert ties.status == "ok"
    assert "config.json declares" in ties.detail


def test_an_untied_head_that_the_file_lacks_holds_no_equal_copy(tmp_path, open_path):
    folder = save_checkpoint(random_model("GPT2LMHeadModel", tie_word_embeddings=False), tmp_path / "headless")
    tensors = load_file(folder / "model.safetensors")
    del tensors[HEAD]
    save_file(tensors, folder / "model.safetensors")
    checkpoint = open_path(folder)
    (group,) = share(checkpoint).groups
    assert (group.verdict, group.in_memory, group.in_file) == ("diverged", False, (WTE,))
    assert f"the file has only {WTE}" in group.reason
    found = {each.name: each for each in check(checkpoint, progress=silent).checks}
    assert "have the same numbers" not in found["Ties"].detail
    assert found["Heads and weights"].status == "fail"


def test_equal_copies_that_nothing_declares(tmp_path, open_path):
    model = random_model("BertForMaskedLM")
    layers = model.bert.encoder.layer
    with torch.no_grad():
        layers[1].output.dense.weight.copy_(layers[0].output.dense.weight)
    name = "bert.encoder.layer.{}.output.dense.weight".format
    found = share(open_path(save_checkpoint(model, tmp_path / "copied")))
    for result in (found, find_sharing(model)):
        group = next(group for group in result.groups if group.verdict == "equal copies")
        assert group.names == (name(0), name(1))
        assert group.reason.startswith("Nothing declares it")


class Odd(nn.Module):
    """Ties of every awkward kind."""

    def __init__(self) -> None:
        super().__init__()
        whole = torch.randn(6, 4)
        self.first = nn.Parameter(whole)
        self.second = nn.Parameter(whole)  # another Parameter on the same storage
        self.turned = nn.Parameter(whole.T)
        self.row = nn.Parameter(whole[2])
        fused = torch.randn(8, 4)
        self.query = nn.Parameter(fused[:4])
        self.key = nn.Parameter(fused[4:])  # same storage, no byte in common
        self.scale = nn.Linear(4, 4, bias=False)
        self.register_buffer("seen", self.scale.weight.detach())


def test_a_module_with_awkward_ties():
    module = Odd()
    matrix, weight = find_sharing(module).groups
    assert matrix.names == ("first", "row", "second", "turned")
    assert (matrix.verdict, matrix.declared, matrix.in_file) == ("tied", False, ())
    assert matrix.reason == ("One block of memory under 4 names: nothing declares it. They are different views of it.")
    members = {member.name: member for member in matrix.members}
    assert (members["row"].offset, members["row"].stride) == (2 * 4 * 4, (1,))
    assert (members["turned"].shape, members["turned"].stride) == ((4, 6), (1, 4))
    assert len({member.storage for member in matrix.members}) == 1
    assert (matrix.listed_parameters, matrix.unique_parameters) == (24 * 3 + 4, 24)
    assert weight.names == ("scale.weight", "seen")
    assert [member.kind for member in weight.members] == ["parameter", "buffer"]
    assert (weight.listed_parameters, weight.unique_parameters) == (16, 16)
    result = inspector.find_sharing(module)
    assert result.unique_parameters == 24 + 32 + 16
    assert result.listed_parameters == 24 * 3 + 4 + 32 + 16
    table = result.tensors.set_index("name")
    assert table.loc["seen", "kind"] == "buffer"
    assert table.loc["key", "offset"] == 4 * 4 * 4
    assert table.loc["key", "storage"] == table.loc["query", "storage"]
    assert (table.loc["key", "group"], table.loc["query", "group"]) == (-1, -1)


def test_memory_cannot_be_shared_across_devices():
    model = random_model("GPT2LMHeadModel")
    model.lm_head.weight = nn.Parameter(torch.empty(60, 32, device="meta"))
    (group,) = find_sharing(model).groups
    assert (group.verdict, group.in_memory) == ("declared only", False)
    assert "cpu and meta" in group.reason


def test_counting_reuse_in_a_plain_module():
    layer = nn.Linear(3, 3)
    module = nn.Sequential(layer, nn.ReLU(), layer)
    result = find_sharing(module, inputs=(torch.ones(1, 3),))
    assert [(each.name, each.uses) for each in result.reused_modules] == [("0", 2)]
    assert [group.names for group in result.groups] == [("0.weight", "2.weight"),
                                                        ("0.bias", "2.bias")]  # fmt: skip
    assert find_sharing(module).reused_modules == ()


def test_a_live_module_is_left_as_it_was():
    model = random_model("GPT2LMHeadModel", tie_word_embeddings=False)
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    find_sharing(model)
    assert model.config.tie_word_embeddings is False
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())


def test_the_file_is_not_read_for_it(tmp_path, open_path, monkeypatch):
    """Only what may be a copy is read, and of the rest samples of a few bytes."""
    from inspector.store import copies

    sizes: list[int] = []
    real = PlainBytes.into

    def counted(file, begin, place):
        sizes.append(len(place))
        real(file, begin, place)

    monkeypatch.setattr(PlainBytes, "into", counted)
    share(open_path(save_checkpoint(random_model("BertForMaskedLM"), tmp_path / "model")))
    assert sizes
    assert max(sizes) <= copies.SAMPLE


def test_how_far_apart_large_matrices_are_is_said_of_a_sample(tmp_path, open_path):
    """By hand: of 128 blocks of 15 numbers every eighth is read, and block 16 is among them."""
    model = random_model("GPT2LMHeadModel", tie_word_embeddings=False)
    matrix = model.transformer.wte.weight.detach()
    assert matrix.numel() == 128 * 15
    other = matrix.clone().flatten()
    other[16 * 15] += 5
    other[17 * 15] += 50  # not seen
    model.lm_head.weight = nn.Parameter(other.view_as(matrix))
    manifest = open_path(save_checkpoint(model, tmp_path / "model")).manifest
    names = frozenset({HEAD, WTE})
    evidence = SharingEvidence(
        tensors=model.state_dict(),
        parameters=names,
        held={name: manifest.by_name[name] for name in names},
        aliases={},
        copies=StoredCopies(manifest, {name: name for name in names}, block=15),
        memory=[],
        declared=[],
        possible=[names],
        config_ties=False,
    )
    assert find_groups(evidence) == [(HEAD, WTE)]
    judged = judge((HEAD, WTE), evidence)
    assert judged.verdict == "diverged"
    assert "in a sample of 12.5% of the numbers, largest difference 5, cosine 0." in judged.reason


def test_views_of_one_storage_that_begin_elsewhere_are_told_from_one_tensor(tmp_path, open_path):
    """On the meta device no address tells them apart."""
    model = random_model("BertModel")
    state = dict(model.state_dict())
    bias = "encoder.layer.{}.attention.self.query.bias"
    whole = torch.arange(40.0)
    state[bias.format(0)], state[bias.format(1)] = whole[:32], whole[8:]
    folder = save_checkpoint(model, tmp_path / "model")
    (folder / "model.safetensors").unlink()
    torch.save(state, folder / "pytorch_model.bin")
    (group,) = (g for g in share(open_path(folder)).groups if bias.format(0) in g.names)
    assert (group.verdict, group.in_memory) == ("tied", True)
    assert "They are different views of it." in group.reason
    assert group.unique_parameters == 40


def test_a_structure_is_counted_once_and_another_by_itself(tmp_path, open_path, monkeypatch):
    """ALBERT runs one layer as often as its config says, whatever its weights are."""
    passes: list[str] = []
    counting = execution.reused_modules

    def counted(model, inputs):
        passes.append(type(model).__name__)
        return counting(model, inputs)

    monkeypatch.setattr(execution, "reused_modules", counted)
    uses = []
    for seed, layers in enumerate((2, 3, 2, 3)):
        model = random_model("AlbertForMaskedLM", seed=seed, num_hidden_layers=layers, embedding_size=12)
        found = share(open_path(save_checkpoint(model, tmp_path / str(seed))))
        uses.append([each.uses for each in found.reused_modules])
    assert uses == [[2], [3], [2], [3]]
    assert passes == ["AlbertForMaskedLM"] * 2
