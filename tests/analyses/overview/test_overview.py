"""The overview's warnings: each is said once, and names what is wrong."""

from __future__ import annotations

import hashlib
import json

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file
from transformers import T5ForConditionalGeneration

from inspector.analyses.overview.compute import overview
from inspector.analyses.overview.words import PARAMETERS, headline
from inspector.analyses.sharing.compute import sharing
from inspector.report.provenance import content_fingerprint
from inspector.results.plain import to_json
from tests.conftest import silent
from tests.families import ENCODER_DECODER, MIXTURES, UNLISTED, random_model, save_checkpoint
from tests.sentences import NO_TOKENIZER
from tools.bench._sparse import write_shard


def warnings_of(checkpoint):
    return overview(checkpoint, progress=silent).warnings


def test_a_sound_checkpoint_has_none(open_model):
    assert warnings_of(open_model("BertForMaskedLM")) == ()


def test_no_tokenizer_is_said_once(tmp_path, open_path):
    folder = save_checkpoint(random_model("BertModel"), tmp_path / "bare", tokenizer=False)
    result = overview(open_path(folder), progress=silent)
    assert result.tokenizer is None
    assert result.warnings == (NO_TOKENIZER,)


def test_a_head_that_config_promises_and_the_file_lacks(tmp_path, open_path):
    folder = save_checkpoint(random_model("BertForMaskedLM"), tmp_path / "promise")
    tensors = load_file(folder / "model.safetensors")
    del tensors["cls.predictions.transform.dense.weight"]
    save_file(tensors, folder / "model.safetensors")
    result = overview(open_path(folder), progress=silent)
    assert result.heads["masked_lm"] == "absent"
    assert result.warnings == (
        "config.json names BertForMaskedLM, but the file lacks that head's weights. The head counts as absent, "
        "because a loader would fill it with random numbers.",
    )


def test_more_and_fewer_ids_than_rows(tmp_path, open_path):
    few = save_checkpoint(random_model("BertModel", vocab_size=20), tmp_path / "few")
    assert warnings_of(open_path(few)) == (
        "The tokenizer knows 60 ids, but the embedding matrix has 20 rows: 40 ids are past the last row (such as w12, "
        "id 20). A text with such a token crashes the model, and is refused here.",
    )
    many = save_checkpoint(random_model("BertModel", vocab_size=64), tmp_path / "many")
    assert warnings_of(open_path(many)) == (
        "The embedding matrix has 4 more rows than the tokenizer has ids (64 versus 60): no text can reach them.",
    )


def test_without_config_headers_are_still_shown(tmp_path, open_path):
    folder = save_checkpoint(random_model("BertModel"), tmp_path / "headless")
    (folder / "config.json").unlink()
    result = overview(open_path(folder), progress=silent)
    assert (result.model_type, result.architecture) == (None, None)
    assert (result.vocab_rows, result.d_model) == (60, 32)
    assert set(result.heads.values()) == {"absent"}
    assert "There is no config.json" in result.warnings[0]


def test_unknown_model_type_has_no_heads_and_keeps_its_headers(tmp_path, open_path):
    folder = save_checkpoint(random_model("BertModel"), tmp_path / "odd")
    config = json.loads((folder / "config.json").read_text("utf-8"))
    (folder / "config.json").write_text(json.dumps(config | {"model_type": "unheard-of"}), encoding="utf-8")
    result = overview(open_path(folder), progress=silent)
    assert result.model_type == "unheard-of"
    assert set(result.heads.values()) == {"absent"}
    assert len(result.tensors) == 39


def test_a_family_without_a_row_is_asked_by_building(tmp_path, open_path):
    """ConvBERT is not in the table: its head is found by building its class without memory."""
    from transformers import ConvBertConfig, ConvBertForMaskedLM

    config = ConvBertConfig(
        vocab_size=60, hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
        intermediate_size=48, max_position_embeddings=64, embedding_size=32,
    )  # fmt: skip
    torch.manual_seed(0)
    folder = save_checkpoint(ConvBertForMaskedLM(config), tmp_path / "convbert")
    result = overview(open_path(folder), progress=silent)
    assert result.heads["masked_lm"] == "present"
    assert result.heads["causal_lm"] == "absent"


