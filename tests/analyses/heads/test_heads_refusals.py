"""Heads that a file lacks or holds in part, and inputs that no head takes."""

from __future__ import annotations

import pytest
import torch
from safetensors.torch import load_file, save_file

from inspector.errors import CheckpointError, NotInCheckpointError, RequestError
from tests.analyses.heads.heads_cases import LONG, PAIR, TEXT, run_heads
from tests.conftest import silent
from tests.families import random_model, save_checkpoint
from tests.sentences import SURROGATE


def without(folder, *parts: str):
    """Take tensors out of a checkpoint."""
    path = folder / "model.safetensors"
    tensors = load_file(path)
    kept = {name: t for name, t in tensors.items() if not any(part in name for part in parts)}
    assert len(kept) < len(tensors)
    save_file(kept, path)
    return folder


@pytest.mark.parametrize(
    ("architecture", "lost"),
    [
        ("BertForSequenceClassification", "classifier."),
        ("BertForTokenClassification", "classifier."),
        ("BertForQuestionAnswering", "qa_outputs."),
        ("BertForMultipleChoice", "classifier."),
        ("BertForNextSentencePrediction", "cls."),
        ("RobertaForSequenceClassification", "classifier."),
    ],
)
def test_a_head_that_the_file_lacks_is_never_run(tmp_path, open_path, architecture, lost):
    folder = save_checkpoint(random_model(architecture), tmp_path / "gone")
    checkpoint = open_path(without(folder, lost))
    with pytest.raises(NotInCheckpointError, match=r"^gone has no task head: its file lacks"):
        run_heads(checkpoint, progress=silent, text=TEXT, pair=PAIR, choices=("a", "b"))


@pytest.mark.parametrize(
    ("architecture", "lost"),
    [
        ("BertForSequenceClassification", "pooler."),  # its answer depends on the pooler
        ("BertForMultipleChoice", "pooler."),
        ("BertForNextSentencePrediction", "pooler.dense.bias"),
        ("BertForQuestionAnswering", "qa_outputs.bias"),
        ("RobertaForSequenceClassification", "classifier.dense."),
    ],
)
def test_half_a_head_is_refused_by_the_tensor_that_lacks(tmp_path, open_path, architecture, lost):
    folder = save_checkpoint(random_model(architecture), tmp_path / "half")
    checkpoint = open_path(without(folder, lost))
    with pytest.raises(NotInCheckpointError, match=r"half has no \S+ ?\S* ?head: its file lacks"):
        run_heads(checkpoint, progress=silent, text=TEXT, pair=PAIR, choices=("w1", "w2"))


@pytest.mark.parametrize("head", ["masked_lm", "causal_lm", "question_answering"])
def test_an_absent_head_is_named_with_what_there_is(open_model, head):
    checkpoint = open_model("BertForSequenceClassification")
    with pytest.raises(NotInCheckpointError) as error:
        run_heads(checkpoint, progress=silent, text=TEXT, head=head)
    assert str(error.value).endswith("so none runs. It has a sequence-classification head.")


def test_a_head_that_only_config_json_names_is_said_and_another_shown(tmp_path, open_path):
    folder = save_checkpoint(random_model("BertForMaskedLM"), tmp_path / "named")
    path = folder / "config.json"
    path.write_text(path.read_text().replace("BertForMaskedLM", "BertForTokenClassification"))
    found = run_heads(open_path(folder), progress=silent, text="w1 [MASK]")
    assert found.head == "masked_lm"
    assert found.warnings == (
        "config.json names BertForTokenClassification, but the file lacks that head's weights. The masked-LM head is "
        "shown instead, because the file has it.",
    )


def test_a_damaged_weight_is_said(tmp_path, open_path):
    model = random_model("BertForSequenceClassification")
    with torch.no_grad():
        model.classifier.bias[0] = float("nan")
    with pytest.raises(CheckpointError, match=r"its classifier\.bias contains NaN or infinity"):
        run_heads(open_path(save_checkpoint(model, tmp_path / "nan")), progress=silent, text=TEXT)


@pytest.mark.parametrize(
    ("architecture", "options", "sentence"),
    [
        ("BertForQuestionAnswering", {}, "There is no second text: this head reads a question, and a second text "
         "with the answer."),
        ("BertForNextSentencePrediction", {"pair": "  "}, "There is no second text: this head "
         "reads a sentence, and a second one that may follow it."),
        ("BertForMultipleChoice", {"choices": ("w1", "")}, "This head chooses between endings: "
         "give at least two, one per line or one for each --choice."),
        ("BertForMultipleChoice", {"choices": ("w1",) * 65}, "Endings: give at most 64, not "
         "65."),
        ("BertForTokenClassification", {"text": " "}, "There is no text: type a sentence."),
        ("BertForTokenClassification", {"text": LONG}, "The text has 602 tokens, but "
         "BertForTokenClassification takes at most 64: shorten it."),
        ("BertForQuestionAnswering", {"pair": LONG}, "The text has 608 tokens, but "
         "BertForQuestionAnswering takes at most 64: shorten it."),
        ("BertForSequenceClassification", {"text": "a\ud800"}, SURROGATE),
        ("BertForQuestionAnswering", {"pair": "a\udfff"}, SURROGATE),
        ("GPT2LMHeadModel", {"k": 0}, "Next tokens must be between 1 and 1,000, not 0."),
        ("GPT2LMHeadModel", {"temperature": -1.0}, "Temperature must be between 0 and 10, not "
         "-1."),
        ("GPT2LMHeadModel", {"new_tokens": 201}, "New tokens must be between 0 and 200, not 201."),
        ("GPT2LMHeadModel", {"head": "x"}, "Head must be masked_lm, causal_lm, next_sentence, "
         "sequence_classification, token_classification, question_answering or multiple_choice, "
         "not 'x'."),
        ("GPT2LMHeadModel", {"seed": -1}, "Seed must be between 0 and 4,294,967,295, not -1."),
        ("BertForQuestionAnswering", {"longest_answer": 501}, "Longest answer must be between 1 "
         "and 500, not 501."),
        *(("BertForQuestionAnswering", {"right_answer": places}, "Right answer must be the "
           "positions of its first and last token, counted from 0, such as 3,5.")
          for places in ((1, 2, 3), (-1, 2), (0, 2**31))),
    ],
)  # fmt: skip
def test_refusals(open_model, architecture, options, sentence):
    with pytest.raises(RequestError) as error:
        run_heads(open_model(architecture), progress=silent, **({"text": TEXT} | options))
    assert str(error.value) == sentence
