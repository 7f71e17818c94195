"""The verb `vitals` against NumPy on the file itself."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file, save_file

from inspector.analyses.snapshots.compute import nearest_cosine, vitals
from inspector.analyses.snapshots.frames import read_vitals
from inspector.errors import InspectorError
from inspector.models.vocabulary.rows import read_facts
from inspector.results.plain import to_json
from tests.conftest import silent
from tests.families import random_model, save_checkpoint

WORDS = "bert.embeddings.word_embeddings.weight"


def nearest_by_hand(matrix: np.ndarray, row: int, k: int) -> list[int]:
    """Brute force in float64."""
    lengths = np.linalg.norm(matrix, axis=1)
    cosines = matrix.astype(float) @ matrix[row].astype(float) / (lengths * lengths[row])
    order = [other for other in np.argsort(-cosines, kind="stable") if other != row]
    return [int(other) for other in order[:k]]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return save_checkpoint(random_model("BertForMaskedLM"), tmp_path / "bert")


def test_numbers_are_those_of_the_file(folder, open_path) -> None:
    matrix = load_file(folder / "model.safetensors")[WORDS]
    found = vitals(open_path(folder), progress=silent, tokens=("w3", "id 20"), k=5, sample=7)
    norms = np.linalg.norm(matrix.astype(float), axis=1)
    assert found.norms.min == pytest.approx(norms.min(), rel=1e-6)
    assert found.norms.max == pytest.approx(norms.max(), rel=1e-6)
    assert found.norms.median == pytest.approx(np.sort(norms)[(len(norms) - 1) // 2], rel=1e-6)
    assert (found.pad_token, found.pad_id) == ("[PAD]", 0)
    assert found.pad_norm == pytest.approx(norms[0], rel=1e-6)
    assert (found.rows, found.columns) == matrix.shape
    assert found.tokens["token_id"].tolist() == [11, 20]
    np.testing.assert_array_equal(found.vectors, matrix[[11, 20]])
    assert len(found.probes) == 2 + 7
    assert len(set(found.probes[2:].tolist())) == 7
    for row, neighbors in zip(found.probes, found.neighbours, strict=True):
        assert neighbors.tolist() == nearest_by_hand(matrix, int(row), 5)


def test_the_result_survives_its_json(folder, open_path) -> None:
    found = vitals(open_path(folder), progress=silent, tokens=("w3",), k=4, sample=3)
    plain = json.loads(json.dumps(to_json(found), allow_nan=False))
    back = read_vitals(plain)
    assert to_json(back) == plain
    np.testing.assert_array_equal(back.vectors, found.vectors)
    np.testing.assert_array_equal(back.neighbours, found.neighbours)
    assert back.norms == found.norms
    special = vitals(open_path(folder), progress=silent, k=4, sample=0)
    assert special.tokens["token"].tolist() == ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    (folder / "vocab.txt").unlink()
    empty = vitals(open_path(folder), progress=silent, k=4, sample=0)
    assert read_vitals(to_json(empty)).neighbours.shape == (0, 4)


def test_the_same_rows_are_drawn_of_every_matrix_of_that_size(folder, open_path, tmp_path) -> None:
    other = save_checkpoint(random_model("BertForMaskedLM", seed=5), tmp_path / "later")
    first, second = (vitals(open_path(each), progress=silent) for each in (folder, other))
    np.testing.assert_array_equal(first.probes, second.probes)
    assert first.vocabulary == second.vocabulary
    drawn = first.probes[len(first.tokens) :]
    assert sorted(drawn) == list(range(first.rows))  # 200 are asked for, and there are fewer
    (other / "vocab.txt").write_text((other / "vocab.txt").read_text().replace("w7\n", "seven\n"), encoding="utf-8")
    assert vitals(open_path(other), progress=silent).vocabulary != first.vocabulary


def test_rows_without_a_direction_are_nobodys_neighbors(folder, open_path) -> None:
    tensors = load_file(folder / "model.safetensors")
    tensors[WORDS][11] = 0
    tensors[WORDS][12, 3] = np.nan
    tensors[WORDS][13, 0] = np.inf
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    found = vitals(open_path(folder), progress=silent, tokens=("w3", "w4", "w5", "w6"), k=59)
    assert (found.neighbours[:3] == -1).all()
    listed = found.neighbours[3]
    assert set(listed.tolist()) == {-1, *range(60)} - {11, 12, 13, 14}
    assert (listed == -1).sum() == 59 - 56
    assert np.isfinite([found.norms.min, found.norms.median, found.norms.max]).all()
    assert "2 embedding rows contain NaN or infinity" in found.warnings[0]
    json.dumps(to_json(found), allow_nan=False)


def test_neighbors_do_not_depend_on_the_size_of_blocks() -> None:
    matrix = torch.randn((50, 8), generator=torch.Generator().manual_seed(3))
    matrix[4] *= 1e25  # its square is no float32
    whole = nearest_cosine(matrix, torch.arange(50), 6, facts=read_facts(matrix))
    facts = read_facts(matrix, numel=8 * 7)
    np.testing.assert_array_equal(nearest_cosine(matrix, torch.arange(50), 6, facts=facts, numel=8 * 7), whole)
    assert whole[4].tolist() == nearest_by_hand(matrix.double().numpy(), 4, 6)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"tokens": ("nowhere",)}, "'nowhere' is not a single token"),
        ({"tokens": ("w1",) * 33}, "Tokens: give at most 32, not 33."),
        ({"k": 0}, "Neighbors must be between 1 and 100, not 0."),
        ({"k": 101}, "Neighbors must be between 1 and 100, not 101."),
        ({"sample": -1}, "Sample must be between 0 and 2,000, not -1."),
        ({"sample": 2001}, "Sample must be between 0 and 2,000, not 2,001."),
    ],
)
def test_what_cannot_be_asked_is_one_sentence(folder, open_path, options, said) -> None:
    with pytest.raises(InspectorError, match=said):
        vitals(open_path(folder), progress=silent, **options)
