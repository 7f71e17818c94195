"""Masked predictions against transformers' own forward pass and its fill-mask pipeline."""

from __future__ import annotations

import json
import math

import pandas as pd
import pytest
import torch
import transformers
from transformers import BertTokenizer, pipeline

from inspector.analyses.masked_lm.compute import predict, predict_many
from inspector.analyses.masked_lm.compute_joint import fill_together
from inspector.errors import CheckpointError, InspectorError, NotInCheckpointError, RequestError, WorkerError
from inspector.models.loading import load
from inspector.models.masking.reading import answer_all
from inspector.models.masking.text import read_text
from tests.conftest import silent
from tests.families import MODELS, random_model, save_checkpoint, words
from tests.sentences import SURROGATE

TEXT = "w1 [MASK] w3 [MASK] w30"
MASKED = sorted(name for name in MODELS if name.endswith(("MaskedLM", "PreTraining")))
NO_MASK = "The text has no [MASK]: write it where the model should predict a word."


def log_probabilities(model, ids, type_ids=None):
    """The model's own, of one text read alone: (positions, vocab)."""
    more = {} if type_ids is None else {"token_type_ids": torch.tensor([type_ids])}
    with torch.inference_mode():
        return model(torch.tensor([ids]), **more).logits[0].log_softmax(1)


def filled(ids, place, index):
    return [*ids[:place], index, *ids[place + 1 :]]


@pytest.mark.parametrize("architecture", MASKED)
def test_predictions_are_the_models_own(open_model, architecture):
    checkpoint = open_model(architecture)
    result = predict(checkpoint, progress=silent, text=TEXT, k=4, device="cpu")
    ids = torch.tensor([checkpoint.tokens.encode(TEXT).ids])
    with torch.inference_mode():
        output = random_model(architecture)(ids)
    logits = output[0] if architecture.endswith("MaskedLM") else output.prediction_logits
    positions = (ids[0] == checkpoint.tokens.role("mask")[1]).nonzero().flatten().tolist()
    assert [mask.position for mask in result.masks] == positions
    for mask in result.masks:
        scores = logits[0, mask.position]
        best = scores.topk(4)
        assert mask.predictions["token_id"].tolist() == best.indices.tolist()
        assert mask.predictions["logit"].tolist() == pytest.approx(best.values.tolist(), abs=1e-4)
        assert mask.predictions["probability"].tolist() == pytest.approx(
            scores.softmax(0)[best.indices].tolist(), abs=1e-5
        )
        assert mask.words is None


@pytest.mark.parametrize(
    "architecture", [name for name in MASKED if name.startswith(("Bert", "Rob", "Dist", "Alb", "Ele", "Deb"))]
)
@pytest.mark.parametrize("text", ["w1 w2 [MASK] w30.", TEXT])
def test_fill_mask_pipeline_gives_the_same(tmp_path, open_path, architecture, text):
    model = random_model(architecture.replace("PreTraining", "MaskedLM"))
    folder = save_checkpoint(model, tmp_path / "model")
    tokenizer = BertTokenizer.from_pretrained(folder)
    tokenizer.model_input_names = ["input_ids", "attention_mask"]  # DistilBERT takes no segments
    fill = pipeline("fill-mask", model=model, tokenizer=tokenizer, top_k=7)
    truth = fill(text)
    truth = truth if isinstance(truth[0], list) else [truth]  # of one mask it is no list of lists
    result = predict(open_path(folder), progress=silent, text=text, k=7)
    for mask, best in zip(result.masks, truth, strict=True):
        assert mask.predictions["token_id"].tolist() == [row["token"] for row in best]
        assert mask.predictions["probability"].tolist() == pytest.approx([row["score"] for row in best], abs=1e-5)


