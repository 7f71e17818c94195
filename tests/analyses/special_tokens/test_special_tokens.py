"""Special tokens and where a text ends: chat formats of several families, and planted defects."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from safetensors.torch import load_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import LlamaForCausalLM, PreTrainedTokenizerFast

from inspector.analyses.checks.compute import check
from inspector.analyses.checks.result import Check
from inspector.analyses.special_tokens.compute import tokens
from inspector.analyses.special_tokens.result import SpecialTokens
from inspector.errors import CheckpointError
from tests.conftest import silent
from tests.families import random_model, save_checkpoint

CHATML = (
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'"
    " }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
LLAMA3 = (
    "{% set loop_messages = messages %}{% for message in loop_messages %}{% set content = '<|start_header_id|>' + "
    "message['role'] + '<|end_header_id|>\n\n' + message['content'] | trim + '<|eot_id|>' %}{% if loop.index0 == 0 %}"
    "{% set content = bos_token + content %}{% endif %}{{ content }}{% endfor %}"
)
GEMMA = (
    "{{ bos_token }}{% if messages[0]['role'] == 'system' %}{{ raise_exception('System role not supported') }}"
    "{% endif %}{% for message in messages %}{{ '<start_of_turn>' + message['role'] + '\n' + message['content'] | trim "
    "+ '<end_of_turn>\n' }}{% endfor %}"
)
MISTRAL = (
    "{{ bos_token }}{% for message in messages %}{% if message['role'] == 'user' %}{{ '[INST] ' + message['content'] + "
    "' [/INST]' }}{% elif message['role'] == 'assistant' %}{{ message['content'] + eos_token }}{% endif %}{% endfor %}"
)
TRACKED = MISTRAL.replace("{{ message['content'] + eos_token }}", "{% generation %}{{ message['content'] + eos_token }}"
                          "{% endgeneration %}")  # fmt: skip
PLAIN = "{% for message in messages %}### {{ message['role'] }}: {{ message['content'] }}\n{% endfor %}"
# architecture, chat template, its own tokens, the one that ends a turn
CHATS: list[tuple[str, str, list[str], str]] = [
    ("Qwen2ForCausalLM", CHATML, ["<|im_start|>", "<|im_end|>"], "<|im_end|>"),
    ("LlamaForCausalLM", LLAMA3, ["<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"], "<|eot_id|>"),
    ("GemmaForCausalLM", GEMMA, ["<start_of_turn>", "<end_of_turn>"], "<end_of_turn>"),
    ("MistralForCausalLM", MISTRAL, ["[INST]", "[/INST]"], "</s>"),
    ("MistralForCausalLM", TRACKED, ["[INST]", "[/INST]"], "</s>"),
]
FIRST = ["<pad>", "<s>", "</s>"]  # ids 0, 1, 2


@pytest.fixture
def make(tmp_path: Path) -> Callable[..., Path]:
    """Save a small model with a tokenizer that has a chat template."""

    def made(
        architecture: str, template: str | None, own: list[str], *, eos: list[str], vocab: int = 300, **changed: Any
    ) -> Path:
        alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
        bpe = models.BPE({token: number for number, token in enumerate([*FIRST, *alphabet])}, [])
        tokenizer = Tokenizer(bpe)
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        tokenizer.decoder = decoders.ByteLevel()
        tokenizer.add_special_tokens([*FIRST, *own])
        ids = {each: tokenizer.token_to_id(each) for each in (*FIRST, *own)}
        model = random_model(architecture, vocab_size=vocab, **changed)
        if model.can_generate():
            model.generation_config.eos_token_id = [ids[each] for each in eos]
        model.config.eos_token_id = [ids[each] for each in eos]
        folder = save_checkpoint(model, tmp_path)
        wrapped = PreTrainedTokenizerFast(
            tokenizer_object=tokenizer, bos_token="<s>", eos_token=eos[0], pad_token="<pad>", chat_template=template
        )
        wrapped.save_pretrained(folder)
        return folder

    return made


def change(folder: Path, name: str, **values: Any) -> None:
    said = json.loads((folder / name).read_text()) if (folder / name).exists() else {}
    (folder / name).write_text(json.dumps(said | values))


@pytest.mark.parametrize("chat", CHATS)
def test_the_token_that_ends_an_answer_is_found_and_stops(make, open_path, chat):
    architecture, template, own, end = chat
    folder = make(architecture, template, own, eos=[end])
    found = tokens(open_path(folder), progress=silent)
    assert (found.turn_end, found.stops) == (end, True)
    assert found.eos_from == "generation_config.json"
    row = found.tokens.set_index("token").loc[end].to_dict()
    assert {"ends a turn", "eos"} <= {*row["roles"]}
    assert {"generation_config.json", "config.json", "tokenizer.json"} <= {*row["files"]}
    assert [row[each] for each in ("in_template", "reachable", "single")] == [True] * 3
    matrix = random_model(architecture, vocab_size=300).get_input_embeddings().weight.detach().float().numpy()
    norms = np.linalg.norm(matrix, axis=1)
    assert row["norm"] == pytest.approx(norms[row["token_id"]], rel=1e-5)
    assert row["percentile"] == pytest.approx(100 * (norms < norms[row["token_id"]]).mean(), abs=1e-3)


@pytest.mark.parametrize("chat", CHATS[:3])
def test_a_base_models_end_does_not_stop_a_chat(make, open_path, chat):
    architecture, template, own, end = chat
    folder = make(architecture, template, own, eos=["</s>"])
    found = tokens(open_path(folder), progress=silent)
    assert (found.turn_end, found.stops, found.eos_ids) == (end, False, (2,))


def test_without_generation_config_the_configuration_counts_and_without_both_nothing_stops(make, open_path):
    folder = make("LlamaForCausalLM", LLAMA3, CHATS[1][2], eos=["<|eot_id|>"])
    (folder / "generation_config.json").unlink()
    found = tokens(open_path(folder), progress=silent)
    assert (found.eos_from, found.stops) == ("config.json", True)
    change(folder, "config.json", eos_token_id=None)
    found = tokens(open_path(folder), progress=silent)
    assert (found.eos_from, found.eos_ids, found.stops) == ("", (), False)


def test_no_template_and_one_of_plain_text_leave_the_end_unknown(make, open_path):
    folder = make("LlamaForCausalLM", None, [], eos=["</s>"])
    found = tokens(open_path(folder), progress=silent)
    assert (found.turn_end, found.stops, found.template) == (None, None, "")
    assert set(found.tokens["in_template"]) == {None}
    (folder / "chat_template.jinja").write_text(PLAIN)
    found = tokens(open_path(folder), progress=silent)
    assert (found.turn_end, found.stops, found.template) == (None, None, "chat_template.jinja")


def said(found: SpecialTokens, *words: str) -> bool:
    return any(all(word in each for word in words) for each in found.disagreements)


@pytest.mark.parametrize("chat", CHATS[:3])
def test_disagreements_are_said_and_nothing_where_all_agree(make, open_path, chat):
    architecture, template, own, end = chat
    folder = make(architecture, template, own, eos=[end])
    assert tokens(open_path(folder), progress=silent).disagreements == ()

    change(folder, "config.json", eos_token_id=2)
    found = tokens(open_path(folder), progress=silent)
    assert said(found, "eos_token_id is id", "generation_config.json", "id 2 in config.json")
    change(folder, "special_tokens_map.json", bos_token="<pad>")
    change(folder, "added_tokens.json", **{own[0]: 290})
    found = tokens(open_path(folder), progress=silent)
    assert said(found, "bos_token is <s> in tokenizer_config.json, and <pad> in special_tokens_map.json")
    assert said(found, own[0], "id 290 in added_tokens.json")
    change(folder, "tokenizer_config.json", chat_template=PLAIN)
    (folder / "chat_template.jinja").write_text(template)
    found = tokens(open_path(folder), progress=silent)
    assert said(found, "different chat templates: transformers uses chat_template.jinja")
    assert found.turn_end == end
    change(folder, "tokenizer_config.json", pad_token=end)
    assert said(tokens(open_path(folder), progress=silent), f"{end} is the padding token and ends a text, too")
    change(folder, "tokenizer_config.json", eos_token="<s>", pad_token="<pad>")
    assert said(tokens(open_path(folder), progress=silent), "eos_token is <s> (id 1), which is not among")


def test_a_beginning_that_both_add_is_doubled(make, open_path):
    folder = make("LlamaForCausalLM", LLAMA3, CHATS[1][2], eos=["<|eot_id|>"])
    assert not said(tokens(open_path(folder), progress=silent), "adds another one")
    whole = json.loads((folder / "tokenizer.json").read_text())
    sequence = [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}]
    whole["post_processor"] = {
        "type": "TemplateProcessing", "single": sequence, "pair": [*sequence, {"Sequence": {"id": "B", "type_id": 1}}],
        "special_tokens": {"<s>": {"id": "<s>", "ids": [1], "tokens": ["<s>"]}},
    }  # fmt: skip
    (folder / "tokenizer.json").write_text(json.dumps(whole))
    assert said(tokens(open_path(folder), progress=silent), "begins with <s>, and the tokenizer adds another one")


def test_a_token_without_a_row_has_no_norm(make, open_path):
    own = CHATS[0][2]
    folder = make("Qwen2ForCausalLM", CHATML, own, eos=["<|im_end|>"], vocab=260)
    found = tokens(open_path(folder), progress=silent)
    row = found.tokens.set_index("token").loc["<|im_end|>"].to_dict()
    assert row["token_id"] == 260
    assert np.isnan(row["norm"])
    assert np.isnan(row["percentile"])
    assert said(found, "<|im_end|> has id 260, but the embedding matrix has 260 rows")


HOSTILE = {
    "does not end": "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
    "does not end once the compiler has caught what stops it": "{{ ('x y ' * 3000000) | wordwrap(1) | length }}"
    "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
    "reaches for Python": "{{ messages.__class__.__mro__[1].__subclasses__() }}",
    "is broken": "{% for message in messages %}{{ message",
    "is nested": "{% if true %}" * 900 + "x" + "{% endif %}" * 900,
    "divides by nothing": "{{ 1 / 0 }}",
    "sorts a list as a mapping": "{{ messages | dictsort }}",
    "takes no conversation": "{{ raise_exception('No.') }}",
    "reads a file": "{% include '/etc/hostname' %}",
    "leaves the answer out": "{{ messages[0]['content'] }}",
    "asks for what is not there": "{{ messages[7]['content'] }}",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_template_that_gives_no_answer_is_said_to(make, open_path, name):
    folder = make("LlamaForCausalLM", None, [], eos=["</s>"])
    (folder / "chat_template.jinja").write_text(HOSTILE[name])
    found = tokens(open_path(folder), progress=silent)
    assert found.template_problem
    assert (found.turn_end, found.stops) == (None, None)
    assert len(found.tokens) == 3


def test_settings_that_lie_are_left_out_or_refused(make, open_path):
    folder = make("LlamaForCausalLM", LLAMA3, CHATS[1][2], eos=["<|eot_id|>"])
    change(folder, "generation_config.json", eos_token_id=[-1, "x", 10**12])
    found = tokens(open_path(folder), progress=silent)
    assert (found.eos_from, found.stops) == ("", False)
    assert "generation_config.json names no eos_token_id" in found.disagreements[0]
    (folder / "chat_template.jinja").write_text("x" * 1_000_001)
    with pytest.raises(CheckpointError, match=r"chat_template\.jinja has 1,000,001 bytes, more than the limit"):
        open_path(folder)
    (folder / "chat_template.jinja").write_text("[" * 1_000)
    (folder / "generation_config.json").write_text("[" * 1_000)
    with pytest.raises(CheckpointError, match=r"generation_config\.json"):
        open_path(folder)


def stopping(checkpoint: Any) -> Check:
    found = check(checkpoint, progress=silent, values="none")
    return next(each for each in found.checks if each.name == "Stopping")


@pytest.mark.parametrize("chat", CHATS)
def test_a_check_passes_where_an_answer_ends(make, open_path, chat):
    architecture, template, own, end = chat
    found = stopping(open_path(make(architecture, template, own, eos=[end])))
    assert (found.severity, found.evidence) == ("none", ())
    assert found.detail.startswith(f"generate() stops at {end} (id ")
    assert found.detail.endswith("by generation_config.json, and the chat template ends an answer with one of these.")


@pytest.mark.parametrize("chat", CHATS[:3])
def test_a_check_warns_where_an_answer_goes_on(make, open_path, chat):
    architecture, template, own, end = chat
    found = stopping(open_path(make(architecture, template, own, eos=["</s>"])))
    assert (found.status, found.severity) == ("warn", "minor")
    assert [(each.subject, each.problem) for each in found.evidence] == [(end, "does not stop generate()")]
    assert "add that id to eos_token_id" in found.next_step


@pytest.mark.parametrize("chat", CHATS[:3])
def test_a_check_warns_of_files_that_disagree_and_notes_what_generate_does_not_mind(make, open_path, chat):
    architecture, template, own, end = chat
    folder = make(architecture, template, own, eos=[end])
    change(folder, "special_tokens_map.json", pad_token="<s>")
    change(folder, "config.json", eos_token_id=0)
    found = stopping(open_path(folder))
    assert [(each.subject, each.problem, each.severity) for each in found.evidence] == [
        ("pad_token", "two tokens", "minor"),
        ("eos_token_id", "two ids", "note"),
    ]
    assert found.next_step.startswith("Find out which file is right")


def test_a_check_has_nothing_to_say_where_no_file_does(make, open_path):
    folder = make("LlamaForCausalLM", None, [], eos=["</s>"])
    (folder / "generation_config.json").unlink()
    change(folder, "config.json", eos_token_id=None)
    found = stopping(open_path(folder))
    assert (found.checked, found.severity) == (True, "none")
    assert found.detail.startswith("No file says where a generated text would end")


def test_a_check_warns_where_generation_config_leaves_the_end_out(make, open_path):
    """transformers reads config.json only where that file is missing; here it says so itself."""
    folder = make("LlamaForCausalLM", None, [], eos=["</s>"])
    (folder / "generation_config.json").write_text(json.dumps({"do_sample": True, "temperature": 0.7}))
    assert LlamaForCausalLM.from_pretrained(folder).generation_config.eos_token_id is None
    found = stopping(open_path(folder))
    assert (found.severity, found.evidence[0].subject) == ("minor", "generation_config.json")
    (folder / "generation_config.json").unlink()
    assert LlamaForCausalLM.from_pretrained(folder).generation_config.eos_token_id == [2]
    assert stopping(open_path(folder)).severity == "none"


def test_a_check_only_notes_another_end_where_nothing_says_that_text_is_generated(make, open_path):
    folder = make("LlamaForCausalLM", None, [], eos=["</s>"])
    (folder / "generation_config.json").unlink()
    change(folder, "config.json", eos_token_id=1)
    assert stopping(open_path(folder)).severity == "note"


def test_a_check_says_that_a_template_cannot_be_rendered(make, open_path):
    folder = make("LlamaForCausalLM", None, [], eos=["</s>"])
    (folder / "chat_template.jinja").write_text(HOSTILE["divides by nothing"])
    found = stopping(open_path(folder))
    assert found.severity == "none"
    assert "chat_template.jinja cannot be rendered: Jinja refuses it" in found.detail


@pytest.mark.parametrize("architecture", ["LlamaForCausalLM", "GPT2LMHeadModel", "BertForMaskedLM"])
def test_rows_that_nobody_trained_are_told_from_others(make, open_path, architecture):
    """transformers gives a new token the mean of all rows, and who adds one by hand copies another token's row."""
    own = ["<new>", "<copy>"]
    folder = make(architecture, None, own, eos=["</s>"], vocab=259)
    model = getattr(transformers, architecture).from_pretrained(folder)
    model.resize_token_embeddings(261, mean_resizing=True)
    with torch.no_grad():
        model.get_input_embeddings().weight[260] = model.get_input_embeddings().weight[2]
    model.save_pretrained(folder)
    found: Any = tokens(open_path(folder), progress=silent).tokens.set_index("token")
    found = found[found["token_id"] < 261]  # GPT2Config names another one
    assert found["at_mean"].to_dict() == {"<pad>": False, "<s>": False, "</s>": False, "<new>": True, "<copy>": False}
    assert found["equal_to"].to_dict() == {"<pad>": [], "<s>": [], "</s>": [260], "<new>": [], "<copy>": [2]}
    bias = model.get_output_embeddings().bias
    assert found["output_bias"].isna().all() == (bias is None)
    if bias is not None:
        with torch.no_grad():
            bias.copy_(torch.arange(len(bias)))
        model.save_pretrained(folder)
        found = tokens(open_path(folder), progress=silent).tokens
        assert found["output_bias"].tolist() == found["token_id"].tolist()


