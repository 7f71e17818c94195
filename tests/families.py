"""Small random models of many families, built from configs: what the tests compare against."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
import transformers
from transformers import PreTrainedModel

VOCAB = 60
SIZES = {"vocab_size": VOCAB, "max_position_embeddings": 64}
ENCODER = SIZES | {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 48}
DECODER = ENCODER | {"num_key_value_heads": 2, "head_dim": 16, "pad_token_id": 0}

# architecture -> config values that make it small
MODELS: dict[str, dict[str, Any]] = {
    "BertForPreTraining": ENCODER,
    "BertForMaskedLM": ENCODER,
    "RobertaForMaskedLM": ENCODER,
    "XLMRobertaForMaskedLM": ENCODER,
    "CamembertForMaskedLM": ENCODER,
    "MPNetForMaskedLM": ENCODER,
    "DistilBertForMaskedLM": SIZES
    | {"dim": 32, "n_layers": 2, "n_heads": 2, "hidden_dim": 48},
    "AlbertForMaskedLM": ENCODER | {"embedding_size": 16},
    "ElectraForMaskedLM": ENCODER | {"embedding_size": 16},
    "DebertaV2ForMaskedLM": ENCODER | {"legacy": True},
    "GPT2LMHeadModel": {"vocab_size": VOCAB, "n_positions": 64, "n_embd": 32, "n_layer": 2,
                        "n_head": 2},
    "GPTNeoXForCausalLM": ENCODER,
    "OPTForCausalLM": SIZES | {"hidden_size": 32, "num_hidden_layers": 2, "ffn_dim": 48,
                               "num_attention_heads": 2, "word_embed_proj_dim": 32},
    "LlamaForCausalLM": DECODER,
    "MistralForCausalLM": DECODER | {"sliding_window": None},
    "Qwen2ForCausalLM": DECODER,
    "Qwen3ForCausalLM": DECODER,
    "GemmaForCausalLM": DECODER,
    "Gemma2ForCausalLM": DECODER | {"final_logit_softcapping": 5.0},
}  # fmt: skip
T5 = {"vocab_size": VOCAB, "d_model": 32, "d_kv": 16, "d_ff": 48, "num_layers": 2, "num_heads": 2,
      "decoder_start_token_id": 0}  # fmt: skip
BART = SIZES | {
    "d_model": 32,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 2,
    "decoder_attention_heads": 2,
    "encoder_ffn_dim": 48,
    "decoder_ffn_dim": 48,
    "decoder_start_token_id": 2,
}
ENCODER_DECODER: dict[str, dict[str, Any]] = {
    "T5ForConditionalGeneration": T5,
    "T5EncoderModel": T5,
    "MT5ForConditionalGeneration": T5,
    "UMT5ForConditionalGeneration": T5,
    "LongT5ForConditionalGeneration": T5,
    "BartForConditionalGeneration": BART,
    "MBartForConditionalGeneration": BART,
    "MarianMTModel": BART | {"pad_token_id": 1},
    "PegasusForConditionalGeneration": BART,
}
# Families without a row in the table, whose forward methods do more than their output layer.
UNLISTED: dict[str, dict[str, Any]] = {
    "CohereForCausalLM": DECODER | {"logit_scale": 0.25},
    "Cohere2ForCausalLM": DECODER | {"logit_scale": 0.25},
    "GraniteForCausalLM": DECODER | {"logits_scaling": 4.0},
    "Gemma3ForCausalLM": DECODER | {"final_logit_softcapping": 2.0},
    "VaultGemmaForCausalLM": DECODER | {"final_logit_softcapping": 2.0},
    "RecurrentGemmaForCausalLM": DECODER | {"logits_soft_cap": 2.0, "lru_width": 32,
                                            "attention_window_size": 16, "num_hidden_layers": 3},
    "EsmForMaskedLM": ENCODER | {"pad_token_id": 1, "mask_token_id": 4,
                                 "token_dropout": False},
}  # fmt: skip
# Others, that fill masks: padding leaks into the first two, whatever the attention mask says.
UNLISTED_MASKED: dict[str, dict[str, Any]] = {
    "ConvBertForMaskedLM": ENCODER | {"embedding_size": 32, "head_ratio": 1},
    "FNetForMaskedLM": ENCODER,
    "ModernBertForMaskedLM": ENCODER | {"pad_token_id": 0, "cls_token_id": 2, "sep_token_id": 3,
                                        "bos_token_id": 2, "eos_token_id": 3},
}  # fmt: skip
# Families whose tensors are renamed, merged or split when they are loaded.
RENAMED: dict[str, dict[str, Any]] = {
    "MixtralForCausalLM": DECODER | {"num_local_experts": 4, "sliding_window": None},
    "Qwen2MoeForCausalLM": DECODER | {"num_experts": 4, "moe_intermediate_size": 48,
                                      "shared_expert_intermediate_size": 48},
    "Qwen3MoeForCausalLM": DECODER | {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 48},
    "DeepseekV3ForCausalLM": DECODER | {
        "n_routed_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 48,
        "q_lora_rank": 16, "kv_lora_rank": 16, "qk_rope_head_dim": 8, "qk_nope_head_dim": 8,
        "v_head_dim": 16, "n_group": 1, "topk_group": 1, "first_k_dense_replace": 1},
    "GPTNeoXJapaneseForCausalLM": ENCODER,
    "JetMoeForCausalLM": DECODER | {"num_local_experts": 4, "kv_channels": 16},
}  # fmt: skip
# More mixtures of experts: fused, split, with a bias for each, beside shared ones, or each expert a module.
MIXTURES: dict[str, dict[str, Any]] = {
    "OlmoeForCausalLM": DECODER | {"num_experts": 4, "num_experts_per_tok": 2, "eos_token_id": 3},
    "GptOssForCausalLM": DECODER | {"num_local_experts": 4, "num_experts_per_tok": 2, "eos_token_id": 3},
    "GraniteMoeSharedForCausalLM": DECODER | {
        "num_local_experts": 4, "num_experts_per_tok": 2, "shared_intermediate_size": 24},
    "SwitchTransformersForConditionalGeneration": T5 | {
        "num_experts": 4, "num_sparse_encoder_layers": 1, "num_sparse_decoder_layers": 1, "expert_capacity": 64},
    "Ernie4_5_VLMoeForConditionalGeneration": {
        "text_config": DECODER | {
            "moe_num_experts": 4, "moe_k": 2, "moe_intermediate_size": [24, 12], "moe_num_shared_experts": 1,
            "bos_token_id": 2, "eos_token_id": 3, "num_hidden_layers": 3,
            "rope_parameters": {"rope_type": "default", "rope_theta": 500.0, "mrope_section": [3, 3, 2]}},
        "vision_config": {
            "depth": 1, "hidden_size": 32, "num_heads": 2, "intermediate_size": 48, "patch_size": 4},
        "image_token_id": 50, "image_start_token_id": 51, "image_end_token_id": 52, "video_token_id": 53,
        "video_start_token_id": 54, "video_end_token_id": 55},
    "NllbMoeForConditionalGeneration": BART | {"num_experts": 4, "encoder_sparse_step": 1, "decoder_sparse_step": 1},
}  # fmt: skip
# Families whose layers have another name or are counted otherwise, whose halves have a config each, whose states are
# several vectors a position, or whose parameters a loader freezes.
HALF = ENCODER | {"model_type": "bert"}
GEMMA = DECODER | {"sliding_window": 8}
STREAMS: dict[str, dict[str, Any]] = {
    "Gemma3nForCausalLM": GEMMA | {
        "vocab_size_per_layer_input": VOCAB, "hidden_size_per_layer_input": 8, "altup_num_inputs": 3,
        "num_hidden_layers": 4, "num_kv_shared_layers": 2, "laurel_rank": 4, "activation_sparsity_pattern": [0.0] * 4,
        "layer_types": ["sliding_attention", "full_attention"] * 2},
    "DeepseekV4ForCausalLM": {
        **ENCODER, "num_hidden_layers": 3, "head_dim": 16, "q_lora_rank": 16, "moe_intermediate_size": 48,
        "n_routed_experts": 4, "num_experts_per_tok": 2, "o_groups": 1, "o_lora_rank": 16, "qk_rope_head_dim": 8,
        "index_n_heads": 2, "index_head_dim": 16, "index_topk": 4, "sliding_window": 8,
        "compress_rates": {"compressed_sparse_attention": 2, "heavily_compressed_attention": 2}},
    "HYV4ForCausalLM": DECODER,
}  # fmt: skip
UNLIKE: dict[str, dict[str, Any]] = STREAMS | {
    "TrOCRForCausalLM": SIZES | {"d_model": 32, "decoder_layers": 2, "decoder_attention_heads": 2,
                                 "decoder_ffn_dim": 48},
    "NemotronHForCausalLM": DECODER | {
        "layers_block_type": ["mamba", "full_attention", "moe"], "mamba_num_heads": 4, "mamba_head_dim": 16,
        "ssm_state_size": 16, "n_groups": 2, "chunk_size": 8, "n_routed_experts": 4, "moe_intermediate_size": 48,
        "moe_shared_expert_intermediate_size": 48, "use_mamba_kernels": False},
    "LongcatFlashForCausalLM": SIZES | {
        "hidden_size": 32, "num_layers": 2, "num_attention_heads": 2, "ffn_hidden_size": 48, "q_lora_rank": 16,
        "kv_lora_rank": 16, "qk_nope_head_dim": 8, "qk_rope_head_dim": 8, "head_dim": 8, "v_head_dim": 16,
        "moe_topk": 2, "n_routed_experts": 4, "zero_expert_num": 2, "expert_ffn_hidden_size": 48},
    "Inkling2ForCausalLM": DECODER | {
        "vocab_size": VOCAB + 4, "unpadded_vocab_size": VOCAB, "swa_num_attention_heads": 2, "eos_token_id": 2,
        "swa_num_key_value_heads": 2, "swa_head_dim": 16, "sliding_window_size": 8, "moe_intermediate_size": 48,
        "n_routed_experts": 4, "num_experts_per_tok": 2},
    "HrmTextForCausalLM": {**DECODER, "num_hidden_layers": 16, "num_layers_per_stack": 1, "H_cycles": 2, "L_cycles": 2},
    "FunnelForMaskedLM": {"vocab_size": VOCAB, "block_sizes": [1, 2], "num_decoder_layers": 1, "d_model": 32,
                          "n_head": 2, "d_head": 16, "d_inner": 48},
    "FSMTForConditionalGeneration": BART | {"langs": ["en", "de"], "src_vocab_size": VOCAB, "tgt_vocab_size": VOCAB},
    "ProphetNetForConditionalGeneration": SIZES | {
        "hidden_size": 32, "encoder_ffn_dim": 48, "num_encoder_layers": 2, "num_encoder_attention_heads": 2,
        "decoder_ffn_dim": 48, "num_decoder_layers": 2, "num_decoder_attention_heads": 2,
        "decoder_start_token_id": 2},
    "T5GemmaForConditionalGeneration": {
        "vocab_size": VOCAB, "decoder_start_token_id": 2, "encoder": GEMMA,
        "decoder": GEMMA | {"num_hidden_layers": 3, "is_decoder": True, "cross_attention_hidden_size": 32}},
    "EncoderDecoderModel": {
        "encoder": HALF, "decoder": HALF | {"num_hidden_layers": 3, "is_decoder": True, "add_cross_attention": True},
        "decoder_start_token_id": 2, "pad_token_id": 0},
    "VisionEncoderDecoderModel": {
        "encoder": {"model_type": "vit", "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2,
                    "intermediate_size": 48, "image_size": 16, "patch_size": 8},
        "decoder": {"model_type": "gpt2", "vocab_size": VOCAB, "n_positions": 64, "n_embd": 32, "n_layer": 3,
                    "n_head": 2, "add_cross_attention": True},
        "decoder_start_token_id": 2, "pad_token_id": 0},
}  # fmt: skip
WITHOUT_HEAD = {
    "BertModel": ENCODER,
    "RobertaModel": ENCODER,
    "DistilBertModel": MODELS["DistilBertForMaskedLM"],
    "BertForSequenceClassification": ENCODER,
    "BertForTokenClassification": ENCODER,
    "BertForQuestionAnswering": ENCODER,
    "BertForMultipleChoice": ENCODER,
    "BertForNextSentencePrediction": ENCODER,
    "RobertaForSequenceClassification": ENCODER,
    "LlamaModel": DECODER,
}


# Types whose tokenizers are of another kind, or have special tokens of other names, unless a file names their class.
OTHER_TOKENIZERS = {
    *("cpmant", "flaubert", "fsmt", "funnel", "gpt_neox_japanese", "marian", "mpnet", "perceiver", "prophetnet", "xlm")
}


def random_model(architecture: str, *, seed: int = 0, **changes: Any) -> Any:
    """Build a small model; every parameter is random, norms and biases too."""
    model_class = getattr(transformers, architecture)
    config = model_class.config_class(
        **(
            (MODELS | WITHOUT_HEAD | ENCODER_DECODER | UNLISTED | UNLISTED_MASKED | RENAMED | UNLIKE | MIXTURES)[
                architecture
            ]
            | changes
        )
    )
    torch.manual_seed(seed)
    model = model_class(config).eval()
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=generator) * 0.2)
    return model


def words() -> list[str]:
    """A WordPiece vocabulary of VOCAB words, [MASK] among them."""
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "[unused0]", "[unused1]", "[unused2]"]
    return special + [f"w{number}" for number in range(VOCAB - len(special) - 2)] + ["##a", "##b"]


def save_checkpoint(model: PreTrainedModel, folder: Path, *, tokenizer: bool = True, **options: Any) -> Path:
    """Save a model as a checkpoint folder, with a WordPiece tokenizer of its own."""
    model.save_pretrained(folder, **options)
    if tokenizer and model.config.model_type in OTHER_TOKENIZERS:
        (folder / "tokenizer_config.json").write_text('{"tokenizer_class": "BertTokenizer"}', encoding="utf-8")
    if tokenizer:
        (folder / "vocab.txt").write_text("\n".join(words()) + "\n", encoding="utf-8")
    return folder
