"""Task heads, the pre-training objective and tokenization against transformers' own."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
import transformers

from tests.analyses.heads.heads_cases import ALL, ENCODERS, PAIR, TAGS, TEXT, Case, close

pipeline: Any = transformers.pipeline


@pytest.mark.parametrize("task", ["ForNextSentencePrediction", "ForPreTraining"])
def test_next_sentence_is_the_models_own(make, task):
    case = make("Bert", task)
    found = case.ask(pair=PAIR)
    output = case.output(TEXT, PAIR)
    logits = output.logits if task == "ForNextSentencePrediction" else output[1]
    assert found.head == "next_sentence"
    assert found.output == {"logits": (1, 2)}
    assert close(found.result.logits, logits[0])
    assert close((found.result.is_next, found.result.not_next), logits[0].softmax(0))


@pytest.mark.parametrize("family", ALL)
@pytest.mark.parametrize(
    ("changes", "kind"),
    [
        ({"num_labels": 3}, "softmax"),
        ({"num_labels": 3, "problem_type": "multi_label_classification"}, "sigmoid"),
        ({"num_labels": 1, "problem_type": "regression"}, "regression"),
    ],
)
def test_text_labels_are_the_pipelines(make, family, changes, kind):
    case = make(family, "ForSequenceClassification", **changes)
    found = case.ask()
    truth = pipeline("text-classification", model=case.model, tokenizer=case.tokenizer, top_k=None)
    wanted = {row["label"]: row["score"] for row in truth([TEXT])[0]}
    labels = found.result.labels
    assert found.result.kind == kind
    assert found.output["logits"] == (1, changes["num_labels"])
    assert labels["label"].tolist() == list(wanted)  # highest first, as the pipeline sorts
    assert close(labels["score"].tolist(), list(wanted.values()))


def test_a_pair_is_classified_as_one_input(make):
    case = make("Bert", "ForSequenceClassification", num_labels=4)
    labels = case.ask(pair=PAIR).result.labels.sort_values("label_id")
    assert close(labels["logit"].tolist(), case.output(TEXT, PAIR).logits[0])


def test_one_label_without_a_problem_type_is_the_number_itself(make):
    case = make("Bert", "ForSequenceClassification", num_labels=1)
    result = case.ask().result
    assert result.kind == "regression"
    logit = case.output(TEXT).logits.item()
    assert close(result.labels["score"].tolist(), [logit])
    # The loss that transformers trains such a head with is the squared error of that number.
    loss = case.output(TEXT, labels=torch.tensor([0.5])).loss.item()
    assert loss == pytest.approx((result.labels["score"].item() - 0.5) ** 2, rel=1e-4)


@pytest.mark.parametrize("family", ALL)
@pytest.mark.parametrize("seed", [0, 1])
def test_token_spans_are_the_pipelines(make, family, seed):
    numbers = {name: index for index, name in TAGS.items()}
    case = make(family, "ForTokenClassification", id2label=TAGS, label2id=numbers, seed=seed)
    text = "W1 w2a w3 w4 w5 w6b w7, w8 w9 w10 w11 w12"
    found = case.ask(text)
    simple, single = (
        pipeline("token-classification", model=case.model, tokenizer=case.tokenizer,
                 aggregation_strategy=strategy, ignore_labels=ignored)(text)
        for strategy, ignored in (("simple", ["O"]), ("none", []))
    )  # fmt: skip
    spans = found.result.spans.to_dict("records")
    assert [(s["label"], s["start"], s["end"], s["text"]) for s in spans] == [
        (s["entity_group"], s["start"], s["end"], text[s["start"] : s["end"]]) for s in simple
    ]
    assert close([s["score"] for s in spans], [float(s["score"]) for s in simple])
    tokens = found.result.tokens.to_dict("records")
    assert [(t["label"], t["position"]) for t in tokens] == [(t["entity"], t["index"]) for t in single]
    assert close([t["score"] for t in tokens], [float(t["score"]) for t in single])


def brute_force(case: Case, longest: int) -> list[tuple[float, int, int]]:
    """Every legal span with the product of its two probabilities, by plain loops."""
    output = case.output(TEXT, PAIR)
    encoding = case.tokenizer(TEXT, PAIR)
    places = [at for at, part in enumerate(encoding.sequence_ids()) if part == 1]
    allowed = [0, *places]
    start, end = (logits[0].double() for logits in (output.start_logits, output.end_logits))
    totals = [sum(math.exp(scores[at]) for at in allowed) for scores in (start, end)]
    return sorted(
        (
            (math.exp(start[i]) / totals[0] * math.exp(end[j]) / totals[1], i, j)
            for i in places
            for j in places
            if i <= j < i + longest
        ),
        reverse=True,
    )


@pytest.mark.parametrize("family", ALL)
@pytest.mark.parametrize("longest", [1, 3, 15])
def test_the_best_span_is_the_best_of_all_legal_ones(make, family, longest):
    case = make(family, "ForQuestionAnswering")
    result = case.ask(pair=PAIR, longest_answer=longest).result
    wanted = brute_force(case, longest)
    assert close(result.score, wanted[0][0])
    spans = list(zip(result.spans["start"], result.spans["end"], strict=True))
    assert spans == [(i, j) for _, i, j in wanted[: len(spans)]]
    assert len(spans) == min(10, len(wanted))
    assert close(result.spans["score"].tolist(), [score for score, _, _ in wanted[: len(spans)]])
    offsets = case.tokenizer(TEXT, PAIR, return_offsets_mapping=True)["offset_mapping"]
    first, last = offsets[result.start][0], offsets[result.end][1]
    assert result.answer == PAIR[first:last]
    assert (result.start_character, result.end_character) == (first, last)
    # The heat map holds those products, and NaN where a span is not legal.
    drawn = {
        (result.shown[i], result.shown[j]): result.grid[i, j]
        for i in range(len(result.shown))
        for j in range(len(result.shown))
        if not math.isnan(result.grid[i, j])
    }
    assert set(drawn) == {(i, j) for _, i, j in wanted}
    assert close([drawn[i, j] for _, i, j in wanted], [score for score, _, _ in wanted])


def test_no_answer_is_the_first_positions_product(make):
    case = make("Bert", "ForQuestionAnswering")
    result = case.ask(pair=PAIR).result
    output = case.output(TEXT, PAIR)
    encoding = case.tokenizer(TEXT, PAIR)
    allowed = [0, *(at for at, part in enumerate(encoding.sequence_ids()) if part == 1)]
    start = output.start_logits[0, allowed].softmax(0)[0]
    end = output.end_logits[0, allowed].softmax(0)[0]
    assert close(result.no_answer, start * end)


def test_the_loss_of_a_labeled_answer_and_positions_past_the_input(make):
    case = make("Bert", "ForQuestionAnswering")
    truth = case.output(TEXT, PAIR, start_positions=torch.tensor([8]), end_positions=torch.tensor([9]))
    found = case.ask(pair=PAIR, right_answer=(8, 9)).result.loss
    assert close(found.loss, truth.loss)
    assert close((found.start_loss + found.end_loss) / 2, truth.loss)
    count = len(case.tokenizer(TEXT, PAIR)["input_ids"])
    far = case.ask(pair=PAIR, right_answer=(8, 900)).result.loss
    assert (far.end, far.end_clamped, far.end_loss, far.loss) == (900, count, None, None)
    assert close(far.start_loss, found.start_loss)


@pytest.mark.parametrize("family", ENCODERS)
def test_choices_are_one_batch_with_the_models_own_scores(make, family):
    case = make(family, "ForMultipleChoice")
    endings = ["w4", PAIR, "w5b w6"]
    found = case.ask(choices=endings)
    inputs = case.tokenizer([TEXT] * 3, endings, padding=True, return_tensors="pt")
    with torch.inference_mode():
        logits = case.model(**{name: value[None] for name, value in inputs.items()}).logits[0]
    assert found.output == {"logits": (1, 3)}
    assert close(found.result.choices["logit"].tolist(), logits)
    assert close(found.result.choices["probability"].tolist(), logits.softmax(0))
    assert found.result.best == int(logits.argmax())
    assert [len(tokens) for tokens in found.tokens] == [inputs["input_ids"].shape[1]] * 3


def test_every_class_of_the_families_is_transformers_own():
    for family in ENCODERS:
        for task in ("ForSequenceClassification", "ForMultipleChoice", "ForQuestionAnswering"):
            assert hasattr(transformers, f"{family}{task}")
