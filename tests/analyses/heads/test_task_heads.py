"""Task heads, the pre-training objective and tokenization against transformers' own."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import pandas as pd
import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer
from torch.nn.functional import cross_entropy
from transformers import GenerationConfig

from inspector.analyses.heads.compute import heads
from inspector.analyses.heads.result import IGNORED, KEPT, MASKED, NOT_CHOSEN, REPLACED
from inspector.analyses.pretraining.compute import pretrain
from inspector.analyses.tokenization.compute import tokenize
from inspector.errors import CheckpointError, NotInCheckpointError, RequestError
from inspector.models.checkpoint import Checkpoint
from tests import families
from tests.conftest import silent
from tests.families import MODELS, VOCAB, random_model, save_checkpoint

TEXT, PAIR = "w1 w2a w3 w30", "w4 w5b w6 w7 w8"
SIZES = {
    "Bert": MODELS["BertForMaskedLM"],
    "Roberta": MODELS["RobertaForMaskedLM"],
    "DistilBert": MODELS["DistilBertForMaskedLM"],
    "Albert": MODELS["AlbertForMaskedLM"],
    "Electra": MODELS["ElectraForMaskedLM"],
    "GPT2": MODELS["GPT2LMHeadModel"],
    "Llama": MODELS["LlamaForCausalLM"],
}
run_heads: Any = heads  # what a result holds depends on the head
run_pretrain: Any = pretrain
run_tokenize: Any = tokenize
pipeline: Any = transformers.pipeline
TAGS = {0: "O", 1: "B-PER", 2: "I-PER", 3: "B-LOC", 4: "I-LOC"}
ALL = tuple(SIZES)
ENCODERS = ALL[:5]


class Case:
    """A random checkpoint, opened by the app and built by transformers."""

    def __init__(self, checkpoint: Checkpoint, model: Any, tokenizer: Any) -> None:
        self.checkpoint, self.model, self.tokenizer = checkpoint, model, tokenizer

    def ask(self, text: str = TEXT, **options: Any) -> Any:
        return run_heads(self.checkpoint, progress=silent, text=text, device="cpu", **options)

    def output(self, *texts: str, **more: Any) -> Any:
        """Transformers' own tokenizer and forward pass."""
        inputs = self.tokenizer(*texts, return_tensors="pt")
        if getattr(self.model.config, "type_vocab_size", 0) < 2:
            inputs.pop("token_type_ids", None)
        with torch.inference_mode():
            return self.model(**inputs, **more)


@pytest.fixture
def make(tmp_path, open_path, monkeypatch):
    """Build, save and open a small random model of a family and a task."""

    def made(family: str, task: str, **changes: Any) -> Case:
        name = f"{family}{task}"
        monkeypatch.setitem(families.WITHOUT_HEAD, name, SIZES[family])
        model = random_model(name, **changes)
        folder = save_checkpoint(model, tmp_path / name)
        tokenizer = transformers.BertTokenizer.from_pretrained(folder)
        tokenizer.model_input_names = ["input_ids", "attention_mask"]
        if getattr(model.config, "type_vocab_size", 0) > 1:
            tokenizer.model_input_names.append("token_type_ids")
        return Case(open_path(folder), model, tokenizer)

    return made


def close(found: Any, wanted: Any) -> bool:
    return torch.allclose(
        torch.as_tensor(found, dtype=torch.float32),
        torch.as_tensor(wanted, dtype=torch.float32), atol=2e-5, rtol=1e-4,
    )  # fmt: skip


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


@pytest.mark.parametrize("name", ["GPT2LMHeadModel", "LlamaForCausalLM", "GPTNeoXForCausalLM"])
def test_generation_is_transformers_own(open_model, name):
    checkpoint, model = open_model(name), random_model(name)
    found = run_heads(checkpoint, progress=silent, text=TEXT, k=5, new_tokens=8, device="cpu")
    ids = torch.tensor([checkpoint.tokens.encode(TEXT).ids])
    config = GenerationConfig(do_sample=False, max_new_tokens=8, pad_token_id=0,
                              eos_token_id=model.config.eos_token_id)  # fmt: skip
    with torch.inference_mode():
        logits = model(ids).logits[0, -1]
        whole = model.generate(ids, attention_mask=torch.ones_like(ids), generation_config=config)
    best = logits.softmax(0).topk(5)
    assert found.head == "causal_lm"
    assert found.output["logits"] == (1, ids.shape[1], VOCAB)
    assert found.result.next["token_id"].tolist() == best.indices.tolist()
    assert close(found.result.next["probability"].tolist(), best.values)
    assert found.result.steps["token_id"].tolist() == whole[0, ids.shape[1] :].tolist()
    assert set(found.result.steps["rank"]) == {0}


