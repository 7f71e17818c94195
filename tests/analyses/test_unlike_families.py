"""Families that count, name or keep something in another way than most: what is shown is what transformers does."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
import torch
import transformers
from safetensors.torch import load_file

from inspector.analyses.classes.compute import classes
from inspector.analyses.ladder.compute import climb
from inspector.analyses.lens.compute import lens
from inspector.analyses.overview.compute import overview
from inspector.analyses.placement.compute import placement
from inspector.analyses.training.compute import training
from inspector.errors import CheckpointError
from inspector.models.checkpoint import StagedCheckpoint
from inspector.models.reading.lens_run import decoder_start
from tests.conftest import silent
from tests.families import BART, DECODER, SIZES, STREAMS, UNLIKE, VOCAB, random_model, save_checkpoint

TEXT, DECODER_TEXT = "w1 w2 w3 ##a w30", "w5 w6 w7"
ON_CPU: Any = {"device": "cpu", "dtype": "float32"}
# Architecture -> layers, as the config class counts them: of LongCat's blocks each is two.
LAYERS = {
    "Gemma3nForCausalLM": 4,
    "DeepseekV4ForCausalLM": 3,
    "HYV4ForCausalLM": 2,
    "TrOCRForCausalLM": 2,
    "NemotronHForCausalLM": 3,
    "LongcatFlashForCausalLM": 4,
    "Inkling2ForCausalLM": 2,
    "HrmTextForCausalLM": 16,
    "FunnelForMaskedLM": 3,
    "FSMTForConditionalGeneration": 2,
    "ProphetNetForConditionalGeneration": 2,
    "T5GemmaForConditionalGeneration": 3,
    "EncoderDecoderModel": 3,
    "VisionEncoderDecoderModel": 3,
}
READ = sorted(UNLIKE.keys() - {"FunnelForMaskedLM", "VisionEncoderDecoderModel"})  # by the lens: one state a position
DECODES = ("ForConditionalGeneration", "EncoderDecoderModel")


def own_answer(checkpoint: StagedCheckpoint, folder, architecture: str) -> Any:
    """What transformers' own model answers to the texts."""
    model = getattr(transformers, architecture).from_pretrained(folder / architecture).eval()
    tokens = checkpoint.require_tokens()
    inputs = {"input_ids": torch.tensor([tokens.encode(TEXT).ids])}
    if architecture.endswith(DECODES):
        inputs["decoder_input_ids"] = torch.tensor([(decoder_start(checkpoint), *tokens.pieces(DECODER_TEXT))])
    with torch.inference_mode():
        return model, model(**inputs, use_cache=False, output_hidden_states=True)


def texts(architecture: str) -> dict[str, str]:
    return {"text": TEXT} | ({"decoder_text": DECODER_TEXT} if architecture.endswith(DECODES) else {})


@pytest.mark.parametrize("architecture", sorted(UNLIKE))
def test_layers_are_counted_as_the_class_counts_them(open_model, architecture):
    assert overview(open_model(architecture), progress=silent).layers == LAYERS[architecture]


@pytest.mark.parametrize("architecture", READ)
def test_the_last_layer_says_what_the_model_says(open_model, tmp_path, architecture):
    checkpoint = open_model(architecture)
    _, given = own_answer(checkpoint, tmp_path, architecture)
    logits = given.logits[0].float()
    result = lens(checkpoint, progress=silent, k=VOCAB, **texts(architecture), **ON_CPU)
    cells = result.cells.query("rung == 'logits'").sort_values(["position", "token_id"])
    assert cells["score"].tolist() == pytest.approx(logits.flatten().tolist(), abs=1e-4)
    assert cells["probability"].tolist() == pytest.approx(logits.softmax(dim=1).flatten().tolist(), abs=1e-5)
    way = climb(checkpoint, progress=silent, k=VOCAB, **texts(architecture), **ON_CPU)
    last = way.geometry.sort_values("token_id")
    assert last["logit"].tolist() == pytest.approx(logits[-1].tolist(), abs=1e-4)


def merged(model: Any, state: torch.Tensor) -> torch.Tensor:
    """The vector that the head of a model with several streams reads: written out for Gemma 3n."""
    base = model.model
    if hasattr(base, "hc_head"):
        return base.hc_head(state)
    first, *others = state
    size = first.square().mean(dim=-1, keepdim=True).sqrt()
    read = [project(other) for project, other in zip(base.altup_unembed_projections, others, strict=True)]
    scaled = [each * size / each.square().mean(dim=-1, keepdim=True).clamp(min=1e-5).sqrt() for each in read]
    return torch.stack([first, *scaled]).mean(dim=0)


