"""Popular layouts of repositories, tiny, and as their authors' tools write them today."""

from __future__ import annotations

from functools import partial

import torch

from tests.families import BART, DECODER, ENCODER, RENAMED, T5
from tests.layouts import (
    BERT,
    BLOOM,
    FAIRSEQ,
    GEMMA,
    GPT,
    GPT_PADDED,
    LLAMA,
    LLAMA3,
    LLAMA_PADDED,
    QWEN,
    SIGLIP,
    T5_VOCABULARY,
    Layout,
    bert_as_first_saved,
    consolidated,
    deberta_v3,
    esm,
    frequencies,
    masks,
    next_tokens,
    original_folder,
    pipeline,
    plus,
    prefixed,
    pythia,
    renamed,
    twice,
    with_positions,
    without,
)
from tests.pipelines import NEW, OLD

SMALL = ENCODER | {"pad_token_id": 0}
FAIR = ENCODER | {
    "pad_token_id": 1,
    "bos_token_id": 0,
    "eos_token_id": 2,
    "type_vocab_size": 1,
    "max_position_embeddings": 66,
}
GPT2 = {"n_positions": 64, "n_embd": 32, "n_layer": 2, "n_head": 2, "bos_token_id": 7, "eos_token_id": 7}
NO_PAD = {name: value for name, value in DECODER.items() if name != "pad_token_id"}
META = NO_PAD | {"bos_token_id": 1, "eos_token_id": 2}
GOOGLE = DECODER | {"pad_token_id": 0, "eos_token_id": 1, "bos_token_id": 2}
ALIBABA = NO_PAD | {"bos_token_id": 7, "eos_token_id": 9}
PLAIN_T5 = T5 | {"pad_token_id": 0, "eos_token_id": 1}
TWO_T5 = PLAIN_T5 | {"tie_word_embeddings": False, "feed_forward_proj": "gated-gelu"}
APART = {"tie_word_embeddings": False}  # as those two say, and as their classes do not save it
SEQ2SEQ = BART | {"pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2}
SPEECH = {
    "vocab_size": 8,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 48,
    "conv_dim": [16, 16],
    "conv_stride": [5, 2],
    "conv_kernel": [10, 3],
    "num_conv_pos_embeddings": 16,
    "num_conv_pos_embedding_groups": 2,
    "num_feat_extract_layers": 2,
}
VISION = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 48,
    "image_size": 32,
    "patch_size": 16,
}
DENSE_TYPE = "sentence_transformers.models.Dense.Dense"

