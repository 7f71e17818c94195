"""What hidden states are scored against: rows that can be used, and products with a matrix read in pieces."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

from inspector.analyses.lens.compute import lens
from inspector.models.loading import load
from inspector.models.reading import readout
from inspector.models.reading import scores as module
from inspector.models.reading.scores import COSINE, DOT, Scorer, build_scorer
from tests.conftest import silent
from tests.models import alike
from tests.models.test_streaming import PASSING, TEXT

ROWS, WIDTH = 100_000, 48
assert module.AT_ONCE < ROWS * WIDTH, "several pieces, of which the last is a smaller one"


def test_rows_without_a_finite_length_are_looked_at_number_by_number(open_model):
    """The length of finite numbers overflows float32, and their row stays; the others' rows go."""
    loaded: Any = load(open_model("LlamaForCausalLM"), "base")
    with torch.inference_mode():
        matrix = loaded.model.get_input_embeddings().weight
        assert torch.linalg.vector_norm(matrix[5:6].fill_(3e38)).isinf()
        matrix[9, 3], matrix[20, 0], matrix[33, -1] = math.nan, math.inf, -math.inf
        found, _ = build_scorer(loaded, None, None)
    assert found.unusable.tolist() == [9, 20, 33]


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_products_and_cosines_of_pieces_are_those_in_double_precision(dtype):
    generator = torch.Generator().manual_seed(0)
    hidden = torch.randn(4, WIDTH, generator=generator).to(dtype)
    matrix = torch.randn(ROWS, WIDTH, generator=generator).to(dtype)
    scorer = Scorer(
        matrix, module.row_lengths(matrix), None, None, None, torch.tensor([], dtype=torch.long), tied=False
    )
    found = {rung: given.clone() for rung, given in scorer.score(hidden, last=False, received=None)}
    truth = hidden.double() @ matrix.double().T
    torch.testing.assert_close(found[DOT].double(), truth, rtol=1e-5, atol=1e-5)
    lengths = [torch.linalg.vector_norm(each.double(), dim=1) for each in (hidden, matrix)]
    expected = truth / torch.outer(*lengths)
    torch.testing.assert_close(found[COSINE].double(), expected, rtol=1e-5, atol=1e-5)


def test_a_streamed_lens_is_the_whole_ones_whatever_the_pieces(open_model):
    plain = open_model("LlamaForCausalLM", vocab_size=ROWS)
    options = {"text": TEXT, "dtype": "bfloat16", "progress": silent}
    streamed = lens(plain, **{**options, "device": "stream"})
    alike.same(streamed, lens(plain, **options), leaving=PASSING)


@pytest.mark.parametrize("k", [1, 3, 40])
@pytest.mark.parametrize("vocab", [50, 4_096, 5_003, 40_010])
@pytest.mark.parametrize("levels", [2, 60, 10**6])
def test_the_best_tokens_are_those_of_a_whole_sort_equal_ones_by_id(k, vocab, levels):
    """However few values the scores have, and whether or not the vocabulary is looked through by groups."""
    generator = torch.Generator().manual_seed(vocab + levels)
    scores = torch.randint(levels, (7, vocab), generator=generator).float()
    scores[0, 5:] = -math.inf
    scores[1] = scores[1].sort().values  # the best ones side by side, at the very end
    scores[2] = scores[2].sort(descending=True).values
    ids, best = readout.top_tokens(scores, k)
    order = scores.argsort(dim=1, descending=True, stable=True)[:, :k]
    assert ids.tolist() == order.tolist()
    assert best.tolist() == scores.gather(1, order).tolist()


def test_a_large_vocabulary_is_looked_through_by_groups(monkeypatch):
    """Columns that cannot be among the best are not even compared with each other."""
    asked: list[int] = []
    topk = torch.Tensor.topk
    monkeypatch.setattr(
        torch.Tensor, "topk", lambda self, *_, **__: asked.append(self.shape[1]) or topk(self, *_, **__)
    )
    readout.top_tokens(torch.rand(2, 40_010), 3)
    assert max(asked) < 2_000