def test_a_bias_that_the_class_adds_beside_its_head_is_found(make, open_path):
    folder = make("BartForConditionalGeneration", None, ["<new>"], eos=["</s>"], vocab=260)
    model = transformers.BartForConditionalGeneration.from_pretrained(folder)
    model.final_logits_bias.copy_(torch.arange(260.0)[None])
    model.save_pretrained(folder)
    found = tokens(open_path(folder), progress=silent).tokens
    assert found["output_bias"].tolist() == found["token_id"].tolist()


@pytest.mark.parametrize(
    ("architecture", "width", "stored"),
    [
        ("GPT2LMHeadModel", "n_embd", ""),
        ("BertForMaskedLM", "hidden_size", "cls.predictions.bias"),
        ("DistilBertForMaskedLM", "dim", "vocab_projector.bias"),
        ("RobertaForMaskedLM", "hidden_size", "lm_head.bias"),
        ("BartForConditionalGeneration", "d_model", "final_logits_bias"),
    ],
)
def test_a_bias_inside_the_model_is_not_the_heads_where_widths_are_equal(make, open_path, architecture, width, stored):
    """A norm's bias has as many numbers as the vocabulary, where this is as large as a hidden state."""
    folder = make(architecture, None, ["<new>"], eos=["</s>"], vocab=260, **{width: 260})
    found = tokens(open_path(folder), progress=silent).tokens
    if not stored:
        assert found["output_bias"].dropna().empty
        return
    bias = load_file(folder / "model.safetensors")[stored].flatten()
    assert found["output_bias"].tolist() == bias[found["token_id"].tolist()].tolist()


def test_rows_of_zeros_and_of_nan_equal_nothing(make, open_path):
    folder = make("LlamaForCausalLM", None, ["<new>", "<copy>"], eos=["</s>"])
    model = LlamaForCausalLM.from_pretrained(folder)
    with torch.no_grad():
        model.model.embed_tokens.weight[:2] = 0
        model.model.embed_tokens.weight[259:261] = torch.nan
    model.save_pretrained(folder)
    found = tokens(open_path(folder), progress=silent).tokens
    assert found["equal_to"].tolist() == [[]] * 5
    assert found["at_mean"].tolist() == [False, False, False, None, None]
