"""Experts of small random mixtures, measured by brute force on what transformers loads; planted zeros and copies."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file

from inspector.analyses.classes.view import SECTION
from inspector.analyses.experts import words
from inspector.analyses.experts.compute import experts
from inspector.analyses.experts.figures import expert_map
from inspector.analyses.experts.frames import layer_labels
from inspector.analyses.experts.request import ExpertsRequest
from inspector.analyses.experts.result import ExpertPlace, MixtureExperts
from inspector.analyses.experts.view import view
from inspector.catalog import answer
from inspector.errors import NotInCheckpointError
from inspector.models.checkpoint import StagedCheckpoint
from inspector.models.naming import TensorRecipe
from inspector.models.tokens import Encoded, Tokens
from inspector.plotting.theme import LIGHT
from inspector.results.plain import to_json
from inspector.view.blocks import Grid
from tests.conftest import silent
from tests.families import random_model, save_checkpoint
from tests.models.quantized_files import FINE_GRAINED

TEXT = "w1 w2 w3 ##a w30 w7"
SCALE = 0.0078125  # of codes in float8
# Architecture -> its blocks in the class, what holds the experts and the router in a block, and what is shared
FAMILIES: dict[str, tuple[list[str], str, str, str]] = {
    "MixtralForCausalLM": (["model.layers.0.mlp", "model.layers.1.mlp"], "experts", "gate.weight", ""),
    "Qwen2MoeForCausalLM": (["model.layers.0.mlp", "model.layers.1.mlp"], "experts", "gate.weight", "shared_expert"),
    "Qwen3MoeForCausalLM": (["model.layers.0.mlp", "model.layers.1.mlp"], "experts", "gate.weight", ""),
    "OlmoeForCausalLM": (["model.layers.0.mlp", "model.layers.1.mlp"], "experts", "gate.weight", ""),
    "GptOssForCausalLM": (["model.layers.0.mlp", "model.layers.1.mlp"], "experts", "router.weight", ""),
    "DeepseekV3ForCausalLM": (["model.layers.1.mlp"], "experts", "gate.weight", "shared_experts"),
    "GraniteMoeSharedForCausalLM": (
        ["model.layers.0.block_sparse_moe", "model.layers.1.block_sparse_moe"], "experts", "router.weight", "",
    ),
    "NemotronHForCausalLM": (["model.layers.2.mixer"], "experts", "gate.weight", "shared_experts"),
    "SwitchTransformersForConditionalGeneration": (
        ["encoder.block.1.layer.1.mlp", "decoder.block.1.layer.2.mlp"], "experts", "router.classifier.weight", "",
    ),
    "Ernie4_5_VLMoeForConditionalGeneration": (
        [f"model.language_model.layers.{layer}.mlp.{kind}_moe" for layer in (1, 2) for kind in ("text", "vision")],
        "experts", "gate.weight", "",
    ),
    "NllbMoeForConditionalGeneration": (
        [f"model.{half}.layers.{layer}.ffn" for half in ("encoder", "decoder") for layer in (0, 1)],
        "experts", "router.classifier.weight", "",
    ),
}  # fmt: skip
COUNTED = sorted(name for name, (_, _, router, _) in FAMILIES.items() if name.endswith("CausalLM"))
CHANGES: dict[str, dict[str, Any]] = {"DeepseekV3ForCausalLM": {"head_dim": 8, "num_experts_per_tok": 2}}


def measure(checkpoint: StagedCheckpoint, **options: Any) -> MixtureExperts:
    return experts(checkpoint, progress=silent, **options)


def loaded(architecture: str, folder: Path) -> Any:
    """What transformers makes of the folder."""
    return getattr(transformers, architecture).from_pretrained(folder, dtype=torch.float32).eval()


def each_expert(module: Any) -> Iterator[np.ndarray]:
    """All numbers of each expert of a class, by hand: a module each, or a row of each parameter."""
    named = {name: each.detach().double().numpy() for name, each in module.named_parameters()}
    for number in range(4):
        if isinstance(module, torch.nn.ModuleDict):
            own = [each for name, each in named.items() if name.startswith(f"expert_{number}.")]
        else:
            own = [each[number] for each in named.values()]
        yield np.concatenate([each.ravel() for each in own])


@pytest.mark.parametrize("architecture", sorted(FAMILIES))
def test_norms_are_those_of_what_transformers_loads(architecture, open_model, saved_models):
    blocks, inside, router, shared = FAMILIES[architecture]
    changes = CHANGES.get(architecture, {})
    found = measure(open_model(architecture, **changes))
    model = loaded(architecture, saved_models(architecture, **changes))
    expected = []
    for path in blocks:
        block = model.get_submodule(path)
        rows = block.get_parameter(router).detach().double().numpy()
        for number, numbers in enumerate(each_expert(block.get_submodule(inside))):
            expected.append((path, number, np.linalg.norm(numbers), np.linalg.norm(rows[number])))
    table = found.experts.sort_values(["module", "expert"])
    assert [*zip(table["module"], table["expert"], strict=True)] == [each[:2] for each in sorted(expected)]
    assert table["norm"].to_numpy() == pytest.approx([each[2] for each in sorted(expected)], rel=1e-9)
    assert table["router_norm"].to_numpy() == pytest.approx([each[3] for each in sorted(expected)], rel=1e-9)
    assert not bool(table["zero"].any())
    assert bool(table["finite"].all())
    assert found.duplicates == ()
    assert (found.tokens, found.warnings) == (None, ())
    assert bool(table["used"].isna().all())
    norms = {
        f"{path}.{shared}": np.linalg.norm(
            np.concatenate([p.detach().double().ravel() for p in model.get_submodule(f"{path}.{shared}").parameters()])
        )
        for path in blocks
        if shared
    }
    listed = dict(zip(found.shared["module"], found.shared["norm"], strict=True))
    assert {path: listed[path] for path in norms} == pytest.approx(norms, rel=1e-9)


def test_a_shared_module_beside_the_block_is_listed(open_model, saved_models):
    found = measure(open_model("GraniteMoeSharedForCausalLM"))
    model = loaded("GraniteMoeSharedForCausalLM", saved_models("GraniteMoeSharedForCausalLM"))
    assert found.shared["module"].tolist() == [f"model.layers.{layer}.shared_mlp" for layer in (0, 1)]
    parameters = [sum(p.numel() for p in model.model.layers[layer].shared_mlp.parameters()) for layer in (0, 1)]
    assert found.shared["parameters"].tolist() == parameters


def test_biases_of_a_router_are_told_apart(open_model, saved_models):
    gpt_oss = measure(open_model("GptOssForCausalLM")).experts
    model = loaded("GptOssForCausalLM", saved_models("GptOssForCausalLM"))
    biases = [value for layer in model.model.layers for value in layer.mlp.router.bias.tolist()]
    assert gpt_oss["router_bias"].tolist() == pytest.approx(biases)
    assert bool(gpt_oss["selection_bias"].isna().all())
    changes = CHANGES["DeepseekV3ForCausalLM"]
    deepseek = measure(open_model("DeepseekV3ForCausalLM", **changes)).experts
    assert bool(deepseek["router_bias"].isna().all())
    assert deepseek["selection_bias"].tolist() == [0.0] * 4


def routed(model: Any, path: str, router: str, ids: list[int]) -> list[int]:
    """Tokens by expert, from the states that the router is given and its own weights, by hand."""
    owner = model.get_submodule(f"{path}.{router}".rpartition(".")[0])
    seen: list[torch.Tensor] = []
    hook = owner.register_forward_pre_hook(lambda _, given: seen.append(given[0].detach()))
    with torch.no_grad():
        model(input_ids=torch.tensor([ids]))
    hook.remove()
    states = seen[0].reshape(len(ids), -1).double()
    scores = states @ owner.weight.detach().double().T
    bias = getattr(owner, "bias", None)
    scores = scores if bias is None else scores + bias.detach().double()
    top = scores.topk(model.config.num_experts_per_tok, dim=-1).indices
    return torch.bincount(top.ravel(), minlength=4).tolist()


@pytest.mark.parametrize("architecture", COUNTED)
def test_uses_are_the_experts_with_the_highest_scores(architecture, open_model, saved_models):
    blocks, _, router, _ = FAMILIES[architecture]
    changes = CHANGES.get(architecture, {}) | {"num_experts_per_tok": 2}
    checkpoint = open_model(architecture, **changes)
    found = measure(checkpoint, text=TEXT, device="cpu", dtype="float32")
    model = loaded(architecture, saved_models(architecture, **changes))
    ids = checkpoint.require_tokens().encode(TEXT).ids
    used = {path: rows["used"].tolist() for path, rows in found.experts.groupby("module")}
    assert used == {path: routed(model, path, router, [*ids]) for path in blocks}
    assert (found.tokens, found.per_token) == (len(ids), 2)
    assert all(sum(each) == 2 * len(ids) for each in used.values())


def test_a_streamed_model_counts_the_same(open_model):
    whole, streamed = (
        measure(open_model("MixtralForCausalLM"), text=TEXT, device=device, dtype="float32")
        for device in ("cpu", "stream")
    )
    assert whole.experts["used"].tolist() == streamed.experts["used"].tolist()


def test_choices_that_a_class_does_not_pass_on_are_not_counted(open_model):
    found = measure(open_model("JetMoeForCausalLM"), text=TEXT)
    assert bool(found.experts["used"].isna().all())
    assert "could not be counted" in words.headline(found)
    assert "4 of 4 routers" in found.warnings[0]
    assert [figure.name for figure in view(found, ExpertsRequest(), name="m").figures] == ["expert_norms"]


@pytest.fixture
def planted(tmp_path: Path, open_path: Any, saved_models: Callable[..., Path]) -> Callable[..., StagedCheckpoint]:
    """Open a copy of a small model whose files were changed."""

    def opened(
        architecture: str, change: Callable[[dict[str, torch.Tensor]], None], **changes: Any
    ) -> StagedCheckpoint:
        folder = tmp_path / "planted"
        model = random_model(architecture, **changes)
        save_checkpoint(model, folder)
        tensors = load_file(folder / "model.safetensors")
        change(tensors)
        save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
        return open_path(folder)

    return opened


def names_of(tensors: dict[str, torch.Tensor], expert: int, layer: int) -> list[str]:
    return [name for name in tensors if f"layers.{layer}." in name and f"experts.{expert}." in name]


def test_planted_copies_and_zeros_are_found_where_experts_are_split(planted):
    def change(tensors: dict[str, torch.Tensor]) -> None:
        for name in names_of(tensors, 2, 0):
            tensors[name] = tensors[name.replace("experts.2.", "experts.0.")].clone()
        for name in names_of(tensors, 3, 1):
            tensors[name] = tensors[name.replace("layers.1.", "layers.0.").replace("experts.3.", "experts.1.")].clone()
        for name in names_of(tensors, 1, 1):
            tensors[name].zero_()

    found = measure(planted("MixtralForCausalLM", change))
    first, second = "model.layers.0.mlp", "model.layers.1.mlp"
    assert found.duplicates == (
        (ExpertPlace(first, 0), ExpertPlace(first, 2)),
        (ExpertPlace(first, 1), ExpertPlace(second, 3)),
    )
    assert found.experts.loc[found.experts["zero"], ["module", "expert"]].to_numpy().tolist() == [[second, 1]]
    assert words.judged(found) == "warning"
    assert words.headline(found) == (
        "2 routers of MixtralForCausalLM choose among 4 experts each. 1 expert holds only zeros: "
        "model.layers.1.mlp[1]. 2 groups of experts hold the same numbers, such as model.layers.0.mlp[0], "
        f"model.layers.0.mlp[2]. {words.NOT_ROUTING}"
    )


def test_planted_copies_and_zeros_are_found_where_experts_are_fused(planted):
    def change(tensors: dict[str, torch.Tensor]) -> None:
        for name, tensor in tensors.items():
            if "layers.0.mlp.experts." in name:
                tensor[3] = tensor[1]
            if "layers.1.mlp.experts." in name:
                tensor[0] = 0

    found = measure(planted("GptOssForCausalLM", change))
    assert found.duplicates == ((ExpertPlace("model.layers.0.mlp", 1), ExpertPlace("model.layers.0.mlp", 3)),)
    assert found.experts["zero"].tolist() == [False] * 4 + [True] + [False] * 3


@pytest.mark.parametrize(("zeros", "said"), [(0, True), (1, True), (2, False), (8, False)])
def test_experts_of_only_zeros_hold_the_same_numbers(planted, zeros, said):
    def change(tensors: dict[str, torch.Tensor]) -> None:
        for place in range(zeros):
            for name in names_of(tensors, place % 4, place // 4):
                tensors[name].zero_()

    found = measure(planted("MixtralForCausalLM", change))
    assert found.experts["zero"].tolist().count(True) == zeros
    assert ("No two experts hold the same numbers." in words.headline(found)) is said


ERNIE = "Ernie4_5_VLMoeForConditionalGeneration"


def test_experts_that_two_blocks_are_made_of_belong_to_one_each(open_model, saved_models):
    found = measure(open_model(ERNIE), text=TEXT, device="cpu", dtype="float32")
    model = loaded(ERNIE, saved_models(ERNIE))
    blocks = FAMILIES[ERNIE][0]
    biases = [model.get_submodule(path).gate.moe_statics.e_score_correction_bias.ravel() for path in blocks]
    assert found.experts["selection_bias"].tolist() == pytest.approx(torch.cat(biases).tolist())
    assert found.shared["module"].tolist() == [
        f"model.language_model.layers.{layer}.mlp.shared_experts" for layer in (1, 2)
    ]
    used = {path: rows["used"].tolist() for path, rows in found.experts.groupby("module")}
    assert all(sum(used[path]) == 2 * (found.tokens or 0) for path in blocks if "text" in path)
    assert all(used[path] == [None] * 4 for path in blocks if "vision" in path)
    assert found.warnings == (
        f"What 2 of 4 routers chose is not counted, because {words.NOT_RUN}: {blocks[1]}, {blocks[3]}.",
    )


def test_copies_are_found_in_experts_that_two_blocks_are_made_of(planted):
    def change(tensors: dict[str, torch.Tensor]) -> None:
        for name in names_of(tensors, 6, 1):  # of 8, the last 4 are for images
            tensors[name] = tensors[name.replace("experts.6.", "experts.4.")].clone()
        for name in names_of(tensors, 3, 2):
            tensors[name].zero_()

    found = measure(planted(ERNIE, change))
    text, image, *_ = FAMILIES[ERNIE][0]
    assert found.duplicates == ((ExpertPlace(image, 0), ExpertPlace(image, 2)),)
    assert found.experts.loc[found.experts["zero"], ["module", "expert"]].to_numpy().tolist() == [
        [text.replace("layers.1", "layers.2"), 3]
    ]


@pytest.mark.parametrize("lost", [(2,), (2, 6), (7,)])
def test_what_is_split_is_not_measured_unless_all_of_it_is_there(planted, monkeypatch, lost):
    made: list[str] = []
    make = TensorRecipe.make
    monkeypatch.setattr(TensorRecipe, "make", lambda self, *given: (made.append(self.place), make(self, *given))[1])

    def change(tensors: dict[str, torch.Tensor]) -> None:
        for expert in lost:
            for name in names_of(tensors, expert, 1):
                del tensors[name]

    found = measure(planted(ERNIE, change))
    assert found.experts["norm"].isna().tolist() == [True] * 8 + [False] * 8
    assert found.duplicates == ()
    assert "8 experts are not measured" in found.warnings[0]
    assert max(Counter(made).values()) <= 2  # once for each of the two blocks, and not for each expert


@pytest.mark.parametrize("architecture", sorted(name for name in FAMILIES if name.startswith(("Switch", "Nllb"))))
@pytest.mark.parametrize("count", [1, 2, 8])
def test_what_a_decoder_sees_is_not_the_texts(open_model, monkeypatch, architecture, count):
    checkpoint = open_model(architecture)
    whole = checkpoint.require_tokens().encode(TEXT)
    cut = Encoded(*(each[:count] for each in (whole.ids, whole.type_ids, whole.tokens)))
    monkeypatch.setattr(Tokens, "encode", lambda *_: cut)
    found = measure(checkpoint, text=TEXT, device="cpu", dtype="float32")
    assert found.tokens == count
    blocks = {half: [path for path in FAMILIES[architecture][0] if half in path] for half in ("encoder", "decoder")}
    used = {path: rows["used"].tolist() for path, rows in found.experts.groupby("module")}
    assert all(sum(used[path]) in (found.tokens, 2 * (found.tokens or 0)) for path in blocks["encoder"])
    assert all(used[path] == [None] * 4 for path in blocks["decoder"])
    assert found.warnings == (
        f"What {len(blocks['decoder'])} of {2 * len(blocks['decoder'])} routers chose is not counted, because "
        f"{words.OTHER_TOKENS}: {', '.join(blocks['decoder'])}.",
    )
    idle = sum(each == 0 for path in blocks["encoder"] for each in used[path])
    assert f"in a layer: {idle:,} expert" in words.headline(found)


def test_one_number_apart_is_no_copy(planted):
    def change(tensors: dict[str, torch.Tensor]) -> None:
        for name in names_of(tensors, 2, 0):
            tensors[name] = tensors[name.replace("experts.2.", "experts.0.")].flip(0).clone()  # of the same norm

    assert measure(planted("Qwen3MoeForCausalLM", change)).duplicates == ()


def test_an_expert_with_nan_is_a_problem_and_no_copy(planted):
    def change(tensors: dict[str, torch.Tensor]) -> None:
        for expert in (0, 1):
            for name in names_of(tensors, expert, 1):
                tensors[name].fill_(torch.nan)

    found = measure(planted("OlmoeForCausalLM", change))
    assert found.experts["finite"].tolist() == [True] * 4 + [False] * 2 + [True] * 2
    assert found.duplicates == ()
    assert words.judged(found) == "problem"
    assert "2 experts contain NaN or infinity: model.layers.1.mlp[0], model.layers.1.mlp[1]." in words.headline(found)


def test_what_the_files_lack_has_no_norm(planted):
    def change(tensors: dict[str, torch.Tensor]) -> None:
        del tensors[names_of(tensors, 2, 0)[0]]

    found = measure(planted("OlmoeForCausalLM", change))
    assert found.experts["norm"].isna().tolist() == [False, False, True] + [False] * 5
    assert found.warnings == (
        "1 expert is not measured, because the files do not hold all of it as numbers: model.layers.0.mlp[2].",
    )
    plain = to_json(found)
    assert plain["experts"][2]["norm"] is None
    assert plain["warnings"] == [*found.warnings]


def test_experts_without_weights_have_a_row_of_the_router_alone(open_model, saved_models):
    found = measure(open_model("LongcatFlashForCausalLM"))
    model = loaded("LongcatFlashForCausalLM", saved_models("LongcatFlashForCausalLM"))
    rows = model.model.layers[0].mlp.router.classifier.weight.detach().double().norm(dim=1)
    first = found.experts[found.experts["module"] == "model.layers.0.mlp"]
    assert np.isnan(np.array(first["norm"], float)).tolist() == [False] * 4 + [True] * 2
    assert first["router_norm"].tolist() == pytest.approx(rows.tolist())


REFUSED = {
    "LlamaForCausalLM": {},
    "BertForMaskedLM": {},
    "T5ForConditionalGeneration": {},
    "DbrxForCausalLM": {
        "d_model": 32, "n_heads": 2, "n_layers": 1, "max_seq_len": 64, "vocab_size": 60,
        "attn_config": {"kv_n_heads": 2, "rope_theta": 500.0, "clip_qkv": 8.0},
        "ffn_config": {"ffn_hidden_size": 48, "hidden_size": 32, "moe_num_experts": 4, "moe_top_k": 2},
    },
    "DogeForCausalLM": {
        "vocab_size": 60, "hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2,
        "num_key_value_heads": 2, "intermediate_size": 48, "is_moe": True, "num_experts": 16,
    },
}  # fmt: skip


@pytest.mark.parametrize("architecture", REFUSED)
def test_where_no_experts_are_found_one_true_sentence_says_so(open_model, open_path, tmp_path, architecture):
    if REFUSED[architecture]:
        model_class = getattr(transformers, architecture)
        model = model_class(model_class.config_class(**REFUSED[architecture]))
        checkpoint = open_path(save_checkpoint(model, tmp_path / architecture))
    else:
        checkpoint = open_model(architecture)
    with pytest.raises(NotInCheckpointError) as refused:
        measure(checkpoint)
    assert str(refused.value) == (
        f"No experts are known in {architecture}: its class, {architecture}, has none, or keeps them or their router "
        "in a way that is not read here."
    )


def test_the_picture_has_a_cell_for_each_expert(planted):
    def change(tensors: dict[str, torch.Tensor]) -> None:
        for name in names_of(tensors, 1, 0):
            tensors[name].zero_()

    found = measure(planted("Qwen3MoeForCausalLM", change), text=TEXT)
    norms = expert_map(found.experts, value="norm", title="t", subtitle="s", theme=LIGHT).data[0]
    uses = expert_map(found.experts, value="used", title="t", subtitle="s", theme=LIGHT).data[0]
    assert np.array(norms.z).T.ravel() == pytest.approx(found.experts["norm"].to_numpy())
    assert np.array(uses.z).T.ravel().tolist() == found.experts["used"].tolist()
    assert norms.text[1][0] == "∅"
    assert "only zeros" in norms.hovertext[1][0]
    shown = view(found, ExpertsRequest(text=TEXT), name="m")
    assert [figure.name for figure in shown.figures] == ["expert_norms", "expert_uses"]
    assert shown.picture is not None
    assert isinstance(shown.picture.text, Grid)
    assert shown.picture.text.cells[1][0] == "∅"


def test_blocks_that_share_a_layer_have_names_of_their_own(open_model):
    found = measure(open_model("JetMoeForCausalLM"))
    labels = layer_labels(found.experts)
    assert len(set(labels.values())) == len(labels) == 4
    assert layer_labels(measure(open_model("MixtralForCausalLM")).experts) == {
        "model.layers.0.mlp": "0",
        "model.layers.1.mlp": "1",
    }


def test_codes_are_dequantized(tmp_path, open_path):
    folder = save_checkpoint(random_model("MixtralForCausalLM"), tmp_path / "coded")
    tensors = load_file(folder / "model.safetensors")
    numbers = []
    for name in names_of(tensors, 0, 0):
        codes = (tensors.pop(name) / SCALE).to(torch.float8_e4m3fn)
        tensors |= {name: codes, f"{name}_scale_inv": torch.full((1, 1), SCALE)}
        numbers.append(codes.double().ravel() * SCALE)
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    config = json.loads((folder / "config.json").read_text("utf-8"))
    (folder / "config.json").write_text(json.dumps(config | {"quantization_config": FINE_GRAINED}), "utf-8")
    found = measure(open_path(folder))
    # Dequantized, a number has the precision of bfloat16.
    assert float(found.experts["norm"].iloc[0]) == pytest.approx(float(torch.cat(numbers).norm()), rel=2e-3)


@pytest.mark.parametrize(
    ("architecture", "asked"), [("GraniteMoeSharedForCausalLM", True), ("LlamaForCausalLM", False)]
)
def test_a_report_of_a_mixture_measures_its_experts(open_model, architecture, asked):
    checkpoint = open_model(architecture)
    overview = answer("overview", checkpoint, progress=silent)
    context: Any = SimpleNamespace(overview=overview, setting=SimpleNamespace(text=TEXT))
    assert [each.verb for each in SECTION.ask(context)] == ["classes", "experts"][: 1 + asked]
    assert bool(answer("classes", checkpoint, text=TEXT, progress=silent).mixtures) is asked
