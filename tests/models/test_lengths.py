"""How long a text may be: the class itself runs at that length, and fails with one token more."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
import torch
import transformers
from transformers import PreTrainedModel

from inspector.analyses.lens.compute import lens
from inspector.analyses.plausibility.compute import plausibility
from inspector.analyses.tokenization.compute import tokenize
from inspector.errors import RequestError
from inspector.models.build import meta_model
from inspector.models.families import FAMILIES as TABLE
from inspector.models.families import longest_text
from inspector.models.weightless.lengths import longest_run
from tests.conftest import silent
from tests.families import (
    BART,
    ENCODER,
    ENCODER_DECODER,
    MODELS,
    RENAMED,
    SIZES,
    UNLISTED,
    UNLISTED_MASKED,
    VOCAB,
    WITHOUT_HEAD,
    random_model,
    save_checkpoint,
)

FEW, MANY = 8, 300
# This config's rotary part is of another size than its heads: it runs no text at all.
FAMILIES = set(MODELS | UNLISTED | UNLISTED_MASKED | RENAMED | WITHOUT_HEAD) - {"DeepseekV3ForCausalLM"}
TWO_STACKS = set(ENCODER_DECODER) - {"T5EncoderModel"}
# Classes of the table's families, and what makes one run.
RUNS = {"DeepseekV3ForCausalLM": {"head_dim": 8}}
LISTED = sorted(
    name
    for name in FAMILIES | TWO_STACKS | RUNS.keys()
    if (family := TABLE.get(getattr(transformers, name).config_class.model_type)) and family.positions
)
PADDED = ENCODER | {"pad_token_id": 1}
GPT = {"vocab_size": VOCAB, "n_positions": 64, "n_embd": 32, "n_layer": 2, "n_head": 2}
LED = {name: value for name, value in BART.items() if name != "max_position_embeddings"} | {
    "max_encoder_position_embeddings": 128, "max_decoder_position_embeddings": 64, "attention_window": [4, 4],
}  # fmt: skip
# architecture -> config values, and the longest text; None: nothing bounds it
OTHERS: dict[str, tuple[dict[str, Any], int | None]] = {
    "LongformerForMaskedLM": (PADDED | {"attention_window": [4, 4]}, 62),
    "Data2VecTextForMaskedLM": (PADDED, 62),
    "IBertForMaskedLM": (PADDED, 62),
    "RobertaPreLayerNormForMaskedLM": (PADDED, 62),
    "XmodForMaskedLM": (PADDED | {"languages": ["en"], "default_language": "en"}, 62),
    "LukeForMaskedLM": (PADDED | {"entity_vocab_size": 10, "entity_emb_size": 16}, 62),
    "MarkupLMModel": (
        PADDED | {"max_xpath_tag_unit_embeddings": 16, "max_xpath_subs_unit_embeddings": 16, "tag_pad_id": 15,
                  "subs_pad_id": 15, "xpath_unit_hidden_size": 8, "max_depth": 4}, 62),
    "CamembertForCausalLM": (PADDED | {"is_decoder": True}, 62),
    "LayoutLMForMaskedLM": (ENCODER, 64),
    "BigBirdForMaskedLM": (ENCODER | {"block_size": 2, "num_random_blocks": 1}, 64),
    "RoFormerForMaskedLM": (ENCODER | {"embedding_size": 32}, 64),
    "XLMWithLMHeadModel": ({"vocab_size": VOCAB, "emb_dim": 32, "n_layers": 2, "n_heads": 2,
                            "max_position_embeddings": 64}, 64),
    "CanineForSequenceClassification": (
        {**ENCODER, "num_hash_buckets": 64, "num_hash_functions": 4, "local_transformer_stride": 8}, 64),
    "GPTNeoForCausalLM": (SIZES | {"hidden_size": 32, "num_layers": 2, "num_heads": 2, "window_size": 8,
                                   "attention_types": [[["global", "local"], 1]]}, 64),
    "GPTJForCausalLM": (GPT | {"rotary_dim": 8}, 64),
    "CTRLLMHeadModel": (GPT | {"dff": 48}, 64),
    "MptForCausalLM": ({"vocab_size": VOCAB, "d_model": 32, "n_layers": 2, "n_heads": 2, "max_seq_len": 64}, 64),
    "BioGptForCausalLM": (ENCODER, 64),
    "BloomForCausalLM": ({"vocab_size": VOCAB, "hidden_size": 32, "n_layer": 2, "n_head": 2}, None),
    "XGLMForCausalLM": (SIZES | {"d_model": 32, "ffn_dim": 48, "num_layers": 2, "attention_heads": 2}, None),
    "XLNetLMHeadModel": ({"vocab_size": VOCAB, "d_model": 32, "n_layer": 2, "n_head": 2, "d_inner": 48}, None),
    "FunnelForMaskedLM": ({"vocab_size": VOCAB, "block_sizes": [1, 1], "num_decoder_layers": 1, "d_model": 32,
                           "n_head": 2, "d_head": 16, "d_inner": 48}, None),
    "MambaForCausalLM": ({"vocab_size": VOCAB, "hidden_size": 32, "num_hidden_layers": 2, "state_size": 4}, None),
}  # fmt: skip
CHANGED: dict[str, tuple[str, dict[str, Any], int | None]] = {
    "relative alone": ("DebertaV2ForMaskedLM", {"position_biased_input": False, "relative_attention": True}, None),
    "rotary": ("EsmForMaskedLM", {"position_embedding_type": "rotary"}, None),
    "another padding id": ("RobertaForMaskedLM", {"pad_token_id": 5}, 58),
    "several ends": ("LlamaForCausalLM", {"eos_token_id": [1, 2]}, None),
    "short": ("BertForMaskedLM", {"max_position_embeddings": 4}, 4),
}
# config.json of a RoBERTa, but for what the table needs of it
ROBERTA = {
    "model_type": "roberta",
    "architectures": ["RobertaModel"],
    "max_position_embeddings": 514,
    "pad_token_id": 1,
}
UNKNOWN: dict[str, dict[str, Any]] = {
    "no number of positions": {**ROBERTA, "max_position_embeddings": None},
    "no padding id": {**ROBERTA, "pad_token_id": None},
    "a padding id past them": {**ROBERTA, "pad_token_id": 514},
    "another family's class": {**ROBERTA, "architectures": ["BertModel"]},
}


def built(architecture: str, values: dict[str, Any]) -> PreTrainedModel:
    model_class = getattr(transformers, architecture)
    torch.manual_seed(0)
    return model_class(model_class.config_class(**values)).eval()


def runs(model: PreTrainedModel, length: int, *, decoder: bool = False) -> bool:
    """Whether transformers' own model reads a text of so many tokens."""
    few, many = torch.full((1, FEW), 7), torch.full((1, length), 7)
    inputs = {"input_ids": few if decoder else many}
    if type(model).__name__.endswith("ForMultipleChoice"):
        inputs["input_ids"] = many[None]
    if model.config.is_encoder_decoder:
        inputs["decoder_input_ids"] = many if decoder else few
    try:
        with torch.inference_mode():
            model(**inputs)
    except (IndexError, RuntimeError, ValueError):
        return False
    return True


