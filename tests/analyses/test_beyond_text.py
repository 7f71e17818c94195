"""Models that read more than text, or read it unlike others: an answer, or a sentence that blames what is the cause."""

from __future__ import annotations

import json
from typing import Any

import pytest
import torch
import transformers

from inspector.analyses.classes.compute import classes
from inspector.analyses.heads.compute import heads
from inspector.analyses.ladder.compute import climb
from inspector.analyses.lens.compute import lens
from inspector.analyses.overview.compute import overview
from inspector.analyses.padding.compute import padding
from inspector.analyses.placement.compute import placement
from inspector.analyses.training.compute import training
from inspector.analyses.what_if.compute import what_if
from inspector.errors import CheckpointError, InspectorError, NotInCheckpointError
from inspector.models.loading import load
from tests.analyses.test_after_each_other import PARAMETERS
from tests.analyses.test_after_each_other import ask as ask_verb
from tests.conftest import silent
from tests.families import BART, DECODER, ENCODER, SIZES, save_checkpoint

TEXT = "w1 w2 w3 w4 w5 w6"
VISION: dict[str, Any] = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 2,
          "image_size": 16, "patch_size": 8, "num_channels": 3}  # fmt: skip
BERT: dict[str, Any] = ENCODER
WHISPER = BART | {"num_mel_bins": 8, "max_source_positions": 50, "max_target_positions": 64, "pad_token_id": 0,
                  "bos_token_id": 2, "eos_token_id": 3}  # fmt: skip
REFORMER = {"vocab_size": 60, "hidden_size": 32, "attention_head_size": 16, "num_attention_heads": 2,
            "feed_forward_size": 48, "axial_pos_shape": [8, 8], "axial_pos_embds_dim": [16, 16],
            "attn_layers": ["local", "local"], "max_position_embeddings": 64, "local_attn_chunk_length": 8}  # fmt: skip
PERCEIVER = {"vocab_size": 60, "d_model": 32, "num_latents": 8, "d_latents": 32, "num_self_attends_per_block": 2,
             "num_self_attention_heads": 2, "num_cross_attention_heads": 2, "max_position_embeddings": 64,
             "qk_channels": 16, "v_channels": 32, "num_blocks": 1}  # fmt: skip


def save(folder, architecture, **sizes):
    model_class = getattr(transformers, architecture)
    torch.manual_seed(0)
    return save_checkpoint(model_class(model_class.config_class(**sizes)).eval(), folder / architecture)


def save_pair(folder, model_class, encoder, decoder):
    config = model_class.config_class.from_encoder_decoder_configs(encoder, decoder)
    config.decoder_start_token_id, config.pad_token_id = 2, 0
    torch.manual_seed(0)
    return save_checkpoint(model_class(config).eval(), folder / "pair")


@pytest.fixture
def clip(tmp_path, open_path):
    text = ENCODER | {"projection_dim": 32, "pad_token_id": 0, "bos_token_id": 2, "eos_token_id": 3}
    return open_path(save(tmp_path, "CLIPModel", text_config=text, vision_config=VISION, projection_dim=32))


@pytest.mark.parametrize("architecture", ["WhisperForConditionalGeneration", "WhisperForCausalLM"])
def test_a_decoder_without_the_audio_that_it_describes_is_not_run(tmp_path, open_path, architecture):
    checkpoint = open_path(save(tmp_path, architecture, **WHISPER))
    for ask in (lens, climb, heads):
        with pytest.raises(NotInCheckpointError, match="predicts tokens from audio that its encoder reads"):
            ask(checkpoint, progress=silent, text=TEXT)


def test_a_decoder_of_images_is_not_run_without_one(tmp_path, open_path):
    vision, text = transformers.ViTConfig(**VISION), transformers.GPT2Config(vocab_size=60, n_embd=32, n_layer=2,
                                                                           n_head=2)  # fmt: skip
    folder = save_pair(tmp_path, transformers.VisionEncoderDecoderModel, vision, text)
    for ask in (lens, heads):
        with pytest.raises(NotInCheckpointError, match="predicts tokens from images that its encoder reads"):
            ask(open_path(folder), progress=silent, text=TEXT)


