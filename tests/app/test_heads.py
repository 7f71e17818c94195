"""The Task heads page: each head's answer, absent heads, the objective and tokenization."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

import pytest
import torch
from streamlit.testing.v1 import AppTest
from transformers import BertForPreTraining, BertTokenizer

from inspector.demo import DEMOS
from tests.app.looking import facts, said

Open = Callable[..., AppTest]
BERT = DEMOS["demo-bert"].folder
TEXT, PAIR = "a large plant with a thick trunk.", "a person who studies law."


def table(app: AppTest, column: str):
    """The first table that has a column."""
    return next(each.value for each in app.dataframe if column in each.value.columns)


@pytest.fixture(scope="module")
def outputs():
    """The demo's own scores, by transformers alone."""
    model = BertForPreTraining.from_pretrained(BERT).eval()
    tokenizer = BertTokenizer.from_pretrained(BERT)

    def run(*texts: str, **changes: torch.Tensor):
        inputs = tokenizer(*texts, return_tensors="pt") | changes
        with torch.inference_mode():
            return model(**inputs)

    return run


def test_the_next_sentence_is_the_models_own_and_the_file_lacks_other_heads(open_app: Open, outputs) -> None:
    app = open_app("heads", text=TEXT, pair=PAIR)
    assert not app.exception
    chance = float(outputs(TEXT, PAIR).seq_relationship_logits[0].softmax(0)[0])
    assert facts(app)["Class"] == "BertForNextSentencePrediction"
    shown = re.search(r"the probability is ([\d.]+) % that it does", said(app))
    assert shown
    assert float(shown[1]) == pytest.approx(100 * chance, abs=0.051)
    assert f"'--text={TEXT}' '--pair={PAIR}' --head=next_sentence" in app.code[-1].value
    app = open_app("heads", text=TEXT, pair=PAIR, tab="Output")
    assert "Not in this file, so not run: Causal LM, Sequence classification" in said(app)
    (fields,) = (each.value for each in app.dataframe if "axes" in each.value)
    assert ("logits", "1 × 2", "batch × 2") in fields[["field", "shape", "axes"]].itertuples(index=False, name=None)


def test_the_labels_table_and_losses_are_those_of_the_objective(open_app: Open, outputs) -> None:
    app = open_app("heads", text=TEXT, pair=PAIR, share="0.6", seed="5", follows="false", tab="Pre-training objective")
    rows = table(app, "label")
    labels = torch.tensor([rows["label"].tolist()])
    changed = torch.tensor([rows["after_id"].tolist()])
    output = outputs(TEXT, PAIR, input_ids=changed, labels=labels, next_sentence_label=torch.tensor([1]))
    assert float(facts(app)["Together"].split()[0]) == pytest.approx(output.loss.item(), abs=1e-3)
    assert "label 1" in said(app)
    chosen = int((labels != -100).sum())
    assert f"{chosen} of {len(rows)} tokens chosen" in said(app)
    assert "--does-not-follow" in app.code[-1].value


def test_the_masked_lm_head_points_to_its_page(open_app: Open) -> None:
    app = open_app("heads", head="masked_lm", text="the [MASK] of england.")
    assert not app.exception
    assert facts(app)["Class"] == "BertForMaskedLM"
    assert any("What does the model predict" in link.proto.label for link in app.get("page_link"))


def test_the_continuation_stands_step_by_step(open_app: Open) -> None:
    app = open_app("heads", checkpoint="demo-gpt2", text="family Rosaceae is a", new_tokens="3", k="4")
    steps = table(app, "entropy")
    assert len(steps) == 3
    assert app.code[0].value.startswith("family Rosaceae is a genus")
    bars = json.loads(app.get("plotly_chart")[0].proto.spec)["data"][0]
    assert len(bars["hovertext"]) == 4
    assert [each.label for each in app.tabs] == ["Answers", "Input", "Output", "Tokenization"]


def test_the_batch_is_padded_to_the_longest(open_app: Open) -> None:
    app = open_app("heads", text=TEXT, pair=PAIR, texts="one.\n☃ two three", tab="Tokenization")
    batch = table(app, "padding")
    assert [len(ids) for ids in batch["ids"]] == (batch["tokens"] + batch["padding"]).tolist()
    assert batch["unknown"].tolist() == [0, 0, 1]
    tokenizer = BertTokenizer.from_pretrained(BERT)
    first = tokenizer(TEXT, PAIR)["input_ids"]
    others = tokenizer(["one.", "☃ two three"], padding="max_length", max_length=len(first))
    assert [list(ids) for ids in batch["ids"]] == [first, *others["input_ids"]]


def test_an_empty_second_sentence_is_one_sentence_and_the_rest_stays(open_app: Open) -> None:
    app = open_app("heads", text=TEXT, tab="Pre-training objective")
    app.text_area(key="pair").set_value("").run()
    assert [each.value for each in app.error] == [
        "There is no second text\\: this head reads a sentence\\, and a second one that may follow it\\."
    ]
    assert "Masked LM" in facts(app)
    assert "Next sentence" not in facts(app)


def test_too_long_a_text_is_one_sentence_for_each_that_would_run_it(open_app: Open) -> None:
    app = open_app("heads", checkpoint="demo-gpt2", text="dog " * 300, tab="Tokenization")
    assert len(app.error) == 1
    assert "takes at most 128\\: shorten it" in app.error[0].value
    assert any("the model cannot read it" in each.value for each in app.warning)