def test_sampling_draws_from_the_tempered_softmax(open_model):
    """Each step replayed without a cache: the same draw from the same distribution."""
    checkpoint, model = open_model("GPT2LMHeadModel"), random_model("GPT2LMHeadModel")
    options = {"text": TEXT, "new_tokens": 6, "temperature": 1.7, "seed": 11, "device": "cpu"}
    result = run_heads(checkpoint, progress=silent, **options).result
    ids = list(checkpoint.tokens.encode(TEXT).ids)
    draw = torch.Generator().manual_seed(11)
    for step in result.steps.to_dict("records"):
        with torch.inference_mode():
            logits = model(torch.tensor([ids])).logits[0, -1]
        drawn = int(torch.multinomial((logits / 1.7).softmax(0), 1, generator=draw))
        chances = logits.softmax(0)
        assert step["token_id"] == drawn
        assert close(step["probability"], chances[drawn])
        assert step["rank"] == int((chances > chances[drawn]).sum())
        assert close(step["entropy"], -(chances * chances.log()).sum())
        ids.append(drawn)
    assert len(result.steps) == 6
    again = run_heads(checkpoint, progress=silent, **options).result
    pd.testing.assert_frame_equal(again.steps, result.steps)


def test_a_continuation_stops_at_the_last_position_and_at_the_end_of_text(open_model):
    checkpoint = open_model("GPT2LMHeadModel")
    result = run_heads(checkpoint, progress=silent, text=TEXT, new_tokens=200).result
    length = len(checkpoint.tokens.encode(TEXT).ids)
    assert len(result.steps) == 64 - length
    assert result.stopped == "the model has 64 positions"
    third = result.steps["token_id"].tolist()[2]
    ending = open_model("GPT2LMHeadModel", eos_token_id=third)
    stopped = run_heads(ending, progress=silent, text=TEXT, new_tokens=50).result
    first = result.steps["token_id"].tolist().index(third)
    assert len(stopped.steps) == first + 1
    assert stopped.stopped.endswith("ends a text")


@pytest.mark.parametrize("name", ["BertForMaskedLM", "RobertaForMaskedLM", "ElectraForMaskedLM"])
def test_masked_lm_fills_every_position(open_model, name):
    checkpoint, text = open_model(name), "w1 [MASK] w3"
    found = run_heads(checkpoint, progress=silent, text=text)
    ids = torch.tensor([checkpoint.tokens.encode(text).ids])
    with torch.inference_mode():
        best = random_model(name)(ids).logits[0].softmax(1).max(1)
    assert found.head == "masked_lm"
    assert found.result.tokens["prediction_id"].tolist() == best.indices.tolist()
    assert close(found.result.tokens["probability"].tolist(), best.values)
    assert found.result.tokens["is_mask"].tolist() == [False, False, True, False, False]


@pytest.mark.parametrize("label", [0, 1])
def test_the_objective_is_the_models_own_loss(make, label):
    case = make("Bert", "ForPreTraining")
    found = run_pretrain(case.checkpoint, progress=silent, text=TEXT, pair=PAIR, share=0.6, seed=4,
                     follows=label == 0, device="cpu")  # fmt: skip
    table = found.tokens
    inputs = case.tokenizer(TEXT, PAIR, return_tensors="pt")
    assert table["before_id"].tolist() == inputs["input_ids"][0].tolist()
    inputs["input_ids"] = torch.tensor([table["after_id"].tolist()])
    labels = torch.tensor([table["label"].tolist()])
    with torch.inference_mode():
        output = case.model(**inputs, labels=labels, next_sentence_label=torch.tensor([label]))
    assert close(found.loss, output.loss)
    assert close(found.masked_lm_loss + found.next_sentence_loss, output.loss)
    own = cross_entropy(output.prediction_logits[0], labels[0], reduction="none")
    chosen = table[table["label"] != IGNORED]
    assert close(chosen["loss"].tolist(), own[labels[0] != IGNORED])
    assert close(chosen["loss"].mean(), found.masked_lm_loss)
    assert close(found.is_next, output.seq_relationship_logits[0].softmax(0)[0])
    assert table[table["label"] == IGNORED]["loss"].isna().all()