def test_many_requests_are_each_answered_as_alone(open_model):
    """Refused ones included; none is disturbed by another."""
    checkpoint = open_model("BertForMaskedLM")
    requests = [
        {"text": TEXT, "k": 5},
        {"text": "w1 w2"},
        {"text": "[MASK]", "k": 60},
        {"text": "w1 [MASK] w3", "targets": ("w5", "w7a", "w9")},
        {"text": "w1 w2 [MASK]", "device": "mps" if not torch.backends.mps.is_available() else "?"},
        {"text": "w1 w2 w3 [MASK]" * 5, "masks": (1,), "order": "sure"},
        {"text": TEXT, "k": 5, "dtype": "bfloat16"},
        {"text": TEXT, "k": 5},
        {"text": "w " * 100 + "[MASK]"},
    ]
    together = predict_many(checkpoint, requests, progress=silent)
    assert [type(answer).__name__ for answer in together] == [
        "Prediction", "RequestError", "Prediction", "Prediction", "RequestError", "Prediction",
        "Prediction", "Prediction", "RequestError",
    ]  # fmt: skip
    for request, answer in zip(requests, together, strict=True):
        if isinstance(answer, InspectorError):
            with pytest.raises(type(answer)) as error:
                predict(checkpoint, progress=silent, **request)
            assert str(error.value) == str(answer)
            continue
        alone = predict(checkpoint, progress=silent, **request)
        half = request.get("dtype") == "bfloat16"
        assert (answer.batch, alone.batch) == (1 if half else 5, 1)
        assert (answer.tokens, answer.text) == (alone.tokens, alone.text)
        assert [each.tokens for each in answer.joint] == [each.tokens for each in alone.joint]
        for name in ("log_probability", "independent", "pseudo_log_likelihood"):
            assert [getattr(each, name) for each in answer.joint] == pytest.approx(
                [getattr(each, name) for each in alone.joint], abs=1e-4
            )
        for one, other in zip(answer.masks, alone.masks, strict=True):
            assert one.position == other.position
            pd.testing.assert_frame_equal(one.predictions, other.predictions, atol=1e-5)
            assert (one.words is None) is (other.words is None)
            if one.words is not None and other.words is not None:
                pd.testing.assert_frame_equal(one.words, other.words, rtol=1e-4)


def test_one_that_exhausts_the_memory_spoils_no_other(open_model, monkeypatch):
    read = transformers.BertModel.forward

    def small(self, *args, **inputs):
        if inputs["input_ids"].shape[1] > 40:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB")
        return read(self, *args, **inputs)

    checkpoint = open_model("BertForMaskedLM")
    monkeypatch.setattr(transformers.BertModel, "forward", small)
    requests = [{"text": TEXT}, {"text": "w1 " * 50 + "[MASK]"}, {"text": "[MASK]"}]
    first, second, third = predict_many(checkpoint, requests, progress=silent)
    assert isinstance(second, WorkerError)
    assert "too little memory left for this input" in str(second)
    assert not isinstance(first, InspectorError)
    assert not isinstance(third, InspectorError)
    assert [len(first.masks), len(third.masks)] == [2, 1]


@pytest.mark.parametrize("order", ["left", "sure"])
def test_joint_answers_are_the_best_of_all(open_model, order):
    """A beam as wide as the vocabulary misses nothing: against every pair of tokens."""
    checkpoint = open_model("BertForMaskedLM")
    question = fill_together(read_text(checkpoint, TEXT, ()), checkpoint.require_tokens(), order, beam=60)
    (found,) = answer_all(checkpoint, load(checkpoint, "masked_lm"), [question], progress=silent)
    model, ids = random_model("BertForMaskedLM"), list(checkpoint.tokens.encode(TEXT).ids)
    places = [place for place, index in enumerate(ids) if index == 4]
    alone = log_probabilities(model, ids)
    first = places[0]
    if order == "sure":
        first = max(places, key=lambda place: float(alone[place].max()))
    second = next(place for place in places if place != first)
    totals = {}
    for a in range(60):
        after = log_probabilities(model, filled(ids, first, a))[second]
        for b in range(60):
            pair = (a, b) if first < second else (b, a)
            totals[pair] = float(alone[first, a] + after[b])
    best = sorted(totals, key=lambda pair: -totals[pair])[:60]
    visible = checkpoint.tokens.visible
    assert [each.tokens for each in found] == [tuple(map(visible, pair)) for pair in best]
    assert [each.log_probability for each in found] == pytest.approx([totals[pair] for pair in best], abs=1e-4)
    for each, pair in zip(found[:5], best, strict=False):
        assert each.independent == pytest.approx(
            sum(float(alone[place, token]) for place, token in zip(places, pair, strict=True)), abs=1e-4
        )
        whole = filled(filled(ids, places[0], pair[0]), places[1], pair[1])
        assert each.pseudo_log_likelihood == pytest.approx(
            sum(
                float(log_probabilities(model, filled(whole, place, 4))[place, token])
                for place, token in zip(places, pair, strict=True)
            ),
            abs=1e-4,
        )


