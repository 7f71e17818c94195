"""What loaders make of an output matrix: of what config.json says, and of what the files hold, as tables.

transformers 4 is known from its outcomes, which tests/analyses/checks/ties_of_transformers_4.json keeps; the installed
transformers is compared with in the tests. vLLM was read, not run.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

from inspector.analyses.checks.result import HeldHead, TieOutcome

FOUR, VLLM = "transformers 4.57.6", "vLLM 0.33.0"
Kind = Literal["by flag", "always", "never", "no place", "no ties"]


class TieRule(NamedTuple):
    """What a loader makes of what the files hold, where the flag ties or not, and where that is written."""

    outcomes: Mapping[HeldHead, TieOutcome]
    source: str


APART: Mapping[HeldHead, TieOutcome] = {
    "embeddings alone": "head random",
    "equal": "separate",
    "different": "separate",
    "head alone": "separate",
    "neither": "head random",
}
TIED: Mapping[HeldHead, TieOutcome] = {
    "embeddings alone": "shared",
    "equal": "shared",
    "different": "separate",
    "head alone": "shared",
    "neither": "head random",
}
REPLACED: Mapping[HeldHead, TieOutcome] = {**TIED, "different": "trained head thrown away", "head alone": "head random"}
SEPARATE_ALONE: Mapping[HeldHead, TieOutcome] = {**TIED, "head alone": "separate"}
REFUSED_ALONE: Mapping[HeldHead, TieOutcome] = {**REPLACED, "head alone": "refused"}
REFUSED: Mapping[HeldHead, TieOutcome] = dict.fromkeys(APART, "refused")
# Whether the flag ties -> what becomes of it.
OF_TRANSFORMERS_4 = {
    True: TieRule(REPLACED, "modeling_utils.py, tie_embeddings_and_encoder_decoder"),
    False: TieRule(APART, "modeling_utils.py, _initialize_missing_keys"),
}
OF_TRANSFORMERS_5 = {
    True: TieRule(TIED, "modeling_utils.py, tie_weights"),
    False: TieRule(APART, "modeling_utils.py, get_expanded_tied_weights_keys"),
}
# Where the files are safetensors, whose names are looked at before a flag is believed.
OF_VLLM: Mapping[tuple[Kind, bool], TieRule] = {
    ("by flag", True): TieRule(SEPARATE_ALONE, "config/model.py:1255, model_loader/weight_tying.py:67"),
    ("by flag", False): TieRule(APART, "model_loader/default_loader.py:534"),
    **dict.fromkeys((("always", True), ("always", False)), TieRule(REFUSED_ALONE, "models/utils.py:291 and 491")),
    **dict.fromkeys((("never", True), ("never", False), ("no ties", False)), TieRule(APART, "default_loader.py:534")),
    **dict.fromkeys(
        (("no place", True), ("no place", False)),
        TieRule({**REFUSED, "embeddings alone": "shared", "neither": "head random"}, "models/utils.py:448"),
    ),
    ("no ties", True): TieRule(REFUSED, "at the line named"),
}
# Class -> how its model file treats the flag, and the line that does.
VLLM_CLASSES: Mapping[str, tuple[Kind, str]] = {
    "ApertusForCausalLM": ("by flag", "apertus.py:446"),
    "BloomForCausalLM": ("by flag", "bloom.py:332"),
    "CohereForCausalLM": ("always", "commandr.py:417"),
    "Cohere2ForCausalLM": ("always", "commandr.py:417"),
    "DbrxForCausalLM": ("no ties", "dbrx.py:432"),
    "DeepseekV2ForCausalLM": ("never", "deepseek_v2.py:1918"),
    "DeepseekV3ForCausalLM": ("never", "deepseek_v2.py:1918"),
    "Ernie4_5ForCausalLM": ("by flag", "llama.py:509"),
    "Ernie4_5_MoeForCausalLM": ("by flag", "ernie45_moe.py:545"),
    "Exaone4ForCausalLM": ("by flag", "exaone4.py:412"),
    "FalconForCausalLM": ("by flag", "falcon.py:509"),
    "FalconH1ForCausalLM": ("by flag", "falcon_h1.py:601"),
    "FalconMambaForCausalLM": ("by flag", "mamba.py:196"),
    "GemmaForCausalLM": ("by flag", "gemma.py:364"),
    "Gemma2ForCausalLM": ("no place", "gemma2.py:368"),
    "Gemma3ForCausalLM": ("by flag", "gemma3.py:398"),
    "Gemma3nForCausalLM": ("no place", "gemma3n.py:1163"),
    "Glm4ForCausalLM": ("by flag", "glm4.py:257"),
    "Glm4MoeForCausalLM": ("never", "glm4_moe.py:559"),
    "GPT2LMHeadModel": ("by flag", "gpt2.py:285"),
    "GPTJForCausalLM": ("no ties", "gpt_j.py:261"),
    "GptOssForCausalLM": ("never", "gpt_oss.py:1417"),
    "GraniteForCausalLM": ("by flag", "granite.py:444"),
    "GraniteMoeForCausalLM": ("by flag", "granitemoe.py:425"),
    "GraniteMoeHybridForCausalLM": ("by flag", "granitemoehybrid.py:672"),
    "GraniteMoeSharedForCausalLM": ("by flag", "granitemoeshared.py:261"),
    "HrmTextForCausalLM": ("by flag", "hrm_text.py:495"),
    "JambaForCausalLM": ("never", "jamba.py:424"),
    "Lfm2ForCausalLM": ("always", "lfm2.py:599"),
    "Lfm2MoeForCausalLM": ("always", "lfm2_moe.py:590"),
    "LlamaForCausalLM": ("by flag", "llama.py:509"),
    "LongcatFlashForCausalLM": ("never", "longcat_flash.py:580"),
    "MambaForCausalLM": ("by flag", "mamba.py:196"),
    "Mamba2ForCausalLM": ("by flag", "mamba2.py:237"),
    "MiniMaxM2ForCausalLM": ("never", "minimax_m2.py:450"),
    "MistralForCausalLM": ("by flag", "llama.py:509"),
    "MixtralForCausalLM": ("by flag", "mixtral.py:412"),
    "NemotronForCausalLM": ("by flag", "nemotron.py:435"),
    "NemotronHForCausalLM": ("never", "nemotron_h.py:842"),
    "OlmoeForCausalLM": ("never", "olmoe.py:372"),
    "OPTForCausalLM": ("by flag", "opt.py:361"),
    "Phi3ForCausalLM": ("by flag", "llama.py:509"),
    "Qwen2ForCausalLM": ("by flag", "qwen2.py:486"),
    "Qwen2MoeForCausalLM": ("by flag", "qwen2_moe.py:468"),
    "Qwen3ForCausalLM": ("by flag", "qwen3.py:313"),
    "Qwen3MoeForCausalLM": ("by flag", "qwen3_moe.py:586"),
    "Qwen3NextForCausalLM": ("never", "qwen3_next.py:851"),
    "StableLmForCausalLM": ("by flag", "stablelm.py:298"),
    "Zamba2ForCausalLM": ("always", "zamba2.py:934"),
}
# Class that reads more than text -> the class of its language model there; "": the usual one of its text_config.
VLLM_LANGUAGE_MODELS: Mapping[str, str] = {
    "Gemma3ForConditionalGeneration": "Gemma3ForCausalLM",
    "InternVLForConditionalGeneration": "",
    "LlavaForConditionalGeneration": "",
    "LlavaNextForConditionalGeneration": "",
    "LlavaOnevisionForConditionalGeneration": "",
    "Mistral3ForConditionalGeneration": "",
    "PaliGemmaForConditionalGeneration": "",
    "Qwen2AudioForConditionalGeneration": "Qwen2ForCausalLM",
    "Qwen2VLForConditionalGeneration": "Qwen2ForCausalLM",
    "Qwen2_5_VLForConditionalGeneration": "Qwen2ForCausalLM",
    "VoxtralForConditionalGeneration": "",
}


def _types(listed: str) -> frozenset[str]:
    return frozenset(listed.split())


# By model type, what transformers 4 does where config.json says nothing, as its config classes say.
FOUR_TIES = _types("""
    albert bart bert bert-generation big_bird bigbird_pegasus biogpt blenderbot blenderbot-small bloom camembert
    cohere cohere2 convbert cpmant ctrl data2vec-text deberta deberta-v2 distilbert electra ernie ernie4_5
    ernie4_5_moe esm falcon falcon_mamba flaubert fnet funnel gemma gemma2 gemma3_text gemma3n_text gpt-sw3 gpt2
    gpt_bigcode gpt_neo gpt_neox_japanese ibert jetmoe layoutlm led lfm2 longformer longt5 luke lxmert m2m_100 mamba
    marian mbart mega megatron-bert mobilebert modernbert modernbert-decoder moonshine mpnet mpt mra mvp nezha nllb-moe
    nystromformer openai-gpt opt pegasus pegasus_x plbart pop2piano prophetnet recurrent_gemma roberta
    roberta-prelayernorm roc_bert roformer smollm3 speech_to_text squeezebert starcoder2 switch_transformers t5 tapas
    transfo-xl trocr udop umt5 vaultgemma visual_bert whisper xglm xlm xlm-prophetnet xlm-roberta xlm-roberta-xl xlnet
    xmod yoso zamba zamba2