def is_the_longest(model: PreTrainedModel, found: int | None, *, decoder: bool = False) -> bool:
    if found is None:
        return runs(model, MANY, decoder=decoder)
    return runs(model, found, decoder=decoder) and not runs(model, found + 1, decoder=decoder)


@pytest.mark.parametrize("architecture", sorted(FAMILIES))
def test_the_class_reads_that_many_and_no_more(open_model, architecture):
    assert is_the_longest(random_model(architecture), open_model(architecture).positions)


@pytest.mark.parametrize("architecture", LISTED)
def test_where_the_table_tells_the_class_tells_the_same(open_model, architecture):
    checkpoint = open_model(architecture, **RUNS.get(architecture, {}))
    model_class = getattr(transformers, architecture)
    for decoder in {False, architecture in ENCODER_DECODER and architecture != "T5EncoderModel"}:
        told = longest_run(lambda: checkpoint.meta_model(model_class), decoder=decoder)
        assert longest_text(checkpoint.config_values, checkpoint.family) == told


def test_the_table_tells_of_all_families_but_one():
    assert [name for name, family in TABLE.items() if family.positions is None] == ["deberta-v2"]


@pytest.mark.parametrize("case", UNKNOWN)
def test_only_the_class_knows_what_config_json_leaves_to_it(case):
    with pytest.raises(LookupError):
        longest_text(UNKNOWN[case], TABLE["roberta"])


