"""A class that is a part of its family's model, or reads no tokens, is placed as config.json names it."""

from __future__ import annotations

from typing import Any

import pytest
import transformers

from inspector.analyses.placement.compute import placement
from inspector.errors import CheckpointError
from tests.conftest import silent
from tests.families import BART, SIZES, random_model, save_checkpoint

ON_CPU: Any = {"device": "cpu", "dtype": "float32"}
STREAMED: Any = {"device": "stream", "dtype": "float32"}
ENCODES = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
UNITS = {f"t2u_{name}": size for name, size in BART.items() if name.startswith(("encoder_", "decoder_"))}
SPEECH = {
    "hidden_size": 32, "pad_token_id": 0, "char_vocab_size": 30, "feature_projection_input_dim": 8,
    "speech_encoder_layers": 1, "speech_encoder_attention_heads": 2, "speech_encoder_intermediate_size": 32,
    "num_adapter_layers": 1, "num_conv_pos_embeddings": 8, "num_conv_pos_embedding_groups": 2,
    "conv_depthwise_kernel_size": 3, "adaptor_kernel_size": 4, "adaptor_stride": 4,
    "t2u_vocab_size": 40, "t2u_max_position_embeddings": 32, "unit_hifi_gan_vocab_size": 40, "unit_embed_dim": 16,
    "lang_embed_dim": 8, "spkr_embed_dim": 8, "vocoder_num_langs": 3, "vocoder_num_spkrs": 2,
    "upsample_initial_channel": 64,
}  # fmt: skip
SPEAKS: dict[str, Any] = BART | SIZES | UNITS | SPEECH
SEAMLESS = (
    "SeamlessM4TModel",
    "SeamlessM4TForTextToText",
    "SeamlessM4TForSpeechToText",
    "SeamlessM4TForTextToSpeech",
    "SeamlessM4TForSpeechToSpeech",
    "SeamlessM4TTextToUnitModel",
    "SeamlessM4TTextToUnitForConditionalGeneration",
    "SeamlessM4TCodeHifiGan",
    "SeamlessM4Tv2Model",
    "SeamlessM4Tv2ForTextToText",
    "SeamlessM4Tv2ForSpeechToText",
    "SeamlessM4Tv2ForTextToSpeech",
    "SeamlessM4Tv2ForSpeechToSpeech",
)
NO_TOKENS: dict[str, dict[str, Any]] = {
    "ViTModel": ENCODES,
    "ASTModel": ENCODES,
    "SpeechT5HifiGan": {"upsample_initial_channel": 32},
}


def built(architecture: str) -> Any:
    model_class = getattr(transformers, architecture)
    return model_class(model_class.config_class(**NO_TOKENS.get(architecture, SPEAKS)))


@pytest.mark.parametrize("architecture", [*SEAMLESS, *NO_TOKENS])
def test_a_class_is_placed_as_config_json_names_it(open_path, tmp_path, architecture):
    model = built(architecture)
    checkpoint = open_path(save_checkpoint(model, tmp_path / architecture))
    found = placement(checkpoint, progress=silent, **ON_CPU)
    assert found.nbytes == sum(place.nbytes for place in found.places) == 4 * model.num_parameters()


def test_every_table_row_of_the_family_is_tried():
    """So that a class that transformers adds to it is noticed."""
    named = {name for name in dir(transformers) if name.startswith("SeamlessM4T")}
    classes = {name for name in named if issubclass(getattr(transformers, name), transformers.PreTrainedModel)}
    assert classes - {"SeamlessM4TPreTrainedModel", "SeamlessM4Tv2PreTrainedModel"} == set(SEAMLESS)


@pytest.mark.parametrize("architecture", ["SeamlessM4TForSpeechToText", "SeamlessM4Tv2ForTextToSpeech", "ViTModel"])
def test_the_ways_to_run_such_a_class_are_compared(open_path, tmp_path, architecture):
    model = built(architecture)
    checkpoint = open_path(save_checkpoint(model, tmp_path / architecture))
    ways = {way.device: way for way in placement(checkpoint, progress=silent, **STREAMED).ways}
    for way in ways.values():
        assert way.memory_nbytes + way.disk_nbytes == 4 * model.num_parameters()
    assert ways["stream"].seconds
    assert ways["stream"].disk_nbytes


def test_a_decoder_of_images_is_placed_though_it_is_not_run_on_text(open_path, tmp_path):
    model = random_model("VisionEncoderDecoderModel")
    checkpoint = open_path(save_checkpoint(model, tmp_path / "captions"))
    assert placement(checkpoint, progress=silent, **ON_CPU).nbytes == 4 * model.num_parameters()


@pytest.mark.parametrize(("size", "refused"), [(256_102, False), (3_000_000, True)])
def test_a_vocabulary_of_the_larger_model_may_show_in_no_shape(open_path, tmp_path, size, refused):
    """SeamlessM4T's vocoder looks up units of speech; config.json names the size of the text's vocabulary, too."""
    sizes: dict[str, Any] = SPEAKS | {"vocab_size": size}
    model = transformers.SeamlessM4TCodeHifiGan(transformers.SeamlessM4TConfig(**sizes))
    folder = save_checkpoint(model, tmp_path / "vocoder", tokenizer=False)
    if refused:
        with pytest.raises(CheckpointError, match="sets vocab_size to 3,000,000"):
            open_path(folder)
        return
    assert placement(open_path(folder), progress=silent, **ON_CPU).nbytes == 4 * model.num_parameters()