def beam_by_hand(model, ids, order, beam=5):
    """Fill masks one text at a time."""
    states = [(ids, 0.0)]
    while 4 in states[0][0]:
        grown = []
        for now, total in states:
            scores = log_probabilities(model, now)
            places = [place for place, index in enumerate(now) if index == 4]
            place = places[0]
            if order == "sure":
                place = max(places, key=lambda each: float(scores[each].max()))
            best = scores[place].topk(beam)
            grown += [
                (filled(now, place, index), total + value)
                for value, index in zip(best.values.tolist(), best.indices.tolist(), strict=True)
            ]
        states = sorted(grown, key=lambda state: -state[1])[:beam]
    return states


@pytest.mark.parametrize("order", ["left", "sure"])
@pytest.mark.parametrize("seed", [0, 3])
def test_joint_of_four_masks_is_a_beam_of_five(open_model, order, seed):
    checkpoint = open_model("BertForMaskedLM", seed=seed)
    text = "[MASK] w2 [MASK] w9 [MASK] [MASK]"
    found = predict(checkpoint, progress=silent, text=text, order=order).joint
    model = random_model("BertForMaskedLM", seed=seed)
    truth = beam_by_hand(model, list(checkpoint.tokens.encode(text).ids), order)
    visible = checkpoint.tokens.visible
    assert [each.tokens for each in found] == [
        tuple(visible(state[place]) for place in (1, 3, 5, 6)) for state, _ in truth
    ]
    assert [each.log_probability for each in found] == pytest.approx([total for _, total in truth], abs=1e-4)


def test_orders_differ(open_model):
    """Else the tests above could not tell them apart."""
    text = "[MASK] w2 [MASK] w9 [MASK] [MASK]"
    checkpoint = open_model("BertForMaskedLM")
    left, sure = (predict(checkpoint, progress=silent, text=text, order=order).joint for order in ("left", "sure"))
    assert left[0].log_probability != pytest.approx(sure[0].log_probability, abs=1e-3)


def test_one_mask_has_one_likelihood(open_model):
    result = predict(open_model("BertForMaskedLM"), progress=silent, text="w1 [MASK]")
    for each, chance in zip(result.joint, result.masks[0].predictions["probability"], strict=False):
        assert each.log_probability == pytest.approx(math.log(chance), abs=1e-5)
        assert each.independent == each.pseudo_log_likelihood == each.log_probability


def test_thirteen_masks_have_no_joint_answer_and_it_is_said(open_model):
    result = predict(open_model("BertForMaskedLM"), progress=silent, text="[MASK] " * 13)
    assert result.joint == ()
    assert result.warnings == ("Joint answers are available for up to 12 masks.",)


def test_masks_by_position_are_masks_in_the_text(open_model):
    checkpoint = open_model("BertForMaskedLM")
    clicked = predict(checkpoint, progress=silent, text="w1 w2 w3 [MASK] w30", masks=(2, 4), k=5)
    typed = predict(checkpoint, progress=silent, text=TEXT, k=5)
    assert clicked.text == "w1 [MASK] w3 [MASK] w30"
    assert clicked.token_ids == typed.token_ids
    assert clicked.tokens == ("[CLS]", "w1", "[MASK]", "w3", "[MASK]", "w30", "[SEP]")
    assert clicked.special == (True, False, True, False, True, False, True)
    for one, other in zip(clicked.masks, typed.masks, strict=True):
        assert one.predictions.equals(other.predictions)


@pytest.mark.parametrize(
    ("text", "masks", "read"),
    [
        ("w1 w2a w3", (3,), "w1 w2[MASK] w3"),
        ("w1,  W2!", (3, 4), "w1,  [MASK][MASK]"),
        ("déjà w2", (1,), "[MASK] w2"),
        ("w1", (1,), "[MASK]"),
        ("", (0,), None),
    ],
)
def test_text_is_what_was_read(open_model, text, masks, read):
    checkpoint = open_model("BertForMaskedLM")
    if read is None:
        with pytest.raises(RequestError):
            predict(checkpoint, progress=silent, text=text, masks=masks)
        return
    result = predict(checkpoint, progress=silent, text=text, masks=masks)
    assert result.text == read
    assert checkpoint.tokens.encode(result.text).ids == result.token_ids
    assert [mask.position for mask in result.masks] == list(masks)