""")
FOUR_TIES_NOT = _types("""
    apertus arcee aria_text bamba bitnet blt chameleon code_llama codegen deepseek_v2 deepseek_v3 diffllama doge dots1
    exaone4 falcon_h1 flex_olmo git glm glm4 glm4_moe glm4v_moe_text glm4v_text gpt_neox gpt_oss gptj granite
    granitemoe granitemoehybrid granitemoeshared helium hunyuan_v1_dense hunyuan_v1_moe jamba llama llama4_text
    longcat_flash mamba2 minimax ministral mistral mixtral mt5 nemotron olmo olmo2 olmo3 olmoe open-llama persimmon phi
    phi3 phimoe qwen2 qwen2_5_vl_text qwen2_moe qwen2_vl_text qwen3 qwen3_moe qwen3_next qwen3_vl_moe_text qwen3_vl_text
    reformer rwkv seed_oss stablelm xlstm
""")
# Types whose flag it reads in text_config alone, with the default of the type there.
FOUR_TEXT = _types("""
    aria aya_vision cohere2_vision emu3 florence2 gemma3 gemma3n idefics2 idefics3 internvl kosmos-2 lfm2_vl llama4
    llava llava_next llava_next_video llava_onevision mistral3 mllama ovis2 paligemma perception_lm qwen2_audio qwen3_vl
    qwen3_vl_moe smolvlm video_llava vipllava voxtral
""")
FOUR_FLAT_TEXT = frozenset({"fuyu", "glm4v", "glm4v_moe", "qwen2_5_vl", "qwen2_vl"})  # the top, if there is no part
