"""Perplexity of causal models against transformers' own loss, and each token against its own logits."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import AutoModelForCausalLM, AutoTokenizer, XLNetConfig, XLNetLMHeadModel

from inspector.analyses.plausibility import compute_causal
from inspector.analyses.plausibility.compute import plausibility
from inspector.analyses.plausibility.compute_causal import judge_causal
from inspector.analyses.plausibility.request import PlausibilityRequest
from inspector.analyses.plausibility.result import Plausibility
from inspector.analyses.plausibility.words import judged
from inspector.demo import DEMOS
from inspector.errors import CheckpointError, NotInCheckpointError, RequestError
from inspector.models.loading import load
from tests.conftest import silent
from tests.families import ENCODER_DECODER, MODELS, RENAMED, UNLISTED, VOCAB, random_model, save_checkpoint

# A tokenizer of words is no Qwen2's: AutoTokenizer gives the class of the model's type byte-level pieces.
OWN_STEPS = "Qwen2ForCausalLM"
CAUSAL = [
    *(name for name in MODELS if "MaskedLM" not in name and "PreTraining" not in name),
    *(name for name in UNLISTED if name.endswith("CausalLM")),
    *RENAMED,
]
TEXT = "w1 w3 w7 w9 w7 w20"
# What the tokenizer puts around a text.
CHANGES: dict[str, dict[str, Any]] = {"DeepseekV3ForCausalLM": {"head_dim": 8}}  # as large as what turns
HABITS = {"none": "$A", "bos": "<s> $A", "both": "<s> $A </s>"}


def save_tokenizer(folder: Path, habit: str) -> None:
    """A tokenizer of whole words with the model's vocabulary."""
    words = ["<pad>", "<unk>", "<s>", "</s>", *(f"w{number}" for number in range(VOCAB - 4))]
    tokenizer = Tokenizer(models.WordLevel({word: index for index, word in enumerate(words)}, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    _save(folder, tokenizer, habit)


def save_pieces(folder: Path, habit: str) -> None:
    """A byte-level tokenizer whose pieces are the letter and the digits of the text."""
    pieces = ["<pad>", "<unk>", "<s>", "</s>", "w", "Ġ", "Ġw", *"0123456789"]
    vocabulary = {piece: index for index, piece in enumerate(pieces)}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[("Ġ", "w")], unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    _save(folder, tokenizer, habit)


def _save(folder: Path, tokenizer: Tokenizer, habit: str) -> None:
    tokenizer.add_special_tokens(["<pad>", "<unk>", "<s>", "</s>"])
    tokenizer.post_processor = processors.TemplateProcessing(
        single=HABITS[habit], special_tokens=[("<s>", 2), ("</s>", 3)]
    )
    tokenizer.save(str(folder / "tokenizer.json"))
    settings = {"tokenizer_class": "PreTrainedTokenizerFast", "unk_token": "<unk>"}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings), encoding="utf-8")


@pytest.fixture
def open_causal(tmp_path: Path, open_path: Callable[[Path], Any]) -> Callable[..., tuple[Any, Path]]:
    def opened(architecture: str, habit: str = "none", **changes: Any) -> tuple[Any, Path]:
        folder = save_checkpoint(random_model(architecture, **changes), tmp_path / architecture, tokenizer=False)
        (save_pieces if architecture == OWN_STEPS else save_tokenizer)(folder, habit)
        return open_path(folder), folder

    return opened


def by_transformers(folder: Path, text: str) -> tuple[list[int], float, torch.Tensor]:
    """Ids, loss, and log probabilities (positions, vocab) that transformers itself gives."""
    ids = AutoTokenizer.from_pretrained(folder)(text, return_tensors="pt").input_ids
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    with torch.inference_mode():
        found = model(input_ids=ids, labels=ids)
    return ids[0].tolist(), found.loss.item(), found.logits[0].double().log_softmax(dim=1)