def test_without_a_second_text_the_loss_is_masked_lm_alone(make):
    case = make("Bert", "ForPreTraining")
    found = run_pretrain(case.checkpoint, progress=silent, text=TEXT, share=0.5)
    assert (found.next_sentence_label, found.next_sentence_loss, found.is_next) == (None,) * 3
    labels = torch.tensor(found.tokens["label"].tolist())
    with torch.inference_mode():
        output = case.model(torch.tensor([found.tokens["after_id"].tolist()]))
    assert close(found.loss, cross_entropy(output.prediction_logits[0], labels))


@pytest.mark.parametrize("name", ["RobertaForMaskedLM", "DistilBertForMaskedLM", "AlbertForMaskedLM"])
def test_a_masked_lm_alone_has_its_own_loss(open_model, name):
    checkpoint = open_model(name)
    found = run_pretrain(checkpoint, progress=silent, text=TEXT, share=0.7, seed=2)
    rows = found.tokens
    with torch.inference_mode():
        output = random_model(name)(
            torch.tensor([rows["after_id"].tolist()]), labels=torch.tensor([rows["label"].tolist()])
        )
    assert close(found.loss, output.loss)
    assert close(found.masked_lm_loss, output.loss)


def test_masking_is_80_10_10_seeded_and_never_touches_special_tokens(open_model):
    checkpoint = open_model("BertForMaskedLM")
    text = " ".join(f"w{place % 45}" for place in range(60))
    counts: Counter[str] = Counter()
    ids = checkpoint.tokens.encode(text).ids
    for seed in range(25):
        rows = run_pretrain(checkpoint, progress=silent, text=text, share=1.0, seed=seed).tokens
        counts.update(rows["what"])
        for row in rows.to_dict("records"):
            special = row["position"] in (0, 61)
            assert (row["what"] == NOT_CHOSEN) == special
            assert row["label"] == (IGNORED if special else ids[row["position"]])
            wanted = {MASKED: {4}, KEPT: {row["before_id"]}, NOT_CHOSEN: {row["before_id"]},
                      REPLACED: set(range(VOCAB))}  # fmt: skip
            assert row["after_id"] in wanted[row["what"]]
    total = 25 * 60
    # Four standard deviations of a binomial: a wrong share fails, a right one does not.
    for kind, share in ((MASKED, 0.8), (REPLACED, 0.1), (KEPT, 0.1)):
        spread = 4 * math.sqrt(total * share * (1 - share))
        assert abs(counts[kind] - share * total) < spread
    tables = [run_pretrain(checkpoint, progress=silent, text=text, seed=seed).tokens for seed in (1, 1, 2)]
    pd.testing.assert_frame_equal(tables[0], tables[1])
    assert tables[0]["label"].tolist() != tables[2]["label"].tolist()
    assert (tables[0]["label"] != IGNORED).sum() == round(0.15 * 60)


def test_tokenization_is_the_tokenizers_librarys(open_model):
    checkpoint = open_model("BertForMaskedLM")
    texts = ["W1  w2a nothing w3", "w4", "w5 w6b [MASK]"]
    found = run_tokenize(checkpoint, progress=silent, texts=texts, pair=PAIR)
    library = Tokenizer.from_str(checkpoint.tokens._tokenizer.to_str())
    library.enable_padding(pad_id=0, pad_token="[PAD]")
    wanted = library.encode_batch([(texts[0], PAIR), texts[1], texts[2]])
    assert found.padded_to == len(wanted[0].ids)
    assert found.batch["ids"].tolist() == [each.ids for each in wanted]
    assert found.batch["type_ids"].tolist() == [each.type_ids for each in wanted]
    assert found.batch["attention_mask"].tolist() == [each.attention_mask for each in wanted]
    rows = found.tokens.to_dict("records")
    flat = [(number, place) for number, each in enumerate(wanted) for place in range(len(each.ids))]
    for row, (number, place) in zip(rows, flat, strict=True):
        each, own = wanted[number], (texts[number], PAIR)
        assert (row["sequence"], row["position"]) == (number, place)
        assert (row["token_id"], row["piece"]) == (each.ids[place], each.tokens[place])
        assert (row["start"], row["end"]) == each.offsets[place]
        assert row["is_special"] == bool(each.special_tokens_mask[place])
        part = each.sequence_ids[place]
        if part is not None:
            assert row["text"] == own[part][row["start"] : row["end"]]
            assert row["word"] == each.word_ids[place]
    assert [row["text"] for row in rows if row["is_unknown"]] == ["nothing"]
    assert found.batch["unknown"].tolist() == [1, 0, 0]
    assert found.batch["padding"].tolist() == [0, *(found.padded_to - n for n in (3, 6))]