def test_text_that_cannot_be_written_is_shown_by_its_tokens(open_path, tmp_path):
    """With a mask in the middle of an unknown word, reading it again gives other tokens."""
    folder = byte_level_roberta(tmp_path / "roberta")
    checkpoint = open_path(folder)
    ids = checkpoint.tokens.encode("an é").ids
    result = predict(checkpoint, progress=silent, text="an é", masks=(len(ids) - 2,))
    assert result.token_ids[-2] == checkpoint.tokens.role("mask")[1]
    assert "<mask>" in result.text
    assert result.text.startswith("<s>")


def by_hand(model, ids, place, pieces):
    """log p of a word: its pieces from left to right, the masks after them open."""
    total = 0.0
    for known, piece in enumerate(pieces):
        masks = [4] * (len(pieces) - known)
        row = [*ids[:place], *pieces[:known], *masks, *ids[place + 1 :]]
        total += float(log_probabilities(model, row, [0] * len(row))[place + known, piece])
    return total


def test_words_are_chains_of_their_pieces(open_model):
    checkpoint = open_model("BertForMaskedLM")
    targets = ("w5", "w7ab", "w1 w2", "w9a", "w5")
    result = predict(checkpoint, progress=silent, text=TEXT, targets=targets)
    model = random_model("BertForMaskedLM")
    ids = list(checkpoint.tokens.encode(TEXT).ids)
    for mask in result.masks:
        assert mask.predictions["token"].tolist() == ["w5"]
        assert mask.words is not None
        assert sorted(mask.words["word"]) == ["w1 w2", "w5", "w7ab", "w9a"]
        pieces = dict(zip(mask.words["word"], mask.words["tokens"], strict=True))
        assert pieces == {"w1 w2": "w1 w2", "w5": "w5", "w7ab": "w7 ##a ##b", "w9a": "w9 ##a"}
        for row in mask.words.to_dict("records"):
            chain = checkpoint.tokens.pieces(row["word"])
            assert row["pieces"] == len(chain)
            assert row["log_probability"] == pytest.approx(by_hand(model, ids, mask.position, chain), abs=1e-4)
            assert row["probability"] == pytest.approx(math.exp(row["log_probability"]))
        assert mask.words["log_probability"].is_monotonic_decreasing


def test_only_long_targets_leave_the_ranking_open(open_model):
    checkpoint = open_model("BertForMaskedLM")
    asked = predict(checkpoint, progress=silent, text=TEXT, targets=("w9a",), k=3)
    usual = predict(checkpoint, progress=silent, text=TEXT, k=3)
    for one, other in zip(asked.masks, usual.masks, strict=True):
        pd.testing.assert_frame_equal(one.predictions, other.predictions, atol=1e-5)
        assert one.words is not None
        assert one.words["pieces"].tolist() == [2]


def byte_level_roberta(folder):
    """A RoBERTa whose tokenizer is a byte-level BPE, as the real ones are."""
    from tokenizers import ByteLevelBPETokenizer

    trained = ByteLevelBPETokenizer()
    sentences = ["the cat sat on the mat", "a cat is an animal"] * 20
    trained.train_from_iterator(
        sentences, 290, special_tokens=["<s>", "<pad>", "</s>", "<unk>", "<mask>"],
        show_progress=False,
    )  # fmt: skip
    save_checkpoint(random_model("RobertaForMaskedLM", vocab_size=290), folder, tokenizer=False)
    trained.save_model(str(folder))
    return folder


@pytest.mark.parametrize(("text", "spaced"), [("the <mask> sat", True), ("<mask> cat", False), ("a c<mask>", False)])
def test_words_begin_with_a_space_where_the_mask_stands_after_one(tmp_path, open_path, text, spaced):
    checkpoint = open_path(byte_level_roberta(tmp_path / "roberta"))
    words = predict(checkpoint, progress=silent, text=text, targets=("xylem",)).masks[0].words
    assert words is not None
    assert words["word"].tolist() == ["xylem"]
    pieces = str(words["tokens"].iloc[0])
    assert pieces.startswith("␣") is spaced
    assert pieces.replace("␣", "").replace(" ", "") == "xylem"


@pytest.mark.parametrize("row", ["id 37", "id:37"])
def test_a_target_by_its_row_is_that_row(open_model, row):
    asked = predict(open_model("BertForMaskedLM"), progress=silent, text=TEXT, targets=(row,)).masks[0]
    assert asked.predictions["token_id"].tolist() == [37]