def check_rows(result: Plausibility, ids: list[int], truth: torch.Tensor, *, k: int) -> None:
    rows = result.tokens.to_dict("records")
    assert [row["token_id"] for row in rows] == ids
    assert [row["judged"] for row in rows] == [False] + [True] * (len(ids) - 1)
    assert math.isnan(rows[0]["log_probability"])
    for place, row in enumerate(rows[1:], start=1):
        scores = truth[place - 1]
        own = scores[ids[place]]
        assert row["log_probability"] == pytest.approx(own.item(), abs=3e-4)
        assert row["probability"] == pytest.approx(own.exp().item(), rel=4e-4)
        assert row["bits"] == pytest.approx(-own.item() / math.log(2), abs=5e-4)
        assert row["rank"] == int((scores > own).sum()) + 1
        assert row["best_id"] == int(scores.argmax())
        best = result.alternatives[result.alternatives["position"] == place]
        assert best["rank"].tolist() == list(range(1, k + 1))
        assert best["token_id"].tolist() == scores.topk(k).indices.tolist()
        assert best["log_probability"].tolist() == pytest.approx(scores.topk(k).values.tolist(), abs=3e-4)


@pytest.mark.parametrize("habit", HABITS)
@pytest.mark.parametrize("architecture", CAUSAL)
def test_perplexity_is_exp_of_transformers_own_loss(open_causal, architecture, habit):
    checkpoint, folder = open_causal(architecture, habit, **CHANGES.get(architecture, {}))
    result = plausibility(checkpoint, progress=silent, text=TEXT, k=3, device="cpu")
    ids, loss, truth = by_transformers(folder, TEXT)
    assert result.perplexity == pytest.approx(math.exp(loss), rel=1e-3)
    assert result.log_likelihood == pytest.approx(-loss * (len(ids) - 1), abs=1e-3)
    assert result.judged == len(ids) - 1
    assert (result.method, result.pseudo_log_likelihood, result.pseudo_perplexity) == ("causal", None, None)
    check_rows(result, ids, truth, k=3)


def test_the_demo_against_transformers(open_path):
    folder = DEMOS["demo-gpt2"].folder
    text = "The river Thames flows through London."
    result = plausibility(open_path(folder), progress=silent, text=text, device="cpu")
    ids, loss, truth = by_transformers(folder, text)
    assert result.perplexity == pytest.approx(math.exp(loss), rel=1e-4)
    check_rows(result, ids, truth, k=5)


def test_what_is_judged_is_said(open_causal):
    told = {}
    for habit in HABITS:
        checkpoint, _ = open_causal("LlamaForCausalLM", habit)
        told[habit] = judged(plausibility(checkpoint, progress=silent, text="w1 w3"))
    assert told["none"] == (
        "The first token, “w1”, has no context and is not judged: the tokenizer puts no special token before the text."
    )
    assert (
        told["bos"]
        == told["both"]
        == ("The text begins with the special token <s>, which is not judged, so every token after it has a context.")
    )


def test_the_last_special_token_is_predicted_like_any_other(open_causal):
    checkpoint, folder = open_causal("LlamaForCausalLM", "both")
    result = plausibility(checkpoint, progress=silent, text="w1")
    _, loss, _ = by_transformers(folder, "w1")
    assert result.tokens["token"].tolist() == ["<s>", "w1", "</s>"]
    assert result.tokens["special"].tolist() == [True, False, True]
    assert result.judged == 2
    assert result.perplexity == pytest.approx(math.exp(loss), rel=1e-4)


@pytest.mark.parametrize("architecture", ["LlamaForCausalLM", "CohereForCausalLM"])
def test_blocks_and_logits_made_a_few_at_a_time_change_nothing(monkeypatch, open_causal, architecture):
    checkpoint, _ = open_causal(architecture)
    text = " ".join(f"w{number % 50}" for number in range(60))
    at_once = plausibility(checkpoint, progress=silent, text=text)
    monkeypatch.setattr(compute_causal, "block_states", lambda *_: 7)
    told: list[float | None] = []
    request = PlausibilityRequest(text=text)
    in_blocks = judge_causal(checkpoint, request, progress=lambda share, _: told.append(share), by_blocks_from=1)
    assert in_blocks.tokens["log_probability"].tolist()[1:] == pytest.approx(
        at_once.tokens["log_probability"].tolist()[1:], abs=1e-5
    )
    assert in_blocks.tokens["rank"].tolist()[1:] == at_once.tokens["rank"].tolist()[1:]
    assert in_blocks.alternatives["token_id"].tolist() == at_once.alternatives["token_id"].tolist()
    assert told[-1] == 1.0