@pytest.mark.parametrize("device", ["cpu", "stream"])
@pytest.mark.parametrize("architecture", sorted(STREAMS))
def test_several_streams_are_read_as_the_head_reads_them(open_model, tmp_path, architecture, device):
    checkpoint = open_model(architecture)
    result = lens(checkpoint, progress=silent, text=TEXT, k=VOCAB, device=device, dtype="float32")
    model, given = own_answer(checkpoint, tmp_path, architecture)
    assert len(result.layers) == len(given.hidden_states)
    matrix = load_file(tmp_path / architecture / "model.safetensors")["model.embed_tokens.weight"]
    for layer, state in enumerate(given.hidden_states[:-1]):
        with torch.inference_mode():
            dots = merged(model, state)[0] @ matrix.T
        cells = result.cells.query(f"rung == 'dot' and layer == {layer}").sort_values(["position", "token_id"])
        assert cells["score"].tolist() == pytest.approx(dots.flatten().tolist(), abs=1e-3)
    assert any("several vectors for each position" in said for said in result.warnings)


def test_fsmt_is_read_as_it_generates(open_path, tmp_path):
    """Called with its cache on all positions at once, its class would let each see the later ones."""
    model = random_model("FSMTForConditionalGeneration")
    checkpoint = open_path(save_checkpoint(model, tmp_path / "fsmt"))
    ids = torch.tensor([checkpoint.require_tokens().encode(TEXT).ids])
    made = model.generate(ids, max_new_tokens=4, num_beams=1, do_sample=False, output_logits=True,
                          return_dict_in_generate=True, eos_token_id=-1, forced_eos_token_id=None)  # fmt: skip
    names = [checkpoint.require_tokens().visible(index) for index in made.sequences[0, 1:].tolist()]
    found = lens(checkpoint, progress=silent, text=TEXT, decoder_text=" ".join(names[:-1]), k=VOCAB, **ON_CPU)
    assert found.tokens[1:] == tuple(names[:-1])
    cells = found.cells.query("rung == 'logits'").sort_values(["position", "token_id"])
    assert cells["score"].tolist() == pytest.approx(torch.cat(made.logits).flatten().tolist(), abs=1e-4)
    with torch.inference_mode():
        usual = model(ids, decoder_input_ids=made.sequences[:, :-1]).logits
    apart = (usual - torch.cat(made.logits)[None]).abs().max().item()
    assert apart > 1e-3
    assert f"differ by up to {apart:.2g}. Shown are those without the cache." in " ".join(found.warnings)


@pytest.mark.parametrize("architecture", ["HrmTextForCausalLM", "PegasusForConditionalGeneration"])
def test_what_a_loader_freezes_is_in_no_group(open_model, tmp_path, architecture):
    plan = training(open_model(architecture), progress=silent, steps=2, warmup_steps=0)
    loaded = getattr(transformers, architecture).from_pretrained(tmp_path / architecture)
    frozen = {name for name, each in loaded.named_parameters() if not each.requires_grad}
    assert set(plan.frozen.names) == frozen
    given = {name for group in plan.groups for name in group.names}
    assert given == {name for name, _ in loaded.named_parameters()} - frozen
    assert any("requires_grad True" in said for said in plan.warnings) == (
        architecture == "PegasusForConditionalGeneration"
    )


@pytest.mark.parametrize("config_class", ["InternLM3Config", "IQuestCoderConfig", "LlamaConfig"])
def test_the_configuration_is_the_one_that_the_class_reads(open_path, tmp_path, config_class):
    config = getattr(transformers, config_class)(**DECODER)
    folder = save_checkpoint(transformers.LlamaForCausalLM(config), tmp_path / "model")
    result = classes(open_path(folder), progress=silent)
    assert result.config_class == type(transformers.LlamaForCausalLM.from_pretrained(folder).config).__name__
    auto = type(transformers.AutoModelForCausalLM.from_pretrained(folder).config).__name__
    assert [said for said in result.warnings if "Auto classes" in said] == (
        [] if auto == "LlamaConfig" else [
            f"transformers' Auto classes read this config.json as {auto}, as this page does, and "
            "LlamaForCausalLM.from_pretrained reads it as LlamaConfig: load it with an Auto class, which knows all of "
            "its settings."
        ]
    )  # fmt: skip


