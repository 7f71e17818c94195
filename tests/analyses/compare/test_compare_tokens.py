"""Rows of two vocabularies against brute force."""

from __future__ import annotations

import json
import math

import pytest
import torch

from inspector.results.plain import to_json
from tests.analyses.compare.compare_truth import EMBEDDING, ask, by_name
from tests.families import random_model, save_checkpoint, words


def test_a_resized_vocabulary_is_matched_by_token(saved):
    model = random_model("BertForMaskedLM")
    first = saved(model, "small")
    model.resize_token_embeddings(64, mean_resizing=False)
    second = saved(model, "large", vocabulary=[*words(), "n1", "n2", "n3", "n4"])
    result = ask(first, second)
    row = by_name(result)[EMBEDDING]
    assert (row["status"], row["shape"], row["other_shape"]) == ("reshaped", "60 × 32", "64 × 32")
    assert math.isnan(row["relative_change"])
    match = result.vocabulary
    assert (match.matched, match.alone, match.other_alone) == (60, 0, 4)
    assert match.other_alone_examples == ("n1", "n2", "n3", "n4")
    assert (match.moved, match.same_row) == (0, 60)
    back = ask(second, first).vocabulary
    assert (back.alone, back.other_alone, back.alone_examples) == (4, 0, match.other_alone_examples)


def test_a_permuted_vocabulary_moves_no_token(saved):
    model = random_model("BertForMaskedLM")
    order = torch.randperm(60, generator=torch.Generator().manual_seed(1))

    def permuted(tensors):
        return tensors | {EMBEDDING: tensors[EMBEDDING][order].contiguous()}

    first = saved(model, "a")
    second = saved(model, "b", permuted, vocabulary=[words()[row] for row in order.tolist()])
    result = ask(first, second)
    assert by_name(result)[EMBEDDING]["status"] == "changed"  # the rows of the file did change
    match = result.vocabulary
    assert (match.matched_by, match.matched, match.moved) == ("token", 60, 0)
    assert match.same_row == int((order == torch.arange(60)).sum())
    where = {row["token_id"]: row["other_token_id"] for row in result.tokens.to_dict("records")}
    assert where == {old: new for new, old in enumerate(order.tolist())}
    assert len(result.tokens_moved) == 0


def test_tokens_that_moved_are_measured_exactly(saved):
    model = random_model("BertForMaskedLM")

    def moved(tensors):
        tensors[EMBEDDING][10] += 1.0
        tensors[EMBEDDING][20] *= 3.0
        return tensors

    first, second = saved(model, "a"), saved(model, "b", moved)
    result = ask(first, second, moved=1)
    a, b = first.embedding_matrix().double(), second.embedding_matrix().double()
    distances = (b - a).norm(dim=1)
    assert result.vocabulary.moved == 2
    (top,) = result.tokens_moved.to_dict("records")
    assert top["token_id"] == int(distances.argmax())
    assert top["distance"] == pytest.approx(distances.max().item())
    rows = result.tokens.set_index("token_id")
    assert rows["distance"].tolist() == pytest.approx(distances.tolist())
    assert rows.loc[20, "cosine"] == pytest.approx(1.0)
    assert rows.loc[20, "relative_change"] == pytest.approx(2.0, rel=1e-6)
    cosine = torch.nn.functional.cosine_similarity(a[10], b[10], dim=0).item()
    assert rows.loc[10, "cosine"] == pytest.approx(cosine)
    assert rows.loc[10, "token"] == words()[10]


@pytest.mark.parametrize("wider_first", [False, True])
def test_rows_of_other_widths_have_no_distances(wider_first, saved):
    narrow = saved(random_model("BertForMaskedLM"), "narrow")
    wide = saved(random_model("BertForMaskedLM", hidden_size=48, seed=4), "wide")
    pair = (wide, narrow) if wider_first else (narrow, wide)
    found = ask(*pair)
    assert found.vocabulary.matched == 60
    norms = [each.embedding_matrix().double().norm(dim=1).tolist() for each in pair]
    assert found.tokens["norm"].tolist() == pytest.approx(norms[0])
    assert found.tokens["other_norm"].tolist() == pytest.approx(norms[1])
    assert found.tokens[["distance", "relative_change", "cosine"]].isna().all(axis=None)
    assert len(found.tokens_moved) == 0
    assert any("numbers cannot be compared." in sentence for sentence in found.summary)
    json.dumps(to_json(found), allow_nan=False)


def test_without_a_tokenizer_rows_are_matched_by_number_and_that_is_said(tmp_path, open_path):
    model = random_model("BertForMaskedLM")
    first = open_path(save_checkpoint(model, tmp_path / "a"))
    model.resize_token_embeddings(50)
    second = open_path(save_checkpoint(model, tmp_path / "b", tokenizer=False))
    result = ask(first, second)
    match = result.vocabulary
    assert (match.matched_by, match.matched, match.alone) == ("row", 50, 10)
    assert match.alone_examples == tuple(words()[50:55])
    (said,) = [each for each in result.warnings if "by row number" in each]
    assert "because b has no tokenizer" in said
