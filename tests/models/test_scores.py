"""What hidden states are scored against: rows that can be used, and products with a matrix read in pieces."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

from inspector.analyses.lens.compute import lens
from inspector.models.loading import load
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