def test_targets_keep_the_probability_of_the_whole_vocabulary(open_model):
    checkpoint = open_model("BertForMaskedLM")
    everything = predict(checkpoint, progress=silent, text=TEXT, k=60).masks[0].predictions
    asked = predict(checkpoint, progress=silent, text=TEXT, targets=("w5", "w7")).masks[0]
    assert sorted(asked.predictions["token"]) == ["w5", "w7"]
    known = everything.set_index("token")["probability"]
    for row in asked.predictions.to_dict("records"):
        assert row["probability"] == pytest.approx(known[row["token"]], abs=1e-6)


def test_how_it_ran_is_said(open_model, monkeypatch):
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"avx2": True, "amx_bf16": False})
    from inspector.models.placing.device import has_bfloat16

    has_bfloat16.cache_clear()
    checkpoint = open_model("BertForMaskedLM")
    result = predict(checkpoint, progress=silent, text=TEXT, dtype="bfloat16")
    threads = torch.get_num_threads()
    plural = "s" if threads > 1 else ""
    assert result.note == (f"bfloat16 on {threads} thread{plural}; this processor has no bfloat16 instructions")
    assert result.threads == threads
    assert (result.device, result.dtype, result.batch) == ("cpu", "bfloat16", 1)
    model = random_model("BertForMaskedLM").bfloat16()
    buffers = sum(buffer.nbytes for buffer in model.buffers())
    assert result.memory_nbytes == 2 * model.num_parameters() + buffers
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"avx2": True, "amx_bf16": True})
    has_bfloat16.cache_clear()
    note = predict(checkpoint, progress=silent, text=TEXT).note
    assert note.endswith("; this processor has bfloat16 instructions")
    has_bfloat16.cache_clear()


def test_damaged_weights_are_said(tmp_path, open_path):
    model = random_model("BertForMaskedLM")
    with torch.no_grad():
        model.bert.encoder.layer[1].output.dense.weight[3] = torch.nan
    checkpoint = open_path(save_checkpoint(model, tmp_path / "damaged"))
    said = "damaged returns NaN or infinity, so .* its bert.encoder.layer.1.output.dense.weight contains NaN"
    with pytest.raises(CheckpointError, match=said):
        predict(checkpoint, progress=silent, text=TEXT, targets=("w5", "w7a"))
    both = predict_many(checkpoint, [{"text": TEXT}, {"text": "no mask"}], progress=silent)
    assert [type(each) for each in both] == [CheckpointError, RequestError]


@pytest.mark.parametrize("architecture", ["BertModel", "BertForSequenceClassification"])
def test_no_head_is_said_and_nothing_predicted(open_model, architecture):
    with pytest.raises(NotInCheckpointError, match=rf"^{architecture} has no MLM head"):
        predict(open_model(architecture), progress=silent, text=TEXT)


def test_causal_model_is_told_apart(open_model):
    with pytest.raises(NotInCheckpointError, match="causal language model"):
        predict(open_model("GPT2LMHeadModel"), progress=silent, text=TEXT)


def test_tokenizer_without_a_mask_is_told(tmp_path, open_path):
    folder = save_checkpoint(random_model("BertForMaskedLM"), tmp_path / "bare")
    (folder / "vocab.txt").write_text("\n".join(words()).replace("[MASK]", "w99"), "utf-8")
    # BERT's own class would make one up
    (folder / "tokenizer_config.json").write_text('{"tokenizer_class": "PreTrainedTokenizerFast"}', "utf-8")
    with pytest.raises(NotInCheckpointError) as error:
        predict(open_path(folder), progress=silent, text=TEXT, masks=(1,))
    assert str(error.value) == "The tokenizer of bare has no mask token: nothing can be masked."


def test_mask_token_past_the_matrix_is_refused(tmp_path, open_path):
    """It was added to the tokenizer, and the model was never resized."""
    folder = save_checkpoint(random_model("BertForMaskedLM"), tmp_path / "added")
    vocabulary = [word.replace("[MASK]", "w99") for word in words()]
    (folder / "vocab.txt").write_text("\n".join([*vocabulary, "[MASK]"]), "utf-8")
    with pytest.raises(CheckpointError) as error:
        predict(open_path(folder), progress=silent, text="w1 w2", masks=(1,))
    assert str(error.value) == (
        "The tokenizer of added gives id 60, but the embedding matrix has 60 rows: compare the "
        "tokenizer's files with their source."
    )


