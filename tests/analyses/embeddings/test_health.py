"""The vocabulary's health on hand-made vocabularies whose faults are planted, and so known."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from safetensors.torch import save_file

from inspector.analyses.embeddings.compute import embeddings
from inspector.analyses.embeddings.compute_health import find_equal_rows
from inspector.analyses.embeddings.compute_references import find_references
from inspector.analyses.embeddings.compute_undertrained import RowJudgment, judge
from inspector.analyses.embeddings.result import Embeddings
from inspector.analyses.embeddings.result_health import RowProblem
from inspector.demo import DEMOS
from inspector.models.vocabulary.rows import read_facts
from inspector.results.plain import to_json
from inspector.store.reference import CheckpointRef
from tests.conftest import silent
from tests.families import random_model, save_checkpoint, words

SIZES = [(200, 24), (1_000, 64), (8_000, 128)]
SEEDS = [0, 1, 2]


@dataclass
class Vocabulary:
    """A hand-made vocabulary: rows that look trained, and faults whose places are known."""

    matrix: torch.Tensor
    labels: pd.DataFrame
    planted: set[int]
    bias: torch.Tensor


def trained_rows(rows: int, columns: int, generator: torch.Generator) -> torch.Tensor:
    """Rows as training leaves them: a common offset, few strong directions, norms that differ."""
    strengths = torch.arange(1, columns + 1) ** -0.4
    noise = torch.randn(rows, columns, generator=generator) * strengths
    lengths = torch.exp(0.12 * torch.randn(rows, 1, generator=generator))
    offset = torch.randn(columns, generator=generator) * 0.3
    mixing, _ = torch.linalg.qr(torch.randn(columns, columns, generator=generator))
    return (noise * lengths + offset) @ mixing


def make(rows: int, columns: int, seed: int, *, unused: int, share: float, tied: bool = True) -> Vocabulary:
    """Plant under-trained rows into a trained-like vocabulary, its first rows known to be unused.

    Where it is tied, unused and under-trained rows lie in one direction of their own, as a softmax
    pushes them; where it is not, they are as short as at initialization.
    """
    generator = torch.Generator().manual_seed(seed)
    matrix = trained_rows(rows, columns, generator)
    count = max(1, round(share * rows)) if share else 0
    planted = unused + torch.randperm(rows - unused, generator=generator)[:count]
    changed = torch.cat([torch.arange(unused), planted])
    noise = torch.randn(len(changed), columns, generator=generator)
    if tied:
        push = torch.randn(columns, generator=generator)
        push *= matrix.norm(dim=1).median() / push.norm()
        matrix[changed] = push + 0.02 * noise
    else:
        matrix[changed] = 0.02 * noise
    bias = -0.2 + 0.1 * torch.randn(rows, generator=generator)
    bias[changed] -= 3
    kinds = ["unused"] * unused + ["word"] * (rows - unused)
    labels = pd.DataFrame(
        {
            "token_id": range(rows),
            "token": [f"[unused{i}]" if i < unused else f"w{i}" for i in range(rows)],
            "kind": kinds,
        }
    )
    return Vocabulary(matrix, labels, set(planted.tolist()), bias)


def judged(made: Vocabulary, *, tied: bool | None = True, **options: object) -> RowJudgment:
    facts = read_facts(made.matrix)
    return judge(made.matrix, facts, made.labels, tied=tied, **options)  # type: ignore[arg-type]


def listed(judgment: RowJudgment) -> set[int]:
    return set(judgment.listed.nonzero()[:, 0].tolist())


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("rows", "columns"), SIZES)
@pytest.mark.parametrize("share", [0.0, 0.005, 0.1])
@pytest.mark.parametrize("with_bias", [False, True])
def test_planted_rows_are_found_and_none_invented_when_tied(rows, columns, seed, share, with_bias):
    made = make(rows, columns, seed, unused=12, share=share)
    judgment = judged(made, bias=made.bias if with_bias else None)
    assert listed(judgment) == made.planted
    assert judgment.indicator.measure == "direction"
    assert judgment.indicator.references == 12
    assert (judgment.indicator.bias_threshold is not None) == with_bias
    assert judgment.scores[:12].isnan().all()


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("rows", "columns"), SIZES)
@pytest.mark.parametrize("share", [0.0, 0.005, 0.1])
@pytest.mark.parametrize("unused", [12, 0])
def test_planted_rows_are_found_and_none_invented_when_not_tied(rows, columns, seed, share, unused):
    made = make(rows, columns, seed, unused=unused, share=share, tied=False)
    judgment = judged(made, tied=False)
    assert listed(judgment) == made.planted
    assert judgment.indicator.measure == "norm"
    assert judgment.indicator.references == unused


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("rows", "columns"), SIZES)
@pytest.mark.parametrize("unused", [0, 4, 40])
def test_rows_as_short_as_at_initialization_are_found_in_a_tied_model_too(rows, columns, seed, unused):
    made = make(rows, columns, seed, unused=unused, share=0.02, tied=False)
    assert listed(judged(made)) == made.planted


def few_dimensions(seed: int, *, rows: int = 1_000, columns: int = 10) -> Vocabulary:
    """Rows of so few dimensions that some ordinary ones lie near any direction, by chance.

    Eight unused rows and ten planted ones lie about one direction, as long as the others; the
    nearest ordinary row has a cosine of at most 0.88 to it.
    """
    made = make(rows, columns, seed, unused=8, share=0)
    generator = torch.Generator().manual_seed(seed)
    matrix = torch.randn(rows, columns, generator=generator)
    planted = 8 + torch.randperm(rows - 8, generator=generator)[:10]
    changed = torch.cat([torch.arange(8), planted])
    push = torch.randn(columns, generator=generator)
    push *= columns**0.5 / push.norm()
    matrix[torch.cosine_similarity(matrix, push[None]) > 0.88] *= -1
    matrix[changed] = push + 0.15 * torch.randn(len(changed), columns, generator=generator)
    return Vocabulary(matrix, made.labels, set(planted.tolist()), made.bias)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("tied", [True, False, None])
def test_planted_rows_of_few_dimensions_are_found(seed, tied):
    made = few_dimensions(seed)
    judgment = judged(made, tied=tied)
    assert judgment.indicator.measure == "direction"
    assert listed(judgment) == made.planted


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("architecture", ["BertForMaskedLM", "LlamaForCausalLM"])
@pytest.mark.parametrize("tied", [True, False])
def test_planted_rows_of_a_checkpoint_are_found(tmp_path, open_path, architecture, tied, seed):
    """Ten words of a model whose rows all lie about the unused ones, tied and untied."""
    model = random_model(architecture, vocab_size=60, tie_word_embeddings=tied, seed=seed)
    planted = torch.arange(20, 30)
    with torch.no_grad():
        weight = model.get_input_embeddings().weight
        weight[torch.cat([planted, torch.arange(5, 8)])] = weight[5] + 0.02 * torch.randn(
            13, 32, generator=torch.Generator().manual_seed(seed)
        )
    result = embeddings(open_path(save_checkpoint(model, tmp_path / "planted")), progress=silent)
    assert set(result.undertrained["token_id"]) == set(planted.tolist())


def test_norms_that_vary_too_much_are_not_given_a_threshold_of_zero():
    made = make(1_000, 24, 0, unused=0, share=0)
    made.matrix *= torch.exp(torch.randn(1_000, 1, generator=torch.Generator().manual_seed(0)))
    judgment = judged(made)
    assert not judgment.listed.any()
    assert judgment.indicator.measure == "none"
    assert "0.00" not in judgment.indicator.statement
    assert "no row is short enough to stand out" in judgment.indicator.statement


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("rows", "columns"), SIZES)
@pytest.mark.parametrize("tied", [True, False, None])
def test_a_trained_vocabulary_without_unused_rows_has_nothing_listed(rows, columns, seed, tied):
    made = make(rows, columns, seed, unused=0, share=0)
    judgment = judged(made, tied=tied)
    assert not judgment.listed.any()
    assert not judgment.indicator.looks_untrained
    assert "No row of this vocabulary is known to be unused" in judgment.indicator.statement


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("tied", [True, False])
def test_unused_rows_that_were_trained_like_all_others_tell_nothing(seed, tied):
    made = make(1_000, 64, seed, unused=0, share=0)
    made.labels.loc[:9, "kind"] = "unused"
    judgment = judged(made, tied=tied)
    assert not judgment.listed.any()
    assert judgment.indicator.references == 0
    assert "10 rows are known to be unused, but they do not stand out" in (judgment.indicator.statement)


@pytest.mark.parametrize("unused", [0, 10])
@pytest.mark.parametrize(("rows", "columns"), SIZES)
def test_a_fresh_model_is_called_untrained_and_no_token_is(rows, columns, unused):
    matrix = 0.02 * torch.randn(rows, columns, generator=torch.Generator().manual_seed(5))
    made = make(rows, columns, 0, unused=unused, share=0)
    made.matrix = matrix
    indicator = judged(made, initializer_range=0.02).indicator
    assert indicator.looks_untrained
    assert indicator.measure == "none"
    assert "which config.json gives for a fresh model" in indicator.statement
    assert not judged(made).listed.any()


@pytest.mark.parametrize("architecture", ["BertForMaskedLM", "GPT2LMHeadModel"])
def test_a_model_as_transformers_initializes_it_is_untrained(architecture, tmp_path, open_path):
    import transformers

    torch.manual_seed(0)
    model_class = getattr(transformers, architecture)
    small = dict(random_model(architecture).config.to_diff_dict())
    config = model_class.config_class(**small | {"vocab_size": 60})
    result = embeddings(open_path(save_checkpoint(model_class(config), tmp_path / "fresh")), progress=silent)
    assert result.health.indicator.looks_untrained
    assert result.undertrained.empty
    assert "The matrix looks untrained." in said(result, "Under-trained tokens").detail


def test_a_row_between_the_two_thresholds_is_listed_where_its_bias_agrees():
    made = make(4_000, 64, 3, unused=20, share=0.01)
    indicator = judged(made, bias=made.bias).indicator
    assert indicator.threshold is not None
    assert indicator.agreed_threshold is not None
    facts = read_facts(made.matrix)
    aim = made.matrix[:20].mean(dim=0) - facts.mean
    aim /= aim.norm()
    # Two ordinary rows are turned to a cosine between the thresholds; one bias is made low.
    cosine = (indicator.threshold + indicator.agreed_threshold) / 2
    ordinary = sorted(set(range(20, 4_000)) - made.planted)[:2]
    for row in ordinary:
        centered = made.matrix[row] - facts.mean
        across = centered - (centered @ aim) * aim
        across /= across.norm()
        made.matrix[row] = facts.mean + centered.norm() * (cosine * aim + (1 - cosine**2) ** 0.5 * across)
    made.bias[ordinary] = torch.tensor([-3.0, -0.2])
    assert listed(judged(made, bias=made.bias)) == made.planted | {ordinary[0]}


def test_a_trained_row_among_the_unused_is_left_out_by_name():
    made = make(1_000, 64, 1, unused=12, share=0.02)
    made.matrix[7] = made.matrix[sorted(set(range(12, 1_000)) - made.planted)[0]]
    judgment = judged(made)
    assert listed(judgment) == made.planted
    assert judgment.indicator.references == 11
    assert "1 more ([unused7]) lies elsewhere" in judgment.indicator.statement


def test_references_are_unused_rows_impossible_bytes_and_rows_without_a_token():
    tokens = ["[unused0]", "<0xF5>", "<0xC0>", "<0x41>", "w", "id 5", "<extra_id_0>"]
    kinds = ["unused", "byte", "subword", "byte", "word", "no token", "unused"]
    labels = pd.DataFrame({"token_id": range(7), "token": tokens, "kind": kinds})
    facts = read_facts(torch.ones(7, 3))
    assert find_references(labels, facts, ()).tolist() == [0, 1, 2, 5]
    assert find_references(labels, facts, (4,)).tolist() == [0, 1, 2, 5]  # enough without it
    few = labels.assign(kind="word", token="w")
    assert find_references(few, facts, (2, 4)).tolist() == [2, 4]


def test_the_score_is_the_cosine_computed_by_hand():
    made = make(300, 24, 0, unused=5, share=0.02)
    scores = judged(made).scores.numpy()
    matrix = made.matrix.double().numpy()
    centered = matrix - matrix.mean(axis=0)
    aim = centered[:5].mean(axis=0)
    truth = centered @ aim / np.linalg.norm(centered, axis=1) / np.linalg.norm(aim)
    assert scores[5:] == pytest.approx(truth[5:], abs=1e-5)
    percentile = judged(made).percentiles[100]
    assert float(percentile) == pytest.approx(100 * (scores[5:] < scores[100]).mean(), abs=1e-3)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16, torch.float64])
def test_equal_rows_by_brute_force(dtype):
    generator = torch.Generator().manual_seed(2)
    matrix = torch.randint(0, 2, (300, 5), generator=generator).to(dtype)  # 32 different rows
    matrix[10] = -0.0  # equal in value to a zero row, not in its bits
    labels = pd.DataFrame(
        {"token_id": range(300), "token": [f"w{i}" for i in range(300)], "kind": "word",
         "norm": matrix.float().norm(dim=1).numpy()}
    )  # fmt: skip
    judged_rows = torch.ones(300, dtype=torch.bool)
    judged_rows[:3] = False
    found = find_equal_rows(matrix, judged_rows, labels)
    truth: dict[bytes, list[int]] = {}
    for index in range(3, 300):
        row = matrix[index].clone().view(torch.uint8).numpy().tobytes()
        truth.setdefault(row, []).append(index)
    groups = sorted((g for g in truth.values() if len(g) > 1), key=lambda g: (-len(g), g[0]))
    assert [list(group.token_ids) for group in found] == groups
    assert 10 not in {row for group in found for row in group.token_ids}
    assert found[0].tokens[0] == f"w{groups[0][0]}"


def test_rows_that_share_the_numbers_looked_at_first_are_still_told_apart():
    matrix = torch.zeros(50, 1_000)
    matrix[:, 1] = torch.arange(50)  # not among the few columns that are compared first
    labels = pd.DataFrame({"token_id": range(50), "token": "w", "kind": "word", "norm": 1.0})
    assert find_equal_rows(matrix, torch.ones(50, dtype=torch.bool), labels) == ()


def test_facts_of_odd_rows():
    matrix = torch.ones(6, 4)
    matrix[0] = 0.0
    matrix[1, 2] = torch.nan
    matrix[2, 0] = -torch.inf
    matrix[3] = 1e30  # its square is too large, the row itself is finite
    matrix[4] = 1e-30  # its square is too small, the row is not zero
    facts = read_facts(matrix)
    assert facts.zero.tolist() == [True, False, False, False, False, False]
    assert facts.finite.tolist() == [True, False, False, True, True, True]
    assert facts.mean.tolist() == pytest.approx(matrix[facts.finite].mean(dim=0).tolist())


def said(result: Embeddings, name: str) -> RowProblem:
    (found,) = (finding for finding in result.health.findings if finding.name == name)
    return found


def save_planted(folder: Path, *, rows: int = 60) -> Path:
    """A BERT whose embedding has one fault of each kind."""
    model = random_model("BertForMaskedLM", vocab_size=rows)
    with torch.no_grad():
        weight = model.bert.embeddings.word_embeddings.weight
        weight[0] = 0  # [PAD]
        weight[20] = 0  # w12
        weight[30, 5] = torch.nan  # w22
        weight[31, 5] = torch.inf  # w23
        weight[41] = weight[40]  # w33, w32
        weight[5:8] = weight[5]  # unused
    return save_checkpoint(model, folder)


def test_every_fault_of_a_checkpoint_is_named(tmp_path, open_path):
    health = embeddings(open_path(save_planted(tmp_path / "bad")), progress=silent).health
    assert health.zero_rows["token"].tolist() == ["[PAD]", "w12"]
    assert health.not_finite_rows[["token", "what"]].to_numpy().tolist() == [["w22", "NaN"], ["w23", "infinity"]]
    groups = [(group.what, group.tokens) for group in health.equal_rows]
    assert groups == [("unused", ("[unused0]", "[unused1]", "[unused2]")), ("tokens", ("w32", "w33"))]
    status = {finding.name: (finding.count, finding.status) for finding in health.findings}
    assert status["NaN or infinity"] == (2, "fail")
    assert status["Zero rows"] == (2, "warn")
    assert status["Equal rows"] == (2, "warn")
    assert status["Tokens beyond the rows"] == (0, "ok")


def test_many_equal_unused_rows_are_one_finding(tmp_path, open_path):
    model = random_model("BertForMaskedLM", vocab_size=700)
    with torch.no_grad():
        weight = model.bert.embeddings.word_embeddings.weight
        weight[60:] = weight[5]
        weight[5:8] = weight[5]
    result = embeddings(open_path(save_checkpoint(model, tmp_path / "many")), progress=silent)
    (group,) = result.health.equal_rows
    assert (group.count, group.what) == (643, "unused")
    assert said(result, "Equal rows").status == "note"
    assert said(result, "Rows beyond the tokenizer").count == 640
    assert result.health.rows_beyond_tokenizer["token_id"].tolist() == list(range(60, 700))


def test_padding_alone_may_be_zero(tmp_path, open_path):
    model = random_model("BertForMaskedLM")
    with torch.no_grad():
        model.bert.embeddings.word_embeddings.weight[0] = 0
    result = embeddings(open_path(save_checkpoint(model, tmp_path / "pad")), progress=silent)
    assert (said(result, "Zero rows").count, said(result, "Zero rows").status) == (1, "note")


def test_tokens_beyond_the_rows_are_listed(tmp_path, open_path):
    folder = save_checkpoint(random_model("BertForMaskedLM", vocab_size=57), tmp_path / "short")
    result = embeddings(open_path(folder), progress=silent)
    assert result.health.tokens_beyond_rows["token"].tolist() == words()[57:]
    assert result.health.tokens_beyond_rows["token_id"].tolist() == [57, 58, 59]
    assert said(result, "Tokens beyond the rows").status == "fail"


def test_without_a_tokenizer_the_rows_alone_are_judged(tmp_path, open_path):
    model = random_model("BertForMaskedLM")
    with torch.no_grad():
        model.bert.embeddings.word_embeddings.weight[33] *= 0.01
    folder = save_checkpoint(model, tmp_path / "bare", tokenizer=False)
    result = embeddings(open_path(folder), progress=silent)
    assert result.undertrained["token"].tolist() == ["id 33"]
    assert result.undertrained["why"].tolist() == ["short"]
    assert said(result, "Tokens beyond the rows").detail == ("There is no tokenizer to compare the rows with.")


def test_capitals_and_cut_punctuation_are_never_produced(tmp_path, open_path):
    folder = save_checkpoint(random_model("BertForMaskedLM"), tmp_path / "words")
    vocabulary = words()
    vocabulary[10:14] = ["Paris", "##!", "it's", "##ly"]
    (folder / "vocab.txt").write_text("\n".join(vocabulary) + "\n", encoding="utf-8")
    health = embeddings(open_path(folder), progress=silent).health
    assert health.unreachable["token"].tolist() == ["Paris", "##!", "it's"]


def open_demo(name: str, settings):
    from inspector.models.checkpoint import StagedCheckpoint
    from inspector.store.opening import open_checkpoint

    manifest, _ = open_checkpoint(CheckpointRef("demo", name), settings=settings, progress=silent, restrict_paths=False)
    return StagedCheckpoint(manifest, settings=settings)


def test_demo_bert_lists_pieces_that_no_text_can_hold(settings):
    """Words are cut at punctuation, so pieces such as "##!" were certainly never trained on."""
    result = embeddings(open_demo("demo-bert", settings), progress=silent)
    tokenizer = json.loads((DEMOS["demo-bert"].folder / "tokenizer.json").read_text())
    cut = {t for t in tokenizer["model"]["vocab"] if t.startswith("##") and not t[2:].isalnum()}
    assert set(result.health.unreachable["token"]) == cut
    assert len(cut & set(result.undertrained["token"])) >= 0.95 * len(cut)
    row = result.undertrained.iloc[0]
    assert row["why"].startswith("near the unused rows, low output bias")
    assert result.health.indicator.references == 16


def test_demo_gpt2_lists_bytes_that_no_training_text_held(settings):
    """It was trained on ASCII: every other byte was never seen, and 13 stand as references."""
    result = embeddings(open_demo("demo-gpt2", settings), progress=silent)
    assert result.health.indicator.references == 13
    foreign = {f"<0x{byte:02X}>" for byte in range(0x80, 0xF5)} - {"<0xC0>", "<0xC1>"}
    assert foreign <= set(result.undertrained["token"])


def test_json_is_plain_and_holds_the_evidence(settings):
    plain = to_json(embeddings(open_demo("demo-bert", settings), progress=silent))
    json.dumps(plain, allow_nan=False)
    assert set(plain["undertrained"][0]) == {
        "token", "token_id", "score", "percentile", "norm", "bias", "why"
    }  # fmt: skip
    assert {finding["name"] for finding in plain["health"]["findings"]} >= {"Zero rows"}
    assert "scores" not in plain["health"]
    assert plain["warnings"] == []


def test_a_file_without_config_is_judged_too(tmp_path, open_path):
    folder = tmp_path / "bare"
    folder.mkdir()
    made = make(300, 24, 0, unused=0, share=0.02, tied=False)
    save_file({"embed_tokens.weight": made.matrix.bfloat16()}, folder / "model.safetensors")
    result = embeddings(open_path(folder), progress=silent)
    assert set(result.undertrained["token_id"]) == made.planted


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("numel", [1, 40, 1_000, 1 << 20])
def test_facts_of_rows_are_the_same_in_whichever_blocks(dtype, numel):
    matrix = torch.randn(211, 20, generator=torch.manual_seed(8)).to(dtype)
    matrix[3], matrix[60, 4], matrix[61, 5], matrix[210] = 0, torch.nan, torch.inf, 1e-30
    facts = read_facts(matrix, numel=numel)
    numbers = matrix.double().numpy()
    finite = np.isfinite(numbers).all(axis=1)
    assert facts.finite.numpy().tolist() == finite.tolist()
    assert facts.zero.nonzero().tolist() == [[3]]
    lengths = np.linalg.norm(numbers[finite], axis=1)
    assert facts.norms.numpy()[finite] == pytest.approx(lengths, rel=1e-6, abs=1e-29)
    assert facts.mean.numpy() == pytest.approx(numbers[finite].mean(axis=0), abs=1e-6)