def test_the_hash_of_large_files_is_computed_where_it_is_asked_for(tmp_path, open_path):
    folder = save_checkpoint(random_model("BertModel"), tmp_path / "large")
    (folder / "config.json").unlink()
    (folder / "model.safetensors").unlink()
    write_shard(folder / "model.safetensors", [("x.weight", "BF16", (60, 1_000_000))])
    checkpoint = open_path(folder)
    first = {file.name: file.sha256 for file in overview(checkpoint, progress=silent).files}
    assert first["model.safetensors"] is None
    said = []
    asked = overview(checkpoint, progress=lambda share, text: said.append(text), hash_files=True)
    digests = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}
    assert {file.name: file.sha256 for file in asked.files} == digests
    assert asked.identity == "samples"
    assert any(text.startswith("Hashing: ") and "of 120.0 MB" in text for text in said)
    # A report names what an upload of the same files has.
    lines = "".join(f"{name}\n{digest}\n" for name, digest in sorted(digests.items()))
    assert content_fingerprint(asked) == hashlib.sha256(lines.encode()).hexdigest()


@pytest.mark.parametrize("equal", [True, False])
def test_what_a_class_ties_and_the_file_holds_twice_is_counted_as_a_loader_ties_it(tmp_path, open_path, equal):
    model = random_model("T5ForConditionalGeneration")
    folder = save_checkpoint(model, tmp_path / "t5", tokenizer=False)
    state = {name: tensor.clone() for name, tensor in model.state_dict().items()}  # every tie stored twice
    if not equal:
        state["lm_head.weight"] = torch.randn(state["lm_head.weight"].shape, generator=torch.Generator().manual_seed(0))
    save_file(state, folder / "model.safetensors", metadata={"format": "pt"})
    loaded = T5ForConditionalGeneration.from_pretrained(folder)
    found = overview(open_path(folder), progress=silent)
    assert found.unique_parameters == loaded.num_parameters()
    assert found.listed_parameters == sum(each.numel() for _, each in loaded.named_parameters(remove_duplicate=False))


@pytest.mark.parametrize("equal", [True, False])
def test_copies_of_a_tied_matrix_count_as_the_page_says(tmp_path, open_path, equal):
    """Overview counts what the files store; Parameter sharing counts what transformers' model has."""
    folder = save_checkpoint(random_model("OPTForCausalLM"), tmp_path / "twice")
    state = load_file(folder / "model.safetensors")
    matrix = state["model.decoder.embed_tokens.weight"]
    state["lm_head.weight"] = matrix.clone() if equal else matrix + 1
    save_file(state, folder / "model.safetensors", metadata={"format": "pt"})
    loaded = transformers.OPTForCausalLM.from_pretrained(folder).num_parameters()
    stored = sum(tensor.numel() for tensor in state.values())
    assert loaded == stored - (matrix.numel() if equal else 0)
    checkpoint = open_path(folder)
    found = overview(checkpoint, progress=silent)
    assert found.unique_parameters == stored
    assert found.nbytes_in_memory == 4 * stored
    assert sharing(checkpoint, progress=silent).unique_parameters == loaded
    assert "A matrix that the files store twice may count twice: Parameter sharing" in PARAMETERS


TEXT_TO_TEXT = [name for name in (*ENCODER_DECODER, *UNLISTED, *MIXTURES)
                if name.endswith(("ForConditionalGeneration", "MTModel"))]  # fmt: skip


@pytest.mark.parametrize("architecture", TEXT_TO_TEXT)
def test_an_encoder_decoder_has_its_head_as_its_class_says(tmp_path, open_path, architecture):
    model = random_model(architecture)
    result = overview(open_path(save_checkpoint(model, tmp_path / "whole")), progress=silent)
    if not model.config.is_encoder_decoder:
        assert result.text_to_text == ""
        return
    assert result.text_to_text == "present"
    assert "Text to text" in headline(result)
    assert "text_to_text" not in to_json(result)["heads"]


@pytest.mark.parametrize(
    "architecture", ["BartForConditionalGeneration", "PegasusForConditionalGeneration", "MarianMTModel"]
)
def test_an_encoder_decoder_without_its_output_matrix_has_no_head(tmp_path, open_path, architecture):
    folder = save_checkpoint(random_model(architecture, tie_word_embeddings=False), tmp_path / "cut")
    whole = overview(open_path(folder), progress=silent)
    tensors = load_file(folder / "model.safetensors")
    del tensors["lm_head.weight"]
    save_file(tensors, folder / "model.safetensors")
    assert (whole.text_to_text, overview(open_path(folder), progress=silent).text_to_text) == ("present", "absent")


def test_an_encoder_alone_writes_no_text(tmp_path, open_path):
    result = overview(open_path(save_checkpoint(random_model("T5EncoderModel"), tmp_path / "e")), progress=silent)
    assert result.text_to_text == ""
