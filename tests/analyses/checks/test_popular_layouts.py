"""Repositories laid out as popular ones are: no check fails, and what is told of them is what transformers finds."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import transformers
from safetensors import safe_open

from inspector.analyses.checks.compute import check
from inspector.analyses.checks.result import Check
from inspector.analyses.overview.compute import overview
from inspector.analyses.padding.compute import padding
from inspector.analyses.sharing.compute import sharing
from inspector.models.checkpoint import StagedCheckpoint
from tests.conftest import silent
from tests.layouts import build, plus
from tests.popular import LAYOUTS

PICKLED = ("Pickle formats",)
# Those that `make test` tries: they take two seconds together.
EVERYDAY = {"all-mpnet", "ms-marco-MiniLM", "bert-base-uncased", "gpt2", "qwen2", "llama-2", "clip-text", "vit"}


@dataclass(frozen=True, slots=True)
class Facts:
    """What is right for a layout."""

    model_class: str  # that loads it
    left_over: int  # tensors that this class has no place for
    tied: tuple[int, ...]  # how many names each tied group has
    pad_id: int | None  # the tokenizer's
    warned: tuple[str, ...] = ()  # checks that raise a warning


FACTS = {
    "all-MiniLM": Facts("BertModel", 0, (), 0),
    "all-mpnet": Facts("MPNetModel", 0, (), 1),
    "e5": Facts("BertModel", 0, (), 0),
    "bge": Facts("BertModel", 0, (), 0),
    "gte": Facts("BertModel", 0, (), 0),
    "nomic-embed": Facts("NomicBertModel", 0, (), 0),
    "multilingual-e5": Facts("XLMRobertaModel", 0, (), 1),
    "paraphrase-multilingual-MiniLM": Facts("BertModel", 0, (), 1),
    "sentence-t5": Facts("T5EncoderModel", 0, (2,), 0),
    "qwen3-embedding": Facts("Qwen3Model", 0, (), 7),
    "embedding-gemma": Facts("Gemma3TextModel", 0, (), 0),
    "splade": Facts("BertForMaskedLM", 0, (2, 2), 0),
    "ms-marco-MiniLM": Facts("BertForSequenceClassification", 0, (), 0),
    "bge-reranker": Facts("XLMRobertaForSequenceClassification", 0, (), 1),
    "modernbert-reranker": Facts("ModernBertForSequenceClassification", 0, (), 0),
    "qwen3-reranker": Facts("Qwen3ForCausalLM", 0, (2,), 7),
    "bert-base-uncased": Facts("BertForMaskedLM", 4, (2, 2), 0),
    "bert-without-heads": Facts("BertModel", 0, (), 0),
    "bert-tiny": Facts("BertModel", 7, (), 0, PICKLED),
    "distilbert": Facts("DistilBertForMaskedLM", 0, (2,), 0),
    "distilbert-sst2": Facts("DistilBertForSequenceClassification", 0, (), 0),
    "roberta": Facts("RobertaForMaskedLM", 2, (2, 2), 1),
    "xlm-roberta": Facts("XLMRobertaForMaskedLM", 2, (2, 2), 1),
    "deberta-v3": Facts("DebertaV2Model", 11, (), 0, PICKLED),
    "electra": Facts("ElectraForPreTraining", 0, (), 0),
    "albert": Facts("AlbertForMaskedLM", 2, (2, 2), 0),
    "modernbert": Facts("ModernBertForMaskedLM", 0, (2,), 0),
    "esm2": Facts("EsmForMaskedLM", 0, (2,), 1),
    "gpt2": Facts("GPT2LMHeadModel", 0, (2,), None),
    "qwen2": Facts("Qwen2ForCausalLM", 0, (2,), 7),
    "qwen2.5-large": Facts("Qwen2ForCausalLM", 0, (), 7),
    "qwen3": Facts("Qwen3ForCausalLM", 0, (2,), 7),
    "llama-2": Facts("LlamaForCausalLM", 0, (), None),
    "llama-3": Facts("LlamaForCausalLM", 0, (), None),
    "llama-3.2": Facts("LlamaForCausalLM", 0, (2,), None),
    "gemma": Facts("GemmaForCausalLM", 0, (2,), 0),
    "gemma-2": Facts("Gemma2ForCausalLM", 0, (2,), 0),
    "gemma-3": Facts("Gemma3ForCausalLM", 0, (2,), 0),
    "mistral": Facts("MistralForCausalLM", 0, (), None),
    "mixtral": Facts("MixtralForCausalLM", 0, (), None),
    "deepseek-v3": Facts("DeepseekV3ForCausalLM", 32, (), None),
    "phi-3": Facts("Phi3ForCausalLM", 0, (), 10),
    "phi-4": Facts("Phi3ForCausalLM", 0, (), None),
    "olmo-2": Facts("Olmo2ForCausalLM", 0, (), None),
    "falcon": Facts("FalconForCausalLM", 0, (2,), None),
    "bloom": Facts("BloomForCausalLM", 0, (2,), 3),
    "opt": Facts("OPTForCausalLM", 0, (2,), 1, PICKLED),
    "pythia": Facts("GPTNeoXForCausalLM", 0, (), None),
    "t5": Facts("T5ForConditionalGeneration", 0, (4,), 0),
    "flan-t5": Facts("T5ForConditionalGeneration", 0, (3,), 0),
    "mt5": Facts("MT5ForConditionalGeneration", 0, (3,), 0, PICKLED),
    "umt5-encoder": Facts("UMT5EncoderModel", 0, (2,), 0),
    "t5-encoder-of-an-image-model": Facts("T5EncoderModel", 0, (2,), None),
    "bart": Facts("BartModel", 0, (3,), 1),
    "bart-large-cnn": Facts("BartForConditionalGeneration", 0, (4,), 1),
    "marian": Facts("MarianMTModel", 0, (4,), 1, PICKLED),
    "pegasus": Facts("PegasusForConditionalGeneration", 0, (4,), 0),
    "whisper": Facts("WhisperForConditionalGeneration", 0, (2,), 7),
    "clip-text": Facts("CLIPTextModel", 0, (), 7),
    "siglip-text": Facts("SiglipTextModel", 0, (), 1),
    "wav2vec2": Facts("Wav2Vec2Model", 0, (), None),
    "gpt-neo": Facts("GPTNeoForCausalLM", 0, (2,), None),
    "codegen": Facts("CodeGenForCausalLM", 0, (), None),
    "dinov2": Facts("Dinov2Model", 0, (), None),
    "vit": Facts("ViTForImageClassification", 0, (), None),
}
# What another class of the same kind loads of the tensors that are left over
LOADED_BY = {
    "bert-base-uncased": "BertForPreTraining",
    "bert-tiny": "BertForPreTraining",
    "roberta": "RobertaModel",
    "xlm-roberta": "XLMRobertaModel",
    "albert": "AlbertModel",
    "deberta-v3": "",
}
every = pytest.mark.parametrize(
    "layout", [pytest.param(name, marks=[] if name in EVERYDAY else pytest.mark.families) for name in LAYOUTS]
)


@pytest.fixture
def laid_out(tmp_path, open_path) -> Callable[[str], tuple[Path, StagedCheckpoint]]:
    """Write a layout's folder and open it."""

    def opened(name: str) -> tuple[Path, StagedCheckpoint]:
        folder = build(LAYOUTS[name], tmp_path / name)
        return folder, open_path(folder)

    return opened