def test_half_a_head_is_no_head(tmp_path, open_path):
    """One missing tensor of the transform is enough: it would be random."""
    from safetensors.torch import load_file, save_file

    folder = save_checkpoint(random_model("BertForMaskedLM"), tmp_path / "half")
    tensors = load_file(folder / "model.safetensors")
    del tensors["cls.predictions.transform.dense.weight"]
    save_file(tensors, folder / "model.safetensors")
    with pytest.raises(NotInCheckpointError, match="no MLM head"):
        predict(open_path(folder), progress=silent, text=TEXT)


def test_a_head_of_another_model_type_is_not_called_missing(tmp_path, open_path):
    folder = save_checkpoint(random_model("BertForMaskedLM"), tmp_path / "other")
    config = json.loads((folder / "config.json").read_text())
    config |= {"model_type": "distilbert", "architectures": ["DistilBertForMaskedLM"]}
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(NotInCheckpointError, match=r"the tensor names of bert.* If .*, correct model_type in config"):
        predict(open_path(folder), progress=silent, text=TEXT)


def test_missing_layer_is_refused(tmp_path, open_path):
    from safetensors.torch import load_file, save_file

    folder = save_checkpoint(random_model("BertForMaskedLM"), tmp_path / "gap")
    tensors = load_file(folder / "model.safetensors")
    del tensors["bert.encoder.layer.1.output.dense.weight"]
    save_file(tensors, folder / "model.safetensors")
    with pytest.raises(NotInCheckpointError, match=r"bert\.encoder\.layer\.1\.output\.dense"):
        predict(open_path(folder), progress=silent, text=TEXT)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"text": "w1"}, NO_MASK),
        ({"text": "", "k": 3}, NO_MASK),
        ({"text": TEXT, "k": 5000}, "Tokens per mask must be between 1 and 1,000, not 5,000."),
        ({"text": TEXT, "order": "right"}, "Filling order must be left or sure, not 'right'."),
        ({"text": "\ud800 [MASK]"}, SURROGATE),
        ({"text": TEXT, "targets": ("w1", "\udfff")}, SURROGATE),
        ({"text": TEXT, "targets": ("zzz",)}, "'zzz' is not a single token of BertForMaskedLM: type "
         'a word that is in its vocabulary, or a row as "id 37".'),
        ({"text": TEXT, "targets": ("w1 [MASK]",)}, "'w1 [MASK]' is not a single token of "
         'BertForMaskedLM: type a word that is in its vocabulary, or a row as "id 37".'),
        ({"text": TEXT, "targets": ("w1" + "a" * 12,)},
         f"'w1{'a' * 12}' has 13 tokens, but a target may have at most 12: use a shorter one."),
        ({"text": TEXT + " w1" * 56, "targets": ("w1aaa",)},
         "With the 4 masks that 'w1aaa' needs, the text has 66 tokens, but BertForMaskedLM "
         "takes at most 64: shorten it."),
        ({"text": "[MASK] " * 40, "targets": tuple(f"w{n}aaa" for n in range(20))},
         "Scoring the targets of several tokens at 40 masks would take 3,200 passes over the text, more than the "
         "limit of 1,000: use fewer targets."),
        ({"text": "w1 " * 600 + "[MASK]"},
         "The text has 603 tokens, but BertForMaskedLM takes at most 64: shorten it."),
        ({"text": TEXT, "masks": (0,)}, "Token 0 is [CLS], a special token, "
         "which is never masked in training: choose a token of the text itself."),
        ({"text": "w1 [PAD]", "masks": (2,)}, "Token 2 is [PAD], a special "
         "token, which is never masked in training: choose a token of the text itself."),
        ({"text": TEXT, "masks": (1, 7)}, "There is no token 7 to mask: the text has 7 tokens, counted from 0."),
        ({"text": TEXT, "masks": (-1,)}, "There is no token -1 to mask: the text has 7 tokens, counted from 0."),
    ],
)  # fmt: skip
def test_refusals(open_model, options, sentence):
    with pytest.raises(RequestError) as error:
        predict(open_model("BertForMaskedLM"), progress=silent, **options)
    assert str(error.value) == sentence