def test_one_pass_alone_is_run(monkeypatch, open_causal):
    checkpoint, _ = open_causal("GPT2LMHeadModel")
    model = load(checkpoint, "causal_lm").model
    passes: list[int] = []
    handle = model.base_model.register_forward_pre_hook(lambda *_: passes.append(1))
    plausibility(checkpoint, progress=silent, text=TEXT)
    handle.remove()
    assert passes == [1]


def test_a_model_that_sees_later_tokens_is_refused(tmp_path, open_path):
    """XLNet has a head for the next token in the library's list, and reads the text in both directions."""
    torch.manual_seed(0)
    config = XLNetConfig(vocab_size=VOCAB, d_model=32, n_layer=2, n_head=2, d_inner=48)
    folder = save_checkpoint(XLNetLMHeadModel(config), tmp_path / "both-ways", tokenizer=False)
    save_tokenizer(folder, "none")
    checkpoint = open_path(folder)
    assert checkpoint.heads["causal_lm"] == "present"
    with pytest.raises(NotInCheckpointError) as error:
        plausibility(checkpoint, progress=silent, text=TEXT)
    assert str(error.value) == (
        "both-ways reads later tokens before it predicts a token (xlnet models attend in both directions), so the "
        "text has no perplexity."
    )


def test_a_head_that_is_not_in_the_file_is_refused(tmp_path, open_path):
    folder = save_checkpoint(
        random_model("LlamaForCausalLM", tie_word_embeddings=False), tmp_path / "cut", tokenizer=False
    )
    save_tokenizer(folder, "none")
    weights = load_file(folder / "model.safetensors")
    del weights["lm_head.weight"]
    save_file(weights, folder / "model.safetensors", {"format": "pt"})
    with pytest.raises(NotInCheckpointError) as error:
        plausibility(open_path(folder), progress=silent, text=TEXT)
    assert str(error.value) == (
        "cut has no language-model head in its files, and a head filled with random numbers would return nonsense, so "
        "nothing is judged. Open its pre-training checkpoint, or look at its Embeddings and Logit lens."
    )


@pytest.mark.parametrize("architecture", ["T5ForConditionalGeneration", "MarianMTModel"])
def test_two_stacks_are_refused(open_model, architecture):
    assert architecture in ENCODER_DECODER
    with pytest.raises(NotInCheckpointError) as error:
        plausibility(open_model(architecture), progress=silent, text=TEXT)
    assert str(error.value) == (
        f"{architecture} has an encoder and a decoder: it predicts one text from another, so one text alone has no "
        "plausibility. Its Logit lens shows what the decoder predicts."
    )


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"text": "w1"},
         "The text has one token, but a causal language model judges each token from those before it: type more."),
        ({"text": TEXT, "by": "word"},
         "Masked unit applies only to masked language models: LlamaForCausalLM reads a text from left to right and "
         "masks nothing."),
        ({"text": TEXT, "k": 0}, "Alternatives must be between 1 and 100, not 0."),
    ],
)  # fmt: skip
def test_refusals(open_causal, options, sentence):
    checkpoint, _ = open_causal("LlamaForCausalLM")
    with pytest.raises(RequestError) as error:
        plausibility(checkpoint, progress=silent, **options)
    assert str(error.value) == sentence


def test_damaged_weights_are_said(tmp_path, open_path):
    model = random_model("LlamaForCausalLM")
    with torch.no_grad():
        model.lm_head.weight[7] = torch.nan
    folder = save_checkpoint(model, tmp_path / "damaged", tokenizer=False)
    save_tokenizer(folder, "none")
    with pytest.raises(CheckpointError, match=r"its lm_head\.weight contains NaN or infinity"):
        plausibility(open_path(folder), progress=silent, text="w1 w2 w4")