def checks_of(checkpoint: StagedCheckpoint) -> dict[str, Check]:
    return {each.name: each for each in check(checkpoint, progress=silent).checks}


def loaded(model_class: str, folder: Path) -> tuple[Any, dict[str, Any]]:
    """What transformers makes of the folder, and what it says of its names."""
    transformers.logging.set_verbosity_error()
    return getattr(transformers, model_class).from_pretrained(folder, output_loading_info=True)


def countable(names: Any) -> set[str]:
    """Names without those of experts, which a loader merges before it counts them, and of masks: no weights."""
    return {name for name in names if not re.search(r"\.experts\.|\.causal_mask$|\.attention\.(masked_)?bias$", name)}


def stored_names(folder: Path) -> set[str]:
    names: set[str] = set()
    for path in folder.glob("model*.safetensors"):
        with safe_open(path, "pt") as file:
            names |= set(file.keys())
    return names


@every
def test_a_popular_layout_is_sound(laid_out, layout):
    folder, checkpoint = laid_out(layout)
    facts, checks = FACTS[layout], checks_of(checkpoint)
    assert {name: each.status for name, each in checks.items() if each.status != "ok"} == dict.fromkeys(
        facts.warned, "warn"
    )
    shared = sharing(checkpoint, progress=silent)
    assert shared.model_class == facts.model_class
    model, info = loaded(facts.model_class, folder)
    left_over = [each.subject for each in checks["Left-over tensors"].evidence]
    missing = [each for each in checks["Heads and weights"].evidence if each.problem == "not in the file"]
    assert (len(left_over), missing, info["missing_keys"]) == (facts.left_over, [], set())
    assert countable(left_over) == countable(info["unexpected_keys"])
    assert checks["Left-over tensors"].severity in ("none", "note")
    assert (shared.unique_parameters, shared.listed_parameters) == (
        model.num_parameters(),
        sum(each.numel() for _, each in model.named_parameters(remove_duplicate=False)),
    )
    tied = [group for group in shared.groups if group.verdict == "tied"]
    assert tuple(len(group.names) for group in tied) == facts.tied
    if not LAYOUTS[layout].pickled:
        assert {name for group in shared.groups for name in group.in_file} <= stored_names(folder)