def test_a_model_that_counts_the_layers_of_each_stack_is_opened(open_path, tmp_path):
    sizes: dict[str, Any] = SIZES | {
        "hidden_size": 32, "num_attention_heads": 2, "intermediate_size": 48, "visual_feat_dim": 8,
        "l_layers": 2, "x_layers": 1, "r_layers": 1, "num_qa_labels": 4,
    }  # fmt: skip
    config = transformers.LxmertConfig(**sizes)
    model = transformers.LxmertModel(config)
    checkpoint = open_path(save_checkpoint(model, tmp_path / "stacks"))
    assert checkpoint.config.num_hidden_layers == {"vision": 1, "cross_encoder": 1, "language": 2}
    assert overview(checkpoint, progress=silent).unique_parameters == model.num_parameters()


@pytest.mark.parametrize(("size", "refused"), [(200_058, False), (3_000_000, True)])
def test_a_vocabulary_that_is_cut_may_show_in_no_shape(open_path, tmp_path, size, refused):
    folder = save_checkpoint(random_model("Inkling2ForCausalLM", unpadded_vocab_size=size), tmp_path / "cut")
    if refused:
        with pytest.raises(CheckpointError, match=r"sets unpadded_vocab_size to 3,000,000"):
            open_path(folder)
        return
    assert lens(open_path(folder), progress=silent, text=TEXT, **ON_CPU).layers[-1] == "2"


def test_a_part_of_a_larger_class_is_placed_as_its_own(open_path, tmp_path):
    """SeamlessM4T's class for text has no speech part, whose default sizes are a thousand times this file's."""
    sizes: dict[str, Any] = BART | SIZES | {"hidden_size": 32, "pad_token_id": 0}
    model = transformers.SeamlessM4TForTextToText(transformers.SeamlessM4TConfig(**sizes))
    checkpoint = open_path(save_checkpoint(model, tmp_path / "text"))
    found = placement(checkpoint, progress=silent, **ON_CPU)
    assert sum(place.nbytes for place in found.places) == 4 * model.num_parameters()
    with pytest.raises(CheckpointError) as error:
        placement(checkpoint, progress=silent, task="base", **ON_CPU)
    assert "another model" not in str(error.value)
    assert "its own class, SeamlessM4TForTextToText: what it holds is only a part of SeamlessM4TModel." in str(
        error.value
    )


@pytest.mark.parametrize("bare", [True, False])
def test_a_limit_without_an_upper_end_is_kept(open_path, tmp_path, bare):
    """Mamba-2's time steps: transformers writes infinity as an object, earlier files as a bare word."""
    sizes: dict[str, Any] = {"vocab_size": VOCAB, "hidden_size": 32, "num_hidden_layers": 2, "num_heads": 4}
    more: dict[str, Any] = {"head_dim": 16, "state_size": 16, "n_groups": 1, "time_step_limit": (2.0, math.inf)}
    torch.manual_seed(0)
    model = transformers.Mamba2ForCausalLM(transformers.Mamba2Config(**sizes | more))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.2)
    folder = save_checkpoint(model, tmp_path / "steps")
    said = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    assert said["time_step_limit"] == [2.0, {"__float__": "Infinity"}]
    if bare:
        said["time_step_limit"] = [2.0, math.inf]
        (folder / "config.json").write_text(json.dumps(said), encoding="utf-8")
    checkpoint = open_path(folder)
    assert checkpoint.manifest.warnings == ()
    assert tuple(checkpoint.config.time_step_limit) == (2.0, math.inf)
    ids = torch.tensor([checkpoint.require_tokens().encode(TEXT).ids])
    with torch.inference_mode():
        logits = transformers.Mamba2ForCausalLM.from_pretrained(folder).eval()(ids, use_cache=False).logits
    found = lens(checkpoint, progress=silent, text=TEXT, k=VOCAB, **ON_CPU)
    cells = found.cells.query("rung == 'logits' and layer == layer.max()").sort_values(["position", "token_id"])
    assert cells["score"].tolist() == pytest.approx(logits.flatten().tolist(), abs=1e-4)
    del said["time_step_limit"]
    (folder / "config.json").write_text(json.dumps(said), encoding="utf-8")
    with torch.inference_mode():
        other = transformers.Mamba2ForCausalLM.from_pretrained(folder).eval()(ids, use_cache=False).logits
    assert (other - logits).abs().max() > 1e-2, "the limit does nothing"