LAYOUTS: dict[str, Layout] = {
    # Sentence encoders
    "all-MiniLM": Layout(
        "BertModel",
        BERT,
        SMALL,
        change=partial(with_positions, name="embeddings.position_ids"),
        beside=partial(pipeline, length=32),
    ),
    "all-mpnet": Layout(
        "MPNetModel",
        FAIRSEQ,
        FAIR,
        config={"architectures": ["MPNetForMaskedLM"]},
        change=partial(with_positions, name="embeddings.position_ids", count=66),
        beside=pipeline,
    ),
    "e5": Layout(
        "BertModel",
        BERT,
        SMALL,
        change=partial(with_positions, name="embeddings.position_ids"),
        beside=partial(pipeline, types=NEW),
    ),
    "bge": Layout("BertModel", BERT, SMALL, beside=partial(pipeline, length=64)),
    "gte": Layout("BertModel", BERT, SMALL | {"dtype": "float16"}, beside=partial(pipeline, types=OLD[:2])),
    "nomic-embed": Layout("NomicBertModel", BERT, SMALL, beside=pipeline),
    "multilingual-e5": Layout(
        "XLMRobertaModel",
        FAIRSEQ,
        FAIR,
        beside=pipeline,
        change=partial(with_positions, name="embeddings.position_ids", count=66),
    ),
    "paraphrase-multilingual-MiniLM": Layout("BertModel", FAIRSEQ, SMALL | {"pad_token_id": 1}, beside=pipeline),
    "sentence-t5": Layout("T5EncoderModel", T5_VOCABULARY, PLAIN_T5, beside=partial(pipeline, more=[DENSE_TYPE])),
    "qwen3-embedding": Layout(
        "Qwen3Model",
        QWEN,
        ALIBABA | {"tie_word_embeddings": True},
        rows=128,
        config={"architectures": ["Qwen3ForCausalLM"]},
        beside=partial(pipeline, types=NEW),
    ),
    "embedding-gemma": Layout(
        "Gemma3TextModel", GEMMA, GOOGLE, beside=partial(pipeline, types=NEW, more=[DENSE_TYPE, DENSE_TYPE])
    ),
    "splade": Layout(
        "BertForMaskedLM",
        BERT,
        SMALL,
        beside=partial(
            pipeline,
            types=(
                "sentence_transformers.sparse_encoder.models.MLMTransformer.MLMTransformer",
                "sentence_transformers.sparse_encoder.models.SpladePooling.SpladePooling",
            ),
        ),
    ),
    # Rerankers
    "ms-marco-MiniLM": Layout(
        "BertForSequenceClassification",
        BERT,
        SMALL | {"num_labels": 1},
        change=partial(with_positions, name="bert.embeddings.position_ids"),
    ),
    "bge-reranker": Layout("XLMRobertaForSequenceClassification", FAIRSEQ, FAIR | {"num_labels": 1}),
    "modernbert-reranker": Layout(
        "ModernBertForSequenceClassification",
        BERT,
        SMALL | {"num_labels": 1, "cls_token_id": 2, "sep_token_id": 3, "bos_token_id": 2, "eos_token_id": 3},
    ),
    "qwen3-reranker": Layout("Qwen3ForCausalLM", QWEN, ALIBABA | {"tie_word_embeddings": True}, rows=128),
    # Encoders
    "bert-base-uncased": Layout(
        "BertForPreTraining", BERT, SMALL, config={"architectures": ["BertForMaskedLM"]}, change=bert_as_first_saved
    ),
    "bert-without-heads": Layout("BertModel", BERT, SMALL, change=partial(prefixed, prefix="bert.")),
    "bert-tiny": Layout("BertForPreTraining", BERT, SMALL, config={"architectures": None}, pickled=True),
    "distilbert": Layout(
        "DistilBertForMaskedLM",
        BERT,
        {"max_position_embeddings": 64, "dim": 32, "n_layers": 2, "n_heads": 2, "hidden_dim": 48, "pad_token_id": 0},
    ),
    "distilbert-sst2": Layout(
        "DistilBertForSequenceClassification",
        BERT,
        {"max_position_embeddings": 64, "dim": 32, "n_layers": 2, "n_heads": 2, "hidden_dim": 48, "pad_token_id": 0},
    ),
    "roberta": Layout(
        "RobertaForMaskedLM",
        FAIRSEQ,
        FAIR,
        change=lambda state: with_positions(
            plus(state, {"roberta.pooler.dense.weight": (32, 32), "roberta.pooler.dense.bias": (32,)}),
            "roberta.embeddings.position_ids",
            66,
        ),
    ),
    "xlm-roberta": Layout(
        "XLMRobertaForMaskedLM",
        FAIRSEQ,
        FAIR,
        change=lambda state: plus(state, {"roberta.pooler.dense.weight": (32, 32), "roberta.pooler.dense.bias": (32,)}),
    ),
    "deberta-v3": Layout(
        "DebertaV2Model",
        BERT,
        SMALL
        | {
            "relative_attention": True,
            "position_buckets": 16,
            "norm_rel_ebd": "layer_norm",
            "share_att_key": True,
            "pos_att_type": "p2c|c2p",
            "position_biased_input": False,
            "type_vocab_size": 0,
        },
        config={"architectures": None},
        change=deberta_v3,
        pickled=True,
    ),
    "electra": Layout(
        "ElectraForPreTraining",
        BERT,
        SMALL | {"embedding_size": 16},
        change=partial(with_positions, name="electra.embeddings.position_ids"),
    ),
    "albert": Layout(
        "AlbertForMaskedLM",
        BERT,
        SMALL | {"embedding_size": 16},
        change=lambda state: with_positions(
            plus(state, {"albert.pooler.weight": (32, 32), "albert.pooler.bias": (32,)}),
            "albert.embeddings.position_ids",
        ),
    ),
    "modernbert": Layout(
        "ModernBertForMaskedLM",
        BERT,
        SMALL | {"cls_token_id": 2, "sep_token_id": 3, "bos_token_id": 2, "eos_token_id": 3},
    ),
    "esm2": Layout(
        "EsmForMaskedLM",
        FAIRSEQ,
        FAIR | {"mask_token_id": 11, "position_embedding_type": "rotary", "token_dropout": True},
        change=esm,
    ),
    # Decoders
    "gpt2": Layout(
        "GPT2LMHeadModel", GPT, GPT2, change=lambda state: masks(renamed(state, ("transformer.", "")), "h.{}.attn.bias")
    ),
    "qwen2": Layout("Qwen2ForCausalLM", QWEN, ALIBABA | {"tie_word_embeddings": True}, rows=128),
    "qwen2.5-large": Layout("Qwen2ForCausalLM", QWEN, ALIBABA, rows=128, shards=2),
    "qwen3": Layout("Qwen3ForCausalLM", QWEN, ALIBABA | {"tie_word_embeddings": True}, rows=128),
    "llama-2": Layout(
        "LlamaForCausalLM",
        LLAMA,
        META,
        shards=2,
        change=partial(frequencies, pattern="model.layers.{}.self_attn.rotary_emb.inv_freq"),
    ),
    "llama-3": Layout(
        "LlamaForCausalLM",
        LLAMA3,
        NO_PAD | {"bos_token_id": 7, "eos_token_id": [8, 8]},
        shards=2,
        beside=original_folder,
    ),
    "llama-3.2": Layout(
        "LlamaForCausalLM", LLAMA3, NO_PAD | {"bos_token_id": 7, "eos_token_id": [8], "tie_word_embeddings": True}
    ),
    "gemma": Layout("GemmaForCausalLM", GEMMA, GOOGLE, shards=2),
    "gemma-2": Layout("Gemma2ForCausalLM", GEMMA, GOOGLE, shards=2),
    "gemma-3": Layout("Gemma3ForCausalLM", GEMMA, GOOGLE),
    "mistral": Layout("MistralForCausalLM", LLAMA, META, shards=2, beside=consolidated),
    "mixtral": Layout("MixtralForCausalLM", LLAMA, {**RENAMED["MixtralForCausalLM"], **META, "pad_token_id": None}),
    "deepseek-v3": Layout(
        "DeepseekV3ForCausalLM",
        LLAMA3,
        {**RENAMED["DeepseekV3ForCausalLM"], "head_dim": 8, "pad_token_id": None, "bos_token_id": 7, "eos_token_id": 8},
        config={"num_nextn_predict_layers": 1},
        change=next_tokens,
    ),
    "phi-3": Layout("Phi3ForCausalLM", LLAMA_PADDED, META | {"pad_token_id": 10}, rows=64),
    "phi-4": Layout("Phi3ForCausalLM", LLAMA3, NO_PAD | {"bos_token_id": 7, "eos_token_id": 8, "pad_token_id": None}),
    "olmo-2": Layout("Olmo2ForCausalLM", GPT, NO_PAD | {"eos_token_id": 7, "pad_token_id": None}, rows=64),
    "falcon": Layout(
        "FalconForCausalLM",
        GPT,
        {
            "hidden_size": 32,
            "num_hidden_layers": 2,
            "num_attention_heads": 2,
            "multi_query": True,
            "parallel_attn": True,
            "bias": False,
            "bos_token_id": 7,
            "eos_token_id": 7,
        },
        change=lambda state: twice(state, "transformer.word_embeddings.weight", "lm_head.weight"),
    ),
    "bloom": Layout(
        "BloomForCausalLM",
        BLOOM,
        {"hidden_size": 32, "n_layer": 2, "n_head": 2, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 3},
        change=lambda state: renamed(state, ("transformer.", "")),
    ),
    "opt": Layout(
        "OPTForCausalLM",
        FAIRSEQ,
        {
            "hidden_size": 32,
            "num_hidden_layers": 2,
            "ffn_dim": 48,
            "num_attention_heads": 2,
            "word_embed_proj_dim": 32,
            "max_position_embeddings": 64,
            "pad_token_id": 1,
            "bos_token_id": 2,
            "eos_token_id": 2,
        },
        pickled=True,
        change=lambda state: renamed(
            twice(state, "model.decoder.embed_tokens.weight", "lm_head.weight"), ("model.decoder.", "decoder.")
        ),
    ),
    "pythia": Layout(
        "GPTNeoXForCausalLM", GPT, ENCODER | {"bos_token_id": 7, "eos_token_id": 7}, rows=64, change=pythia
    ),
    "gpt-neo": Layout(
        "GPTNeoForCausalLM",
        GPT,
        {
            "max_position_embeddings": 64,
            "hidden_size": 32,
            "num_layers": 2,
            "num_heads": 2,
            "attention_types": [[["global", "local"], 1]],
            "bos_token_id": 7,
            "eos_token_id": 7,
        },
        change=lambda state: masks(
            state | {f"transformer.h.{layer}.attn.attention.masked_bias": torch.tensor(-1e9) for layer in range(2)},
            "transformer.h.{}.attn.attention.bias",
            dtype=torch.uint8,
        ),
    ),
    "codegen": Layout(
        "CodeGenForCausalLM",
        GPT,
        {
            "n_positions": 64,
            "n_embd": 32,
            "n_layer": 2,
            "n_head": 4,
            "rotary_dim": 4,
            "bos_token_id": 7,
            "eos_token_id": 7,
        },
        change=lambda state: masks(state, "transformer.h.{}.attn.causal_mask", dtype=torch.bool),
    ),
    # Encoders with decoders
    "t5": Layout(
        "T5ForConditionalGeneration",
        T5_VOCABULARY,
        PLAIN_T5,
        change=lambda state: plus(
            state, {"decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight": (32, 2)}
        ),
    ),
    "flan-t5": Layout(
        "T5ForConditionalGeneration",
        T5_VOCABULARY,
        TWO_T5,
        config=APART,
        change=lambda state: twice(
            plus(without(state, "lm_head"), {"lm_head.weight": (10, 32)}),
            "shared.weight",
            "encoder.embed_tokens.weight",
            "decoder.embed_tokens.weight",
        ),
    ),
    "mt5": Layout(
        "MT5ForConditionalGeneration",
        T5_VOCABULARY,
        TWO_T5,
        config=APART,
        pickled=True,
        change=lambda state: twice(
            plus(without(state, "lm_head"), {"lm_head.weight": (10, 32)}),
            "shared.weight",
            "encoder.embed_tokens.weight",
            "decoder.embed_tokens.weight",
        ),
    ),
    "umt5-encoder": Layout("UMT5EncoderModel", T5_VOCABULARY, PLAIN_T5 | {"feed_forward_proj": "gated-gelu"}),
    "t5-encoder-of-an-image-model": Layout(
        "T5EncoderModel",
        None,
        PLAIN_T5 | {"vocab_size": 10},
        shards=2,
        change=lambda state: twice(state, "shared.weight", "encoder.embed_tokens.weight"),
    ),
    "bart": Layout(
        "BartModel",
        FAIRSEQ,
        SEQ2SEQ,
        change=lambda state: twice(
            state, "shared.weight", "encoder.embed_tokens.weight", "decoder.embed_tokens.weight"
        ),
    ),
    "bart-large-cnn": Layout(
        "BartForConditionalGeneration",
        FAIRSEQ,
        SEQ2SEQ,
        change=lambda state: plus(state, {"final_logits_bias": (1, 12)}),
    ),
    "marian": Layout("MarianMTModel", FAIRSEQ, SEQ2SEQ, pickled=True),
    "pegasus": Layout(
        "PegasusForConditionalGeneration", T5_VOCABULARY, SEQ2SEQ | {"pad_token_id": 0, "eos_token_id": 1}
    ),
    "whisper": Layout(
        "WhisperForConditionalGeneration",
        GPT_PADDED,
        {
            "d_model": 32,
            "encoder_layers": 1,
            "decoder_layers": 1,
            "encoder_attention_heads": 2,
            "decoder_attention_heads": 2,
            "encoder_ffn_dim": 48,
            "decoder_ffn_dim": 48,
            "num_mel_bins": 8,
            "max_source_positions": 16,
            "max_target_positions": 16,
            "pad_token_id": 7,
            "bos_token_id": 7,
            "eos_token_id": 7,
            "decoder_start_token_id": 7,
        },
    ),
    # Of sound and of images
    "wav2vec2": Layout("Wav2Vec2Model", None, SPEECH),
    "clip-text": Layout(
        "CLIPTextModel",
        GPT_PADDED,
        SMALL | {"projection_dim": 32, "pad_token_id": 1, "bos_token_id": 7, "eos_token_id": 7},
        change=partial(with_positions, name="text_model.embeddings.position_ids"),
    ),
    "siglip-text": Layout("SiglipTextModel", SIGLIP, SMALL | {"pad_token_id": 1, "bos_token_id": 1, "eos_token_id": 1}),
    "dinov2": Layout("Dinov2Model", None, VISION),
    "vit": Layout("ViTForImageClassification", None, VISION | {"num_labels": 3}),
}