def test_a_tokenizer_of_a_family_of_the_table_is_asked_without_torch(tmp_path):
    code = (
        "import sys\n"
        "from inspector.analyses.tokenization.compute import tokenize\n"
        "from inspector.models.checkpoint import StagedCheckpoint\n"
        "from inspector.settings import read_settings\n"
        "from inspector.store.opening import open_checkpoint\n"
        "from inspector.store.reference import find_reference\n"
        f"settings = read_settings({{'INSPECTOR_HOME': {str(tmp_path)!r}}})\n"
        "def silent(*_): pass\n"
        "for name in ('demo-bert', 'demo-gpt2'):\n"
        "    found = find_reference(name)\n"
        "    manifest, _ = open_checkpoint(found, settings=settings, progress=silent, restrict_paths=False)\n"
        "    asked = tokenize(StagedCheckpoint(manifest, settings=settings), texts=('a dog',), progress=silent)\n"
        "    print(asked.longest, 'torch' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout == "128 False\n128 False\n", done.stderr


@pytest.mark.parametrize("architecture", sorted(TWO_STACKS))
def test_so_do_both_of_two_stacks(open_model, architecture):
    checkpoint, model = open_model(architecture), random_model(architecture)
    assert is_the_longest(model, checkpoint.positions)
    assert is_the_longest(model, checkpoint.decoder_positions, decoder=True)


@pytest.mark.parametrize("architecture", sorted(OTHERS))
def test_other_ways_to_count_positions(architecture):
    values, longest = OTHERS[architecture]
    model = built(architecture, values)
    assert longest_run(lambda: meta_model(type(model), model.config)) == longest
    assert is_the_longest(model, longest)


@pytest.mark.parametrize("case", CHANGED)
def test_it_is_the_configuration_that_decides(open_model, case):
    architecture, changes, longest = CHANGED[case]
    assert open_model(architecture, **changes).positions == longest
    if longest != 4:  # fewer than the truth's own text
        assert is_the_longest(random_model(architecture, **changes), longest)


def test_the_stacks_may_differ():
    model = built("LEDForConditionalGeneration", LED)

    def build() -> PreTrainedModel:
        return meta_model(type(model), model.config)

    assert (longest_run(build), longest_run(build, decoder=True)) == (128, 64)
    assert is_the_longest(model, 128)
    assert is_the_longest(model, 64, decoder=True)


def test_the_last_position_that_serves_for_all_beyond_is_no_position():
    """TAPAS reads its last row again instead of failing."""
    model = built("TapasForMaskedLM", ENCODER)
    asked: list[list[int]] = []
    table = model.get_submodule("tapas.embeddings.position_embeddings")
    table.register_forward_pre_hook(lambda _, given: asked.append(given[0].flatten().tolist()))
    longest = longest_run(lambda: meta_model(type(model), model.config))
    assert longest == 64
    assert runs(model, longest)
    assert runs(model, longest + 1)
    assert asked == [[*range(64)], [*range(64), 63]]


@pytest.mark.parametrize("architecture", ["RobertaForMaskedLM", "OPTForCausalLM"])
def test_every_verb_names_the_same_number(tmp_path, open_path, architecture):
    checkpoint = open_path(save_checkpoint(random_model(architecture), tmp_path / "model"))
    text = " ".join(["w1"] * 80)
    tokens = len(checkpoint.tokens.encode(text).ids)
    longest = checkpoint.positions
    told = tokenize(checkpoint, texts=(text,), progress=silent)
    assert told.longest == longest < tokens
    assert told.warnings == (
        f"The text has {tokens} tokens, more than the {longest} positions of {checkpoint.name}: the model cannot read "
        "it.",
    )
    for ask in (lens, plausibility):
        with pytest.raises(
            RequestError, match=f"has {tokens} tokens, but {checkpoint.name} takes at most {longest}: shorten it"
        ):
            ask(checkpoint, text=text, progress=silent)


def test_a_longer_text_than_config_json_names_is_read_where_nothing_bounds_it(open_model):
    checkpoint = open_model("LlamaForCausalLM")
    text = " ".join(["w1"] * 80)
    tokens = len(checkpoint.tokens.encode(text).ids)
    said = (
        f"The text has {tokens} tokens, more than the 64 positions that config.json names: the model reads it all the "
        "same, but may not have been trained on such long texts."
    )
    told = tokenize(checkpoint, texts=(text,), progress=silent)
    assert (told.longest, told.warnings) == (None, (said,))
    assert said in plausibility(checkpoint, text=text, progress=silent).warnings
    assert said in lens(checkpoint, text=text, layers=(2,), progress=silent).warnings
    assert said not in lens(checkpoint, text="w1 w2", progress=silent).warnings
