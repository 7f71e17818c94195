"""Embeddings and neighbors against brute force and hand-computed numbers."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from inspector.analyses.embeddings.compute import embeddings
from inspector.errors import NotInCheckpointError, RequestError
from tests.conftest import silent
from tests.families import random_model, save_checkpoint


def matrix_of(architecture: str) -> np.ndarray:
    return random_model(architecture).get_input_embeddings().weight.detach().numpy()


def test_numbers_are_those_of_the_matrix(open_model, architecture):
    result = embeddings(open_model(architecture), progress=silent)
    matrix = matrix_of(architecture)
    norms = np.linalg.norm(matrix, axis=1)
    assert (result.rows, result.columns) == matrix.shape
    assert result.norms.min == pytest.approx(norms.min(), rel=1e-5)
    assert result.norms.max == pytest.approx(norms.max(), rel=1e-5)
    special = result.special.set_index("token")
    assert special.loc["[MASK]", "norm"] == pytest.approx(norms[4], rel=1e-5)
    assert (result.pad_token, result.pad_id) == ("[PAD]", 0)
    assert result.pad_norm == pytest.approx(norms[0], rel=1e-5)
    assert result.pad_percentile == pytest.approx(100 * (norms < norms[0]).mean(), abs=1e-3)


@pytest.mark.parametrize("metric", ["cosine", "dot", "euclidean"])
def test_neighbors_by_brute_force(open_model, metric):
    result = embeddings(open_model("BertModel"), progress=silent, token="w3", k=5, metric=metric)
    matrix = matrix_of("BertModel").astype(np.float64)
    query = matrix[11]  # eight special tokens come first
    score = {
        "cosine": lambda row: query @ row / np.linalg.norm(query) / np.linalg.norm(row),
        "dot": lambda row: query @ row,
        "euclidean": lambda row: -np.linalg.norm(query - row),
    }[metric]
    scores = {index: score(row) for index, row in enumerate(matrix) if index != 11}
    best = sorted(scores, key=scores.__getitem__, reverse=True)[:5]
    assert result.query_id == 11
    assert result.neighbours["token_id"].tolist() == best
    assert result.neighbours["similarity"].abs().tolist() == pytest.approx(
        [abs(scores[index]) for index in best], rel=1e-4
    )


def test_token_as_id_and_unknown_token(open_model):
    checkpoint = open_model("BertModel")
    assert embeddings(checkpoint, progress=silent, token="id 11").query == "w3"
    assert embeddings(checkpoint, progress=silent, token="id:11").query == "w3"
    with pytest.raises(RequestError, match="'nothing' is not a single token of BertModel"):
        embeddings(checkpoint, progress=silent, token="nothing")
    with pytest.raises(RequestError, match="'id 60' is not a single token of BertModel"):
        embeddings(checkpoint, progress=silent, token="id 60")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"k": 0}, "Nearest tokens must be between 1 and 1,000, not 0."),
        ({"k": 1001}, "Nearest tokens must be between 1 and 1,000, not 1,001."),
        ({"metric": "l1"}, "Metric must be cosine, dot or euclidean, not 'l1'."),
    ],
)
def test_refusals(open_model, options, sentence):
    with pytest.raises(RequestError) as error:
        embeddings(open_model("BertModel"), progress=silent, token="w3", **options)
    assert str(error.value) == sentence


def test_undertrained_token_is_found(tmp_path, open_path):
    """A word whose vector lies where the unused rows lie comes first."""
    model = random_model("BertForMaskedLM")
    with torch.no_grad():
        weight = model.bert.embeddings.word_embeddings.weight
        weight[5:8] = torch.full((3, 32), 0.5) + 0.01 * weight[5:8]
        weight[30] = torch.full((32,), 0.4)
    checkpoint = open_path(save_checkpoint(model, tmp_path / "magikarp"))
    result = embeddings(checkpoint, progress=silent)
    assert result.undertrained["token"].iloc[0] == "w22"
    assert not set(result.undertrained["token"]) & {"[unused0]", "[PAD]", "[MASK]"}
    assert result.undertrained["score"].is_monotonic_decreasing


def test_nan_row_is_named_and_left_out(tmp_path, open_path):
    model = random_model("BertForMaskedLM")
    with torch.no_grad():
        model.bert.embeddings.word_embeddings.weight[20, 3] = float("inf")
    checkpoint = open_path(save_checkpoint(model, tmp_path / "nan"))
    result = embeddings(checkpoint, progress=silent, token="w1", k=59)
    assert "w12 (id 20)" in result.warnings[0]
    assert 20 not in result.neighbours["token_id"].tolist()
    assert np.isfinite(result.norms.max)


def test_no_embedding_matrix(tmp_path, open_path):
    from safetensors.torch import save_file

    folder = tmp_path / "odd"
    folder.mkdir()
    save_file({"some.weight": torch.ones(3, 3)}, folder / "model.safetensors")
    with pytest.raises(NotInCheckpointError, match="no embedding matrix"):
        embeddings(open_path(folder), progress=silent)