def test_a_model_of_two_encoders_is_answered_as_a_single_model(tmp_path, open_path):
    """Its configuration names no base model of its own."""
    bert = transformers.BertConfig(**BERT)
    folder = save_pair(tmp_path, transformers.EncoderDecoderModel, bert, bert)
    checkpoint = open_path(folder)
    assert placement(checkpoint, progress=silent).reason
    assert classes(checkpoint, progress=silent, text=TEXT).output is not None
    result = lens(checkpoint, progress=silent, text=TEXT, k=60, device="cpu", dtype="float32")
    model = transformers.EncoderDecoderModel.from_pretrained(folder).eval()
    ids = torch.tensor([checkpoint.tokens.encode(TEXT).ids])
    with torch.inference_mode():
        logits = model(input_ids=ids, decoder_input_ids=torch.tensor([[2]])).logits[0]
    cells = result.cells.query("rung == 'logits'").sort_values(["position", "token_id"])
    assert cells["score"].tolist() == pytest.approx(logits.flatten().tolist(), abs=1e-4)


def test_what_needs_an_image_is_not_blamed_on_the_config(clip):
    with pytest.raises(NotInCheckpointError, match="CLIPModel reads images and did not run without them") as refused:
        lens(clip, progress=silent, text=TEXT)
    assert "config.json" not in str(refused.value)


def test_a_model_whose_embedding_transformers_does_not_name(clip, tmp_path):
    model = transformers.CLIPModel.from_pretrained(tmp_path / "CLIPModel")
    plan = training(clip, progress=silent)
    assert sum(group.parameters for group in plan.groups) + plan.frozen.parameters == model.num_parameters()
    assert plan.example is None
    found = what_if(clip, progress=silent, change="untie", text=TEXT)
    matrix: Any = model.text_model.get_input_embeddings().weight
    assert (found.vocab, found.d_model) == tuple(matrix.shape)


def test_a_decoder_that_the_masked_class_refuses(tmp_path, open_path):
    folder = save(tmp_path, "ReformerModelWithLMHead", is_decoder=True, **REFORMER)
    checkpoint = open_path(folder)
    assert overview(checkpoint, progress=silent).heads["causal_lm"] == "present"
    assert overview(checkpoint, progress=silent).heads["masked_lm"] == "absent"
    answer: Any = heads(checkpoint, progress=silent, text=TEXT, k=60, new_tokens=1, device="cpu", dtype="float32")
    model = transformers.ReformerModelWithLMHead.from_pretrained(folder).eval()
    with torch.inference_mode():
        logits = model(torch.tensor([checkpoint.tokens.encode(TEXT).ids])).logits[0, -1]
    listed = answer.result.next.sort_values("token_id")
    assert listed["logit"].tolist() == pytest.approx(logits.tolist(), abs=1e-5)


def test_logits_for_more_positions_than_there_are_tokens(tmp_path, open_path):
    folder = save(tmp_path, "PerceiverForMaskedLM", **PERCEIVER)
    checkpoint = open_path(folder)
    answer: Any = heads(checkpoint, progress=silent, text=TEXT, device="cpu", dtype="float32")
    found = answer.result.tokens
    ids = checkpoint.tokens.encode(TEXT).ids
    model: Any = transformers.PerceiverForMaskedLM.from_pretrained(folder).eval()
    # transformers calls the latents the input embedding
    assert torch.equal(checkpoint.embedding_matrix(), model.perceiver.input_preprocessor.embeddings.weight)
    with torch.inference_mode():
        logits = model(inputs=torch.tensor([ids]), attention_mask=torch.ones((1, len(ids)))).logits[0]
    assert found["prediction_id"].tolist() == logits[: len(ids)].argmax(dim=1).tolist()
    with pytest.raises(NotInCheckpointError, match="does not report the embedding matrix of PerceiverForMaskedLM"):
        lens(checkpoint, progress=silent, text=TEXT)


