"""Small random models that read images beside text, built from configs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import transformers as t

TEXT: dict[str, Any] = {
    "vocab_size": 60, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2,
    "num_key_value_heads": 2, "head_dim": 16, "intermediate_size": 48,
    "max_position_embeddings": 64, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
}  # fmt: skip
VISION: dict[str, Any] = {
    "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 2,
    "image_size": 16, "patch_size": 8, "num_channels": 3,
}  # fmt: skip
BART = {
    "model_type": "bart", "vocab_size": 60, "d_model": 32, "encoder_layers": 2,
    "decoder_layers": 2, "encoder_attention_heads": 2, "decoder_attention_heads": 2,
    "encoder_ffn_dim": 48, "decoder_ffn_dim": 48, "max_position_embeddings": 64,
}  # fmt: skip
MROPE = {"rope_parameters": {"rope_type": "default", "mrope_section": [4, 2, 2], "rope_theta": 1e4}}


def _llava() -> Any:
    return t.LlavaForConditionalGeneration(
        t.LlavaConfig(
            vision_config=t.CLIPVisionConfig(**VISION), text_config=t.LlamaConfig(**TEXT),
            image_token_index=5,
        )
    )  # fmt: skip


def _gemma3() -> Any:
    config = t.Gemma3Config(text_config=TEXT, vision_config=VISION, mm_tokens_per_image=4)
    return t.Gemma3ForConditionalGeneration(config)


def _internvl() -> Any:
    vision = VISION | {"image_size": [16, 16], "patch_size": [8, 8]}
    text = {"model_type": "qwen2", **TEXT}
    config = t.InternVLConfig(vision_config=vision, text_config=text, image_token_id=5)
    return t.InternVLForConditionalGeneration(config)


def _mistral3() -> Any:
    config = t.Mistral3Config(
        vision_config={"model_type": "pixtral", "head_dim": 16, **VISION},
        text_config={"model_type": "mistral", **TEXT}, image_token_index=5,
    )  # fmt: skip
    return t.Mistral3ForConditionalGeneration(config)


def _qwen3_vl() -> Any:
    vision = {
        "hidden_size": 32, "intermediate_size": 48, "depth": 2, "num_heads": 2,
        "out_hidden_size": 32, "patch_size": 8, "deepstack_visual_indexes": [0],
        "num_position_embeddings": 16,
    }  # fmt: skip
    config = t.Qwen3VLConfig(text_config=TEXT | MROPE, vision_config=vision)
    return t.Qwen3VLForConditionalGeneration(config)


def _florence2() -> Any:
    vision = {
        "embed_dim": [16, 16, 32, 32], "num_heads": [2] * 4, "num_groups": [2] * 4,
        "depths": [1] * 4, "projection_dim": 32,
    }  # fmt: skip
    config = t.Florence2Config(text_config=BART, vision_config=vision, image_token_id=5)
    return t.Florence2ForConditionalGeneration(config)


def _mllama() -> Any:
    vision = {
        "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2,
        "num_global_layers": 1, "attention_heads": 2, "image_size": 16, "patch_size": 8,
        "max_num_tiles": 2, "intermediate_layers_indices": [0], "vision_output_dim": 64,
        "supported_aspect_ratios": [[1, 1], [1, 2], [2, 1]],
    }  # fmt: skip
    config = t.MllamaConfig(text_config=TEXT | {"cross_attention_layers": [1]}, vision_config=vision)
    return t.MllamaForConditionalGeneration(config)


def _llama4() -> Any:
    text = TEXT | {"intermediate_size_mlp": 48, "num_local_experts": 2,
                   "interleave_moe_layer_step": 1}  # fmt: skip
    vision = VISION | {"vision_output_dim": 32, "projector_input_dim": 32,
                       "projector_output_dim": 32}  # fmt: skip
    config = t.Llama4Config(text_config=text, vision_config=vision)
    return t.Llama4ForConditionalGeneration(config)


VISION_LANGUAGE: dict[str, Callable[[], Any]] = {
    "florence2": _florence2,
    "gemma3": _gemma3,
    "internvl": _internvl,
    "llama4": _llama4,
    "llava": _llava,
    "mistral3": _mistral3,
    "mllama": _mllama,
    "qwen3_vl": _qwen3_vl,
}