def test_tokens_of_a_batch_are_transformers_own(make):
    case = make("Bert", "ForMaskedLM")
    texts = [TEXT, "w4 unheard"]
    found = run_tokenize(case.checkpoint, progress=silent, texts=texts)
    wanted = case.tokenizer(texts, padding=True)
    assert found.batch["ids"].tolist() == wanted["input_ids"]
    assert found.batch["attention_mask"].tolist() == wanted["attention_mask"]


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
    assert str(error.value).endswith("so none is run. It holds a sequence-classification head.")


def test_a_head_that_only_config_json_names_is_said_and_another_shown(tmp_path, open_path):
    folder = save_checkpoint(random_model("BertForMaskedLM"), tmp_path / "named")
    path = folder / "config.json"
    path.write_text(path.read_text().replace("BertForMaskedLM", "BertForTokenClassification"))
    found = run_heads(open_path(folder), progress=silent, text="w1 [MASK]")
    assert found.head == "masked_lm"
    assert found.warnings == (
        "config.json names BertForTokenClassification, and the file lacks that head's weights: "
        "the masked-LM head is shown, which it holds.",
    )


def test_a_damaged_weight_is_said(tmp_path, open_path):
    model = random_model("BertForSequenceClassification")
    with torch.no_grad():
        model.classifier.bias[0] = float("nan")
    with pytest.raises(CheckpointError, match=r"its classifier\.bias holds NaN or infinity"):
        run_heads(open_path(save_checkpoint(model, tmp_path / "nan")), progress=silent, text=TEXT)


def test_a_damaged_head_gives_no_losses(tmp_path, open_path):
    model = random_model("BertForPreTraining")
    with torch.no_grad():
        model.cls.predictions.transform.dense.bias[0] = float("nan")
    with pytest.raises(CheckpointError, match=r"its cls\.predictions\.transform\.dense\.bias holds NaN or infinity"):
        run_pretrain(open_path(save_checkpoint(model, tmp_path / "nan")), progress=silent, text=TEXT)


LONG = " ".join(["w1"] * 600)
SURROGATE = "The text holds half of a surrogate pair, which is no character: type or paste it again."


@pytest.mark.parametrize(
    ("architecture", "options", "sentence"),
    [
        ("BertForQuestionAnswering", {}, "There is no second text: this head reads a question, "
         "and a second text that holds the answer."),
        ("BertForNextSentencePrediction", {"pair": "  "}, "There is no second text: this head "
         "reads a sentence, and a second one that may follow it."),
        ("BertForMultipleChoice", {"choices": ("w1", "")}, "This head chooses between endings: "
         "give at least two, one per line or one for each --choice."),
        ("BertForMultipleChoice", {"choices": ("w1",) * 65}, "Endings: give at most 64, not "
         "65."),
        ("BertForTokenClassification", {"text": " "}, "There is no text: type a sentence."),
        ("BertForTokenClassification", {"text": LONG}, "The text has 602 tokens and "
         "BertForTokenClassification takes 64: shorten it."),
        ("BertForQuestionAnswering", {"pair": LONG}, "The text has 608 tokens and "
         "BertForQuestionAnswering takes 64: shorten it."),
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


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"share": 0.0}, "Share must be above 0 and at most 1, not 0."),
        ({"text": ""}, "There is no text: type a sentence to be masked."),
        ({"text": "[MASK]"}, "The text has no ordinary token to mask: type a word or a sentence."),
        ({"text": "a\ud800"}, SURROGATE),
    ],
)
def test_refusals_of_the_objective(open_model, options, sentence):
    with pytest.raises(RequestError) as error:
        run_pretrain(open_model("BertForMaskedLM"), progress=silent, **({"text": TEXT} | options))
    assert str(error.value) == sentence


def test_refusals_of_tokenization(open_model):
    checkpoint = open_model("BertModel")
    with pytest.raises(RequestError, match=r"^There is no text: type one\.$"):
        run_tokenize(checkpoint, progress=silent, texts=[" "])
    with pytest.raises(RequestError, match=r"^Texts: give at most 64, not 65\.$"):
        run_tokenize(checkpoint, progress=silent, texts=["w1"] * 65)
    assert run_tokenize(checkpoint, progress=silent, texts=[LONG]).warnings == (
        "602 tokens are more than the 64 positions of BertModel: its model cannot read this text.",
    )


def test_every_class_of_the_families_is_transformers_own():
    for family in ENCODERS:
        for task in ("ForSequenceClassification", "ForMultipleChoice", "ForQuestionAnswering"):
            assert hasattr(transformers, f"{family}{task}")