@pytest.mark.parametrize(
    ("architecture", "sizes", "kept"),
    [
        ("FunnelForMaskedLM", {"vocab_size": 60, "block_sizes": [1, 1, 1], "num_decoder_layers": 1, "d_model": 32,
                               "n_head": 2, "d_head": 16, "d_inner": 48}, 5),
        ("ReformerForMaskedLM", REFORMER | {"is_decoder": False}, 16),
    ],
)  # fmt: skip
def test_layers_of_other_positions_than_the_text_are_not_shown_at_its_tokens(
    tmp_path, open_path, architecture, sizes, kept
):
    with pytest.raises(NotInCheckpointError, match=f"keep the states of 9 tokens as {kept} vectors"):
        lens(open_path(save(tmp_path, architecture, **sizes)), progress=silent, text=f"{TEXT} w7")


@pytest.mark.parametrize(
    ("architecture", "sizes"),
    [
        ("GitForCausalLM", ENCODER | {"vision_config": VISION, "pad_token_id": 0}),
        ("ReformerForMaskedLM", REFORMER | {"is_decoder": False}),
    ],
)
def test_a_loss_that_does_not_run_on_text_alone_is_said(tmp_path, open_path, architecture, sizes):
    result = padding(open_path(save(tmp_path, architecture, **sizes)), progress=silent, text=TEXT)
    assert result.gradient is None
    assert f"The loss of {architecture} does not run on these sentences alone" in result.gradient_note


def test_padding_of_an_encoder_whose_class_has_no_embedding_methods(tmp_path, open_path):
    sizes = BART | {"src_vocab_size": 60, "tgt_vocab_size": 60, "langs": ["en", "de"], "num_hidden_layers": 2}
    del sizes["vocab_size"]
    result = padding(open_path(save(tmp_path, "FSMTForConditionalGeneration", **sizes)), progress=silent, text=TEXT)
    assert result.gradient is not None
    assert result.gradient.input_path >= 0
    assert not result.gradient.tied


def test_means_of_a_model_that_is_its_own_base_model(tmp_path, open_path):
    sizes = DECODER | {"intermediate_size_mlp": 48, "num_local_experts": 2, "interleave_moe_layer_step": 1}
    folder = save(tmp_path, "Llama4ForCausalLM", **sizes)
    checkpoint = open_path(folder)
    rows = padding(checkpoint, progress=silent, text="w1 w2 w3 w4\nw5", device="cpu", dtype="float32").averaging
    model = transformers.Llama4ForCausalLM.from_pretrained(folder).eval()
    long, short = (list(checkpoint.tokens.encode(text).ids) for text in ("w1 w2 w3 w4", "w5"))
    ids = torch.tensor([long, short + [0] * (len(long) - len(short))])
    with torch.inference_mode():
        hidden = model(ids, attention_mask=(torch.tensor([[1] * len(long), [1] * len(short) + [0] * 3])),
                       output_hidden_states=True).hidden_states[-1][1].double()  # fmt: skip
    right, plain = hidden[: len(short)].mean(dim=0), hidden.mean(dim=0)
    assert rows["difference"].tolist()[1] == pytest.approx(float((plain - right).norm()), abs=1e-5)


def test_a_continuation_of_a_model_that_cannot_go_on_from_what_it_kept(tmp_path, open_path):
    sizes = SIZES | {"hidden_size": 32, "num_attention_heads": 2, "dim_head": 16, "dim_ff": 48, "num_hidden_layers": 2}
    folder = save(tmp_path, "CpmAntForCausalLM", **sizes)
    checkpoint = open_path(folder)
    answer: Any = heads(checkpoint, progress=silent, text=TEXT, new_tokens=3, device="cpu", dtype="float32")
    steps = answer.result.steps
    model = transformers.CpmAntForCausalLM.from_pretrained(folder).eval()
    ids, chosen = torch.tensor([checkpoint.tokens.encode(TEXT).ids]), []
    for _ in range(3):
        with torch.inference_mode():
            chosen.append(int(model(ids, use_cache=False).logits[0, -1].argmax()))
        ids = torch.cat([ids, torch.tensor([chosen[-1:]])], dim=1)
    assert steps["token_id"].tolist() == chosen


