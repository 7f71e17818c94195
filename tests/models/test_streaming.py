"""A model that memory does not hold answers to the bit as the same model loaded whole."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from inspector.analyses.contrast.compute import contrast
from inspector.analyses.heads.compute import heads
from inspector.analyses.ladder.compute import climb
from inspector.analyses.lens.compute import lens
from inspector.analyses.masked_lm.compute import predict, predict_many
from inspector.analyses.masked_lm.result import Prediction
from inspector.analyses.padding.compute import padding
from inspector.analyses.placement.compute import placement
from inspector.analyses.placement.words import NO_BLOCKS
from inspector.analyses.plausibility.compute import plausibility
from inspector.errors import RequestError
from inspector.models.checkpoint import StagedCheckpoint
from inspector.models.loading import load, plan_for
from inspector.models.placing.routing import AT_ONCE
from inspector.models.placing.streaming import stream_model
from inspector.models.running import Loaded, forward
from tests.conftest import silent
from tests.families import ENCODER_DECODER, MODELS, RENAMED, UNLISTED, random_model, save_checkpoint
from tests.models import alike
from tests.models.quantized_files import FINE_GRAINED, IN_GPTQ, in_four_bits_by_gptq

FAMILIES = sorted({*MODELS, *ENCODER_DECODER, *UNLISTED, *RENAMED})
CHANGES: dict[str, dict[str, Any]] = {"DeepseekV3ForCausalLM": {"head_dim": 8}}  # as large as what turns
TEXT, MASKED = "w1 w2 w3 ##a w30", "w1 w2 [MASK] w30"
IDS = torch.tensor([[2, 7, 9, 11, 3]])
# How fast it ran, and how it was run, which is said of the streamed one alone.
PASSING = {"milliseconds", "warnings", "memory_nbytes", "note"}


def within(checkpoint: StagedCheckpoint, nbytes: int) -> StagedCheckpoint:
    """The same checkpoint where weights may take so many bytes."""
    return StagedCheckpoint(checkpoint.manifest, settings=replace(checkpoint.settings, model_nbytes=nbytes))


def too_small(checkpoint: StagedCheckpoint, task: str = "base") -> StagedCheckpoint:
    """The same checkpoint where weights may take less than there are."""
    return within(checkpoint, int(0.8 * plan_for(checkpoint, task).nbytes))


def same(analysis: Callable[..., Any], plain: StagedCheckpoint, small: StagedCheckpoint, **parameters: Any) -> Any:
    """Ask both checkpoints and have their answers equal to the bit; returns the streamed one."""
    whole = analysis(plain, progress=silent, **parameters)
    streamed = analysis(small, progress=silent, **parameters)
    alike.same(streamed, whole, leaving=PASSING)
    assert [text for text in streamed.warnings if not text.startswith("Streamed")] == list(whole.warnings)
    return streamed


def blocks_told(told: list[str]) -> list[str]:
    """What was said about blocks, whatever the seconds."""
    return [re.sub(r"[\d,]+ s left", "N s left", text) for text in told if "Block" in text]


@pytest.mark.parametrize("architecture", FAMILIES)
def test_every_family_answers_as_when_it_is_whole(open_model, architecture):
    plain = open_model(architecture, **CHANGES.get(architecture, {}))
    small = too_small(plain)
    found = same(lens, plain, small, text=TEXT, k=4, pins=["w3"])
    assert found.dtype == "float32"
    (task,) = {task for task, *_ in small.kept["plans"]}
    model = load(small, task).model
    assert any(parameter.is_meta for parameter in model.parameters())
    stored = set(model.state_dict())
    assert not any(buffer.is_meta for name, buffer in model.named_buffers() if name not in stored)
    assert any(text.startswith("Streamed in float32: every pass reads ") for text in found.warnings)
    same_predictions(plain, small)


def same_predictions(plain: StagedCheckpoint, small: StagedCheckpoint) -> None:
    """What the head of a language model predicts is the same to the bit, too."""
    if plain.heads["masked_lm"] == "present":
        same(predict, plain, small, text=MASKED)
    elif plain.heads["causal_lm"] == "present":
        same(heads, plain, small, head="causal_lm", text=TEXT, new_tokens=2)


@pytest.mark.parametrize("architecture", ["BertForMaskedLM", "LlamaForCausalLM", "MixtralForCausalLM"])
@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
def test_half_precision(tmp_path, open_path, architecture, dtype):
    model = random_model(architecture).to(torch.bfloat16)
    plain = open_path(save_checkpoint(model, tmp_path / "half"))
    task = "masked_lm" if "Masked" in architecture else "causal_lm"
    whole: Any = forward(load(plain, task, device="cpu", dtype=dtype), IDS, head=True, every_layer=True)
    streamed = load(plain, task, device="stream", dtype=dtype)
    found: Any = forward(streamed, IDS, head=True, every_layer=True)
    assert found.logits.dtype == getattr(torch, dtype)
    assert torch.equal(found.logits, whole.logits)
    assert all(map(torch.equal, found.hidden_states, whole.hidden_states))


@pytest.mark.parametrize("architecture", sorted(MODELS))
@pytest.mark.parametrize(("dtype", "share"), [("bfloat16", "1 %"), ("float16", "0.1 %")])
def test_half_precision_costs_what_the_plan_says(tmp_path, open_path, architecture, dtype, share):
    """Streamed in half precision and in float32, the same files: the mean distance of their logits."""
    half = getattr(torch, dtype)
    plain = open_path(save_checkpoint(random_model(architecture).to(half), tmp_path / "half"))
    task = next(task for task in ("masked_lm", "causal_lm") if plain.heads[task] == "present")
    logits = []
    for precision in ("float32", dtype):
        streamed = load(plain, task, device="stream", dtype=precision)
        found: Any = forward(streamed, IDS, head=True)
        logits.append(found.logits.float())
    apart = float((logits[1] - logits[0]).norm() / logits[0].norm())
    expected = float(share.removesuffix(" %")) / 100
    assert 0.3 * expected < apart < 1.5 * expected
    assert f"differ from those in float32 by about {share}," in streamed.reason
    assert "significant bits" not in load(plain, task, device="stream", dtype="float32").reason


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("architecture", ["BertForMaskedLM", "LlamaForCausalLM", "T5ForConditionalGeneration"])
def test_ties_are_those_of_the_whole_model(open_model, architecture, tied):
    plain = open_model(architecture, tie_word_embeddings=tied)
    same(lens, plain, too_small(plain), text=TEXT)
    task = {"B": "masked_lm", "L": "causal_lm", "T": "seq2seq_lm"}[architecture[0]]
    model: Any = load(plain, task, device="stream").model
    whole: Any = load(plain, task, device="cpu").model
    streamed_ties, ties = (
        each.get_output_embeddings().weight.data_ptr() == each.get_input_embeddings().weight.data_ptr()
        for each in (model, whole)
    )
    assert streamed_ties == ties
    assert ties == tied or architecture.startswith("T5")  # whose class ties whatever its config says


def test_what_is_mapped_is_not_copied(open_model):
    """In the stored dtype a block's weights and what is beside it are the files' own pages."""
    plain = open_model("LlamaForCausalLM")
    stream: Any = load(plain, "causal_lm", device="stream").stream
    name = "model.layers.0.mlp.up_proj.weight"
    (made,) = stream.make([name]).values()
    assert not made.untyped_storage().resizable()  # memory that torch did not get itself
    assert stream.model.get_parameter(name).is_meta
    assert not stream.model.get_input_embeddings().weight.untyped_storage().resizable()


def test_quantized_weights_are_read_a_block_at_a_time(stored):
    checkpoint = stored(in_four_bits_by_gptq(7), quantization=IN_GPTQ)
    small = too_small(checkpoint, "masked_lm")
    same(predict, checkpoint, small, text=MASKED)
    assert load(small, "masked_lm").stream
    assert "state" not in vars(small), "only a block at a time was read"


@pytest.mark.parametrize(
    ("analysis", "parameters"),
    [
        (predict, {"text": MASKED, "targets": ("w3", "w4 w5")}),
        (lens, {"text": TEXT}),
        (climb, {"text": TEXT, "position": 1, "pins": ["w3"]}),
        (plausibility, {"text": TEXT}),
        (contrast, {"first": MASKED, "second": "w3 w2 [MASK] w5"}),
        (heads, {"text": MASKED}),
    ],
)  # fmt: skip
def test_every_question_streams_and_says_so(open_model, analysis, parameters):
    plain = open_model("BertForMaskedLM")
    found = same(analysis, plain, too_small(plain, "masked_lm"), **parameters)
    told = [getattr(found, "note", ""), *found.warnings]
    assert any("Streamed in float32" in text for text in told)


@pytest.mark.parametrize("architecture", ["GPT2LMHeadModel", "LlamaForCausalLM", "MixtralForCausalLM"])
def test_perplexity_streams_in_one_pass(open_model, architecture):
    plain = open_model(architecture, num_hidden_layers=3)
    small = too_small(plain)
    told: list[str] = []
    small_progress = lambda _, text: told.append(text)  # noqa: E731
    found = same(plausibility, plain, small, text=TEXT)
    assert any("Streamed in float32" in text for text in found.warnings)
    plausibility(small, progress=small_progress, text=TEXT)
    assert blocks_told(told) == ["Block 1 of 3", *(f"Block {number} of 3, N s left" for number in (1, 2, 3))]


def test_several_texts_share_one_pass(open_model):
    """Asked at once, one by one as they wait, or as two texts of one question: each block is read once."""
    plain = open_model("BertForMaskedLM", num_hidden_layers=3)
    small = too_small(plain, "masked_lm")
    texts = (MASKED, "w3 w2 [MASK] w5", "w1 [MASK] w2 w4")
    told: list[str] = []
    each_block = [f"Block {number} of 3" for number in (1, 1, 2, 3)]  # the first again when its time is known

    def blocks() -> list[str]:
        found = [re.sub(",.*", "", text) for text in told if text.startswith("Block")]
        told.clear()
        return found

    def tell(_: float | None, text: str) -> None:
        told.append(text)

    found = predict_many(small, [{"text": text} for text in texts], progress=tell)
    assert blocks() == each_block
    answers = [each for each in found if isinstance(each, Prediction)]
    assert [each.masks[0].predictions["token_id"].tolist() for each in answers] == [
        predict(plain, progress=silent, text=text).masks[0].predictions["token_id"].tolist() for text in texts
    ]
    contrast(small, progress=tell, first=texts[0], second=texts[1])
    assert blocks() == each_block
    padding(small, progress=tell, text="w1 w2\nw3\nw4 w5 w6")
    assert blocks() == each_block


@pytest.mark.parametrize(
    ("architecture", "parameters"),
    [
        ("BertForSequenceClassification", {}),
        ("BertForTokenClassification", {}),
        ("BertForQuestionAnswering", {"pair": "w3 w2 w5"}),
        ("BertForMultipleChoice", {"choices": ("w3", "w2 w5")}),
        ("BertForNextSentencePrediction", {"pair": "w3 w2 w5"}),
        ("GPT2LMHeadModel", {"new_tokens": 4}),
        ("LlamaForCausalLM", {"new_tokens": 4}),
    ],
)
def test_task_heads(open_model, architecture, parameters):
    plain = open_model(architecture)
    same(heads, plain, too_small(plain), text=TEXT, **parameters)


def test_each_block_is_told_and_can_be_stopped_at(open_model):
    plain = open_model("LlamaForCausalLM", num_hidden_layers=4)
    told: list[str] = []
    lens(plain, progress=lambda _, text: told.append(text), text=TEXT, device="stream")
    assert blocks_told(told) == ["Block 1 of 4", *(f"Block {number} of 4, N s left" for number in (1, 2, 3, 4))]

    class StoppedError(Exception):
        pass

    def stop(_: float | None, text: str) -> None:
        if text.startswith("Block 2 of 4"):
            raise StoppedError

    with pytest.raises(StoppedError):
        lens(plain, progress=stop, text=TEXT, device="stream")
    model = load(plain, "causal_lm", device="stream").model
    assert all(parameter.is_meta for parameter in model.model.layers.parameters())


def test_the_plan_is_shown_before_anything_is_read(open_model):
    plain = open_model("LlamaForCausalLM")
    plan = placement(too_small(plain), progress=silent)
    layers = sum(4 * p.numel() for n, p in random_model("LlamaForCausalLM").named_parameters() if ".layers." in n)
    assert (plan.streamed, plan.spread, plan.dtype) == (True, False, "float32")
    assert {place.device: place.nbytes for place in plan.places} == {"cpu": plan.nbytes - layers, "disk": layers}
    assert plan.reason == (
        f"Streamed in float32: every pass reads 2 blocks of layers ({layers / 1e6:.1f} MB) from the files, one "
        f"at a time; the model has {plan.nbytes / 1e6:.1f} MB in total, and the limit for weights on cpu is "
        f"{(plan.places[0].allowed_nbytes or 0) / 1e6:.1f} MB."
    )
    assert not placement(plain, progress=silent).streamed


def test_a_block_that_is_too_large_alone_is_refused(tmp_path, open_path):
    model = random_model("LlamaForCausalLM").to(torch.bfloat16)
    plain = open_path(save_checkpoint(model, tmp_path / "half"))
    tiny = within(plain, 1_000)
    lens(tiny, progress=silent, text=TEXT)  # in the stored dtype nothing is copied
    with pytest.raises(
        RequestError, match=r"^To stream half as LlamaForCausalLM, .* choose the precision of its files"
    ):
        lens(tiny, progress=silent, text=TEXT, dtype="float32")


def test_a_model_without_a_list_of_layers_is_refused(open_model):
    plain = open_model("LlamaForCausalLM", num_hidden_layers=0)
    with pytest.raises(RequestError, match=r"^LlamaForCausalLM has no list of layers .* set INSPECTOR_MODEL_MB"):
        lens(plain, progress=silent, text=TEXT, device="stream")
    *_, stream = placement(plain, progress=silent).ways
    assert (stream.fits, stream.note) == (False, NO_BLOCKS)


MIXTURES = {
    "MixtralForCausalLM": {"num_local_experts": 8},
    "Qwen2MoeForCausalLM": {"num_experts": 8},
    "DeepseekV3ForCausalLM": {"n_routed_experts": 8, "head_dim": 8},
}


@pytest.fixture(params=sorted(MIXTURES))
def mixture(request, tmp_path, open_path) -> Callable[..., StagedCheckpoint]:
    """Save a mixture of eight experts a layer, of which a token uses two."""

    def make(*, coded: bool, dtype: torch.dtype) -> StagedCheckpoint:
        model = random_model(request.param, **MIXTURES[request.param]).to(dtype)
        folder = save_checkpoint(model, tmp_path / "mixture")
        if coded:
            state = load_file(folder / "model.safetensors")
            for name in [name for name in state if re.search(r"experts\.\d+\..*weight$", name)]:
                scale = state[name].abs().max().float() / 448
                state[f"{name}_scale_inv"] = scale.reshape(1, 1)
                state[name] = (state[name].float() / scale).to(torch.float8_e4m3fn)
            save_file(state, folder / "model.safetensors", metadata={"format": "pt"})
            config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
            config["quantization_config"] = FINE_GRAINED
            (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
        return open_path(folder)

    return make


@pytest.mark.parametrize("at_once", [1, AT_ONCE])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("coded", [False, True])
def test_only_the_experts_that_tokens_are_routed_to_are_read(mixture, monkeypatch, coded, dtype, at_once):
    plain = mixture(coded=coded, dtype=dtype)
    loaded = load(plain, "causal_lm", device="cpu")
    routed: set[tuple[str, int]] = set()

    def note(name: str, index: torch.Tensor) -> None:
        routed.update((re.findall(r"layers\.\d+", name)[0], each) for each in index.unique().tolist())

    experts = [(name, module) for name, module in loaded.model.named_modules() if name.endswith(".experts")]
    for name, module in experts:
        module.register_forward_pre_hook(lambda _, args, name=name: note(name, args[1]))
    whole: Any = forward(loaded, IDS[:, :2], head=True, every_layer=True)
    assert 2 * len(experts) <= len(routed) < 5 * len(experts), "two tokens use four of eight experts at most"

    asked: list[str] = []
    plan = plan_for(plain, "causal_lm", device="stream")
    stream = stream_model(plain, "causal_lm", plan, experts_nbytes=at_once)
    streamed = Loaded(stream.model, plan.device, plan.dtype, stream=stream)
    read = plain.read
    monkeypatch.setattr(plain, "read", lambda names: asked.extend(names) or read(names))
    found: Any = forward(streamed, IDS[:, :2], head=True, every_layer=True)
    assert torch.equal(found.logits, whole.logits)
    assert all(map(torch.equal, found.hidden_states, whole.hidden_states))
    taken = {found.groups() for name in asked if (found := re.search(r"(layers\.\d+).*experts\.(\d+)\.", name))}
    assert {(layer, int(number)) for layer, number in taken} == routed
    assert all(module.num_experts == 8 for name, module in stream.model.named_modules() if name.endswith(".experts"))
    assert all(parameter.is_meta for parameter in stream.model.model.layers.parameters())


def test_experts_that_no_token_uses_need_no_memory(mixture):
    """The block as a whole is more than weights may take, and the experts of one pass are not."""
    plain = mixture(coded=True, dtype=torch.float32)
    expert = 4 * 3 * 48 * 32  # three matrices in float32
    beside = 4 * sum(p.numel() for n, p in plain.outlined[0].named_parameters() if ".experts." not in n)
    small = within(plain, beside + expert)
    with pytest.raises(RequestError, match=r"^To stream mixture as"):
        lens(small, progress=silent, text="w1 w2", device="stream")
    plan = plan_for(small, "causal_lm", device="stream")
    stream = stream_model(small, "causal_lm", plan, experts_nbytes=expert)
    found = forward(Loaded(stream.model, plan.device, plan.dtype, stream=stream), IDS[:, :2], head=True)
    whole = forward(load(plain, "causal_lm", device="cpu"), IDS[:, :2], head=True)
    assert found.logits is not None
    assert whole.logits is not None
    assert torch.equal(found.logits, whole.logits)