@every
def test_the_summary_of_a_popular_layout_is_right(laid_out, layout):
    folder, checkpoint = laid_out(layout)
    found, config = overview(checkpoint, progress=silent), json.loads((folder / "config.json").read_text())
    matrix = model_matrix(FACTS[layout].model_class, folder)
    assert found.architecture == next(iter(config["architectures"] or ()), None)
    assert found.vocab_rows == (len(matrix) if matrix is not None else None)
    assert (found.tokenizer.pad_id if found.tokenizer else None) == FACTS[layout].pad_id
    assert not any("lacks that head" in warning for warning in found.warnings)
    assert bool(found.pipeline) == (folder / "modules.json").exists()


def model_matrix(model_class: str, folder: Path) -> Any:
    if getattr(transformers, model_class).main_input_name in ("pixel_values", "input_values"):
        return None
    return loaded(model_class, folder)[0].get_input_embeddings().weight


@pytest.mark.parametrize("layout", LOADED_BY)
def test_the_class_that_loads_what_another_leaves_over_is_named(laid_out, layout):
    found = checks_of(laid_out(layout)[1])["Left-over tensors"]
    by = f"; {LOADED_BY[layout]} loads them" if LOADED_BY[layout] else ""
    assert found.detail.endswith(f"has no place for and never uses{by}.")
    assert (found.severity, found.next_step) == ("note", "")


def test_a_tensor_that_no_class_loads_is_still_worth_a_look(tmp_path, open_path):
    layout = LAYOUTS["roberta"]
    more = replace(layout, change=lambda state: plus(layout.change(state), {"other.weight": (2, 2)}))
    found = checks_of(open_path(build(more, tmp_path / "more")))["Left-over tensors"]
    assert (found.status, found.severity, len(found.evidence)) == ("warn", "minor", 3)
    assert "loads" not in found.detail


def test_a_discriminators_head_is_not_called_absent(laid_out):
    _, checkpoint = laid_out("electra")
    assert overview(checkpoint, progress=silent).warnings == ()


def test_masks_are_no_parameters_and_no_damaged_weights(laid_out):
    folder, checkpoint = laid_out("pythia")
    model, _ = loaded("GPTNeoXForCausalLM", folder)
    assert overview(checkpoint, progress=silent).unique_parameters == model.num_parameters()
    assert checks_of(checkpoint)["Zero tensors"].evidence == ()


def test_the_padding_row_of_positions_is_no_row_that_was_pruned(laid_out):
    _, checkpoint = laid_out("xlm-roberta")
    assert checks_of(checkpoint)["Zero tensors"].detail == "No weight matrix is all zeros."


def test_copies_that_nothing_ties_are_not_said_to_be_declared(laid_out):
    _, checkpoint = laid_out("pegasus")
    assert checks_of(checkpoint)["Ties"].detail == "1 group of names is tied; 1 other group has equal numbers."


def test_a_class_that_does_not_use_the_padding_id_may_have_another(laid_out):
    _, checkpoint = laid_out("clip-text")
    found = checks_of(checkpoint)["Padding"]
    assert found.detail == (
        "The padding id is 1 (from config.json), but the tokenizer pads with <|endoftext|> (id 7). CLIPTextModel does "
        "not use the padding id."
    )
    assert "tied" not in padding(checkpoint, progress=silent).verdict


def test_a_part_of_a_model_has_a_padding_page(laid_out):
    _, checkpoint = laid_out("siglip-text")
    found = padding(checkpoint, progress=silent, text="the dog")
    assert found.agreement.startswith("The tokenizer pads with id 1, but the model has no padding_idx")
    assert found.averaging_note.startswith("1 sentence")


def test_a_model_of_images_has_no_vocabulary_to_check(laid_out):
    _, checkpoint = laid_out("vit")
    rows = checks_of(checkpoint)["Tokenizer and rows"]
    assert rows.detail == "Nothing to check: ViTForImageClassification reads images, not tokens."