@pytest.mark.parametrize("architecture", ["XLMWithLMHeadModel", "FlaubertWithLMHeadModel"])
def test_a_masked_head_that_is_not_named_so_is_not_called_missing(tmp_path, open_path, architecture):
    sizes = {"vocab_size": 60, "emb_dim": 32, "n_layers": 2, "n_heads": 2, "max_position_embeddings": 64}
    answer = heads(open_path(save(tmp_path, architecture, **sizes)), progress=silent, text=TEXT)
    assert answer.head == "masked_lm"
    assert answer.warnings == ()


def test_a_model_that_does_not_run_is_not_said_to_have_a_wrong_config(tmp_path, open_path, monkeypatch):
    """What the model's own code cannot do may be no fault of its files."""

    def forward(*_, **__):
        raise ValueError("no")

    checkpoint = open_path(save(tmp_path, "BertForMaskedLM", **ENCODER))
    monkeypatch.setattr(transformers.BertModel, "forward", forward)
    with pytest.raises(CheckpointError, match="if they are equal, this tool cannot run such models"):
        load(checkpoint, "masked_lm")


QWEN2_AUDIO = {
    "text_config": DECODER | {"model_type": "qwen2"},  # rotary: no table of positions
    "audio_config": {"num_mel_bins": 8, "d_model": 32, "encoder_layers": 2, "encoder_attention_heads": 2,
                     "encoder_ffn_dim": 48, "max_source_positions": 50},
}  # fmt: skip


@pytest.mark.parametrize(
    ("architecture", "sizes"),
    [
        ("Qwen2AudioForConditionalGeneration", QWEN2_AUDIO),
        ("HrmTextForCausalLM", DECODER),  # its number of layers counts how often each runs
        ("CodeGenForCausalLM", {"vocab_size": 60, "n_positions": 64, "n_ctx": 2048, "n_embd": 32, "n_layer": 2,
                                "n_head": 4, "rotary_dim": 8}),
    ],
)  # fmt: skip
def test_sizes_of_sound_models_are_not_blamed(tmp_path, open_path, architecture, sizes):
    folder = save(tmp_path, architecture, **sizes)
    checkpoint = open_path(folder)
    model = getattr(transformers, architecture).from_pretrained(folder).eval()
    found = overview(checkpoint, progress=silent)
    assert found.unique_parameters == model.num_parameters()
    assert found.heads["causal_lm"] == "present"
    answer: Any = heads(checkpoint, progress=silent, text=TEXT, k=60, new_tokens=1, device="cpu", dtype="float32")
    with torch.inference_mode():
        logits = model(input_ids=torch.tensor([checkpoint.tokens.encode(TEXT).ids])).logits[0, -1]
    listed = answer.result.next.sort_values("token_id")
    assert listed["logit"].tolist() == pytest.approx(logits.tolist(), abs=1e-4)


MISFITS = ["clip", "gpt2", "musicgen", "rag", "reformer", "t5", "whisper"]


@pytest.mark.parametrize("model_type", MISFITS)
def test_weights_of_another_model_type_are_never_unexpected(tmp_path, open_path, model_type):
    folder = save(tmp_path, "BertForMaskedLM", **ENCODER)
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    (folder / "config.json").write_text(json.dumps(config | {"model_type": model_type}), encoding="utf-8")
    checkpoint = open_path(folder)
    for verb in sorted(PARAMETERS.keys() - {"project"}):
        assert ask_verb(checkpoint, verb)  # a refusal of ours is a sentence; anything else raises
    with pytest.raises(InspectorError) as refused:
        lens(checkpoint, progress=silent, text=TEXT)
    assert "config.json" in str(refused.value) or "no decoder with a language-model head" in str(refused.value)
